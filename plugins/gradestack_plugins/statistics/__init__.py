"""Aggregators that suit any grader."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the general aggregators."""
    return (
        Component(
            kind="aggregator",
            name="mean",
            target="gradestack_plugins.statistics.mean:Mean",
            summary="Mean score with standard error and confidence interval, clustered by task",
        ),
    )
