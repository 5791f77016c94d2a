"""Inspect: logs of inspect_ai, as archives (``.eval``) or JSON."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return (
        Component(
            kind="reader",
            name="inspect",
            target="gradestack_plugins.inspect_logs.reader:InspectLogs",
            summary="inspect_ai logs: .eval archives and JSON, with their scores",
        ),
    )
