"""Whether one run is better than another: paired by task."""
