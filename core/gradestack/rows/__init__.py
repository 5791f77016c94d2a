"""One line of results.jsonl, written and read."""
