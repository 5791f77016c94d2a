"""Decisions and calls of sub-agent turns, compared with gold."""
