"""Readers of formats that belong to no metric family."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the general readers."""
    return (
        Component(
            kind="reader",
            name="jsonl",
            target="gradestack_plugins.readers.jsonl:JsonLines",
            summary="gradestack's own JSON Lines form of samples",
        ),
        Component(
            kind="stack",
            name="jsonl",
            target="gradestack_plugins.readers.stacks:jsonl",
            summary="Partial credit for expected tool calls, with error bars",
        ),
    )
