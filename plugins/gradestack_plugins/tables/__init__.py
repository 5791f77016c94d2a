"""Tables of a run: as columns, files and frames, and for SQL."""
