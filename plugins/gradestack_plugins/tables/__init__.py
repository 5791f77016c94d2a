"""Tables of a run: as columns, files, frames, and for SQL."""
