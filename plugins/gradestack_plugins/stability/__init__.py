"""Stability: does a model give the same answer when the same task is run k times."""

from __future__ import annotations

from gradestack import Component, Panel, hookimpl

_HERE = "gradestack_plugins.stability"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of the stability family."""
    return (
        Component(
            kind="reader",
            name="stability",
            target=f"{_HERE}.reader:StabilityReader",
            summary="Stability sweeps: one JSON line per task with the labels of its k runs",
        ),
        Component(
            kind="grader",
            name="stability_label",
            target=f"{_HERE}.grader:StabilityLabel",
            summary="The label of one run of a task against the gold label",
        ),
        Component(
            kind="aggregator",
            name="stability",
            target=f"{_HERE}.aggregators:Stability",
            summary="Stability@k, consistency, entropy and flip rate over the runs of each task, of any grader",
        ),
        Component(
            kind="exporter",
            name="stability",
            target=f"{_HERE}.exporter:StabilityExporter",
            summary="native/stability.json: the evaluation suite's stability metrics file",
        ),
        Component(
            kind="stack",
            name="stability",
            target=f"{_HERE}.stacks:stability",
            summary="Labels of repeated runs with the stability metrics",
        ),
    )


@hookimpl
def gradestack_panels() -> tuple[Panel, ...]:
    """Return what the family shows on pages."""
    return (Panel(name="stability", place="overview", title="Stability over runs", target=f"{_HERE}.panels:stability"),)
