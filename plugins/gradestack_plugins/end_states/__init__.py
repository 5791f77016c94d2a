"""Graders of recorded end states: what changed in the world, and which milestones a run reached."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.end_states"
_GRADERS = {
    "state_diff": (
        "state_diff:StateDiff",
        "Share of assertions about added, removed, changed and unchanged rows that an end state keeps",
    ),
    "milestones": (
        "milestones:Milestones",
        "Similarity of a run's snapshots to milestones in order, nullified by minefields",
    ),
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this package."""
    return tuple(
        Component(kind="grader", name=name, target=f"{_HERE}.{path}", summary=text)
        for name, (path, text) in _GRADERS.items()
    )
