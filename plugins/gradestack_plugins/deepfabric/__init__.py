"""DeepFabric's weighted tool metrics: did the model call the right tool, with arguments its schema accepts?

``evaluate`` and its result classes are loaded on first use, so that listing plugins stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradestack import Component, Kind, hookimpl

if TYPE_CHECKING:
    from gradestack_plugins.deepfabric.exporter import Evaluation, Metrics, Prediction, evaluate

__all__ = ["Evaluation", "Metrics", "Prediction", "evaluate", "gradestack_components"]

_HERE = "gradestack_plugins.deepfabric"
_COMPONENTS: dict[Kind, tuple[str, str]] = {
    "reader": (
        ".reader:DeepFabricReader",
        "DeepFabric dataset JSONL with recorded replies, in the same lines or in a second file",
    ),
    "grader": (
        ".grader:DeepFabric",
        "Tool selection, parameter accuracy and execution success of the first call, weighted",
    ),
    "aggregator": (
        ".aggregators:DeepFabricMetrics",
        "DeepFabric's eight figures over total and attempted, with score bands and advice",
    ),
    "exporter": (
        ".exporter:DeepFabricExporter",
        "native/deepfabric.json: metrics, predictions and config as DeepFabric writes them",
    ),
    "panel": (".panels:Readiness", "The figures with their intervals, the band of the overall score, advice"),
    "stack": (":stack", "DeepFabric's weighted tool metrics under the grader key `tools`"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{_HERE}.exporter"), name)


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the family's reader, grader, aggregator, exporter and stack."""
    return tuple(
        Component(
            kind=kind, name="readiness" if kind == "panel" else "deepfabric", target=f"{_HERE}{path}", summary=text
        )
        for kind, (path, text) in _COMPONENTS.items()
    )


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
