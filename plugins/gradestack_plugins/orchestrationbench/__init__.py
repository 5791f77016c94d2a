"""OrchestrationBench: call/rejection decisions, function calls and workflow plans of orchestrating agents."""

from __future__ import annotations

from typing import Any

from gradestack import Component, Kind, hookimpl

_PACKAGE = "gradestack_plugins.orchestrationbench"
_BENCH = "orchestrationbench"
_COMPONENTS: dict[Kind, dict[str, tuple[str, str]]] = {
    "reader": {
        _BENCH: (".reader:OrchestrationBenchReader", "Scenario outputs: a directory of *_out.json or single files"),
        "orchestrationbench_scenario": (
            ".reader:ScenarioReader",
            "Scenario YAML: gold calls and plans as a dataset",
        ),
    },
    "grader": {
        _BENCH: (".graders:OrchestrationBench", "Decisions, calls and plans in one grade"),
        "orchestration_decision": (
            ".graders:OrchestrationDecision",
            "call a tool or refuse to: every sub-agent turn against gold",
        ),
        "orchestration_call": (
            ".graders:OrchestrationCall",
            "F1 of names, argument keys and values where both sides call",
        ),
        "orchestration_plan": (".graders:OrchestrationPlan", "similarity of workflow plans by graph edit distance"),
    },
    "aggregator": {
        _BENCH: (
            ".aggregators:OrchestrationBenchFigures",
            "Average, classification accuracy, FC and Plan, with details",
        ),
        "orchestration_decisions": (
            ".aggregators:OrchestrationDecisions",
            "call/rejection matrix, precision, recall, F1, overaction",
        ),
        "orchestration_calls": (".aggregators:OrchestrationCalls", "function name, key, value F1 over files, and FC"),
        "orchestration_plans": (
            ".aggregators:OrchestrationPlans",
            "plan similarity with and without failures over files",
        ),
    },
    "exporter": {
        _BENCH: (".aggregators:OrchestrationBenchExporter", "orchestrationbench.json, the original's result file"),
    },
    "stack": {_BENCH: (":stack", "all graders of OrchestrationBench")},
    "panel": {
        "decisions": (".panels:Decisions", "What was decided where a call, or a rejection, was right"),
        "plans": (".panels:Plans", "Workflows of a sample, as expected and as made"),
    },
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return tuple(
        Component(kind=kind, name=name, target=_PACKAGE + path, summary=text)
        for kind, named in _COMPONENTS.items()
        for name, (path, text) in named.items()
    )


def stack() -> dict[str, Any]:
    """Return the graders of the family; the first gives the score of a trial, the others show single steps.

    The headline has the four key metrics. A trial neither passes nor fails: there is no outcome.
    """
    graders = {name.removeprefix("orchestration_"): {"kind": name} for name in _COMPONENTS["grader"]}
    keys = ("average", "call_rejection_accuracy", "fc", "plan")
    labels = ("Average", "Call Rejection Classification Accuracy", "FC", "Plan")
    figures = {label: f"orchestrationbench.orchestrationbench.{key}" for label, key in zip(labels, keys, strict=True)}
    return {"graders": graders, "outcome": "none", "headline": {"figures": figures}}
