"""The output boundary: one function per medium, which every text from data passes on its way out."""
