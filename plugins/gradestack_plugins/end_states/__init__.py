"""Graders of recorded end states: what changed in the world, and which milestones a run reached."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.end_states"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this package."""
    return (
        Component(
            kind="grader",
            name="state_diff",
            target=f"{_HERE}.state_diff:StateDiff",
            summary="Share of assertions about added, removed, changed and unchanged rows that an end state keeps",
        ),
        Component(
            kind="grader",
            name="milestones",
            target=f"{_HERE}.milestones:Milestones",
            summary="Similarity of a run's snapshots to milestones in order, nullified by minefields",
        ),
    )
