"""Sums by task, and the intervals of figures computed from them."""
