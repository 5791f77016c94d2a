"""Graders of recorded end states: what changed in the world, and which milestones a run reached."""

from gradestack import Component, hookimpl

_TABLE = """
grader state_diff .state_diff:StateDiff Share of assertions about added, removed, changed and
    unchanged rows that an end
    state keeps
grader milestones .milestones:Milestones Similarity of a run's snapshots to milestones in order,
    nullified by minefields
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
