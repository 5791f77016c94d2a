"""Aggregators that suit any grader."""

from __future__ import annotations

from gradestack.api import Component
from gradestack.hooks import hookimpl


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
