"""Directed graphs and the edit distance between two of them."""
