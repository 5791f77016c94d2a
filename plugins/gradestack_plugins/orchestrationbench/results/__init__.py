"""Figures of files and of the whole input, folded from the grades of trials."""
