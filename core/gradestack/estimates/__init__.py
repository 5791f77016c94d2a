"""Sums by task, figures of them and how sure these are."""
