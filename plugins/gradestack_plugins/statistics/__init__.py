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
        Component(
            kind="aggregator",
            name="agreement",
            target="gradestack_plugins.statistics.agreement:Agreement",
            summary="Agreement of graders, or with people: percent, kappa, AC1, alpha, false passes and fails",
        ),
        Component(
            kind="aggregator",
            name="flakiness",
            target="gradestack_plugins.statistics.flakiness:Flakiness",
            summary="Tasks that pass sometimes, always or never; intra-class correlation and design effect of runs",
        ),
    )
