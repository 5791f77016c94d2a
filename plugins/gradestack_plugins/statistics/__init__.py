"""Aggregators that suit any grader."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.statistics"
_COMPONENTS = {
    "mean": ("mean:Mean", "Mean score with standard error and confidence interval, clustered by task"),
    "agreement": (
        "agreement:Agreement",
        "Agreement of graders, or with people: percent, kappa, AC1, alpha, false passes and fails",
    ),
    "flakiness": (
        "flakiness:Flakiness",
        "Tasks that pass sometimes, always or never; intra-class correlation and design effect of runs",
    ),
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the general aggregators."""
    return tuple(
        Component(kind="aggregator", name=name, target=f"{_HERE}.{path}", summary=text)
        for name, (path, text) in _COMPONENTS.items()
    )
