"""Report directories: written beside their place, continued after a kill, moved there whole."""
