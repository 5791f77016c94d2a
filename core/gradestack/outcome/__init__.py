"""The outcome of a graded run: figures, runs, native files, pages."""
