"""Inspect: logs of inspect_ai, as archives (``.eval``) or JSON."""

from __future__ import annotations

from gradestack import Component, hookimpl

_TABLE = """
reader inspect .reader:InspectLogs inspect_ai logs: .eval archives and JSON, with their scores
"""


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return Component.table(__name__, _TABLE)
