"""Counts by name."""

from gradestack.exact import count_into


def test_counts_are_added_by_name():
    """In place; names that are new begin at 0."""
    counts = {"a": 1}
    count_into(counts, {"a": 2, "b": 3})
    assert counts == {"a": 3, "b": 3}
