"""Tables and records of any form, by a mapping of columns to fields."""

from __future__ import annotations

from gradestack import Component, hookimpl

_TABLE = """
reader records .reader:Records CSV, Parquet, JSON Lines or a JSON list of any form, by a mapping of its columns
"""


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return Component.table(__name__, _TABLE)
