"""Graders of recorded end states: what changed in the world, and which milestones a run reached."""

from __future__ import annotations

from gradestack import Component, hookimpl

_TABLE = """
grader state_diff .state_diff:StateDiff Share of assertions about added, removed, changed and unchanged rows that an end
    state keeps
grader milestones .milestones:Milestones Similarity of a run's snapshots to milestones in order, nullified by minefields
"""


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this package."""
    return Component.table(__name__, _TABLE)
