"""Figures of a table of grades: counts that every run has, and what its metrics compute."""
