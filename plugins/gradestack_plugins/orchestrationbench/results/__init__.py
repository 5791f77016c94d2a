"""Figures of files and of the whole input, computed from the grades of trials."""
