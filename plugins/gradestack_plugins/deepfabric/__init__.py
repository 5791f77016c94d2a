"""DeepFabric's weighted tool metrics: did the model call the right tool, with arguments its schema accepts?

``evaluate`` and its result classes are loaded on first use, so that listing plugins stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradestack import Component, hookimpl

if TYPE_CHECKING:
    from gradestack_plugins.deepfabric.exporter import Evaluation, Metrics, Prediction, evaluate

__all__ = ["Evaluation", "Metrics", "Prediction", "evaluate", "gradestack_components"]

_TABLE = """
reader deepfabric .reader:DeepFabricReader DeepFabric dataset JSONL with recorded replies, in the same lines or in a
    second file
grader deepfabric .grader:DeepFabric Tool selection, parameter accuracy and execution success of the first call,
    weighted
aggregator deepfabric .aggregators:DeepFabricMetrics DeepFabric's eight figures over total and attempted, with score
    bands and advice
exporter deepfabric .exporter:DeepFabricExporter native/deepfabric.json: metrics, predictions and config as DeepFabric
    writes them
panel readiness .panels:Readiness The figures with their intervals, the band of the overall score, advice
stack deepfabric :stack DeepFabric's weighted tool metrics under the grader key `tools`
"""


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the family's reader, grader, aggregator, exporter and stack."""
    return Component.table(__name__, _TABLE)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.exporter"), name)


def stack() -> dict[str, Any]:
    """Return the suite fragment: one grader, whose verdict is the right tool, called with usable arguments."""
    figures = ("tool_selection_accuracy", "parameter_accuracy", "execution_success_rate", "overall_score")
    return {
        "graders": {"tools": {"kind": "deepfabric"}},
        "outcome": "tools",
        "headline": {
            "figures": {name.replace("_", " ").capitalize(): f"tools.deepfabric.{name}" for name in figures},
        },
    }
