"""Suites: from a YAML document to components ready to run."""
