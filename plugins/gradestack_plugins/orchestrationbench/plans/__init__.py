"""Workflow plans: read from a text, made into graphs, compared with gold."""
