"""Tables and records of any form, by a mapping of columns to fields."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return (
        Component(
            kind="reader",
            name="records",
            target="gradestack_plugins.records.reader:Records",
            summary="CSV, Parquet, JSON Lines or a JSON list of any form, by a mapping of its columns",
        ),
    )
