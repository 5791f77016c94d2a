"""OrchestrationBench.

Call/rejection decisions, function calls and workflow plans of orchestrating agents.
"""

from __future__ import annotations

from typing import Any

from gradestack import Component, hookimpl

_FAMILY = "orchestrationbench"
_TABLE = """
reader orchestrationbench .reader:OrchestrationBenchReader Scenario outputs: a directory of
    *_out.json or single files
grader orchestrationbench .graders:OrchestrationBench Decisions, calls and plans in one grade
aggregator orchestrationbench .aggregators:OrchestrationBenchFigures Average, classification
    accuracy, FC and Plan, with
    details
exporter orchestrationbench .exporter:OrchestrationBenchExporter orchestrationbench.json, the
    original's result file
program orchestrationbench .program:OrchestrationBenchProgram OrchestrationBench's own evaluator
stack orchestrationbench :stack decisions, calls and plans of OrchestrationBench
panel decisions .panels:decisions What was decided where a call, or a rejection, was right
panel plans .panels:plans Workflows of a sample, as expected and as made
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))


def stack() -> dict[str, Any]:
    """Return the grader of the family, and the figures of its headline."""
    figures = {
        "Average": "average",
        "Call Rejection Classification Accuracy": "call_rejection_accuracy",
        "FC": "fc",
        "Plan": "plan",
    }
    paths = {label: f"{_FAMILY}.{_FAMILY}.{name}" for label, name in figures.items()}
    return {
        "graders": {_FAMILY: {"kind": _FAMILY}},
        "outcome": "none",
        "headline": {"figures": paths},
    }
