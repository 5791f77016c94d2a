"""Jinja templates and static assets of the built-in report pages."""
