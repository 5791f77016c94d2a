"""DeepFabric's weighted tool metrics.

Did the model call the right tool, with arguments its schema accepts?
"""

from __future__ import annotations

from typing import Any

from gradestack import Component, hookimpl

_TABLE = """
reader deepfabric .reader:DeepFabricReader DeepFabric dataset JSONL with recorded replies, in the
    same lines or in a
    second file
grader deepfabric .grader:DeepFabric Tool selection, parameter accuracy and execution success of the
    first call,
    weighted
aggregator deepfabric .aggregators:DeepFabricMetrics DeepFabric's eight figures over total and
    attempted, with score
    bands and advice
exporter deepfabric .exporter:DeepFabricExporter native/deepfabric.json: metrics, predictions and
    config as DeepFabric
    writes them
program deepfabric .program:DeepFabricProgram DeepFabric's evaluation, versions 4.10 to 4.13
panel readiness .panels:readiness Advice for figures that are low
stack deepfabric :stack DeepFabric's weighted tool metrics under the grader key `tools`
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))


def stack() -> dict[str, Any]:
    """Return the suite fragment.

    One grader, whose verdict is the right tool, called with usable arguments.
    """
    figures = (
        "tool_selection_accuracy",
        "parameter_accuracy",
        "execution_success_rate",
        "overall_score",
    )
    headline = {
        "figures": {
            name.replace("_", " ").capitalize(): f"tools.deepfabric.{name}" for name in figures
        },
    }
    return {
        "graders": {"tools": {"kind": "deepfabric"}},
        "outcome": "tools",
        "headline": headline,
    }


def __getattr__(name: str) -> Any:
    """Import ``evaluate`` when it is used: the plugin is imported wherever there are plugins."""
    if name != "evaluate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gradestack_plugins.deepfabric.evaluation import evaluate  # noqa: PLC0415

    return evaluate
