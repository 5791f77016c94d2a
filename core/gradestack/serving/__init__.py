"""Pages of a run on demand, for one person on this machine."""
