"""What a graded run comes to: figures, runs, native files, pages."""
