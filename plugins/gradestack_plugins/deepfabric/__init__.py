"""DeepFabric's weighted tool metrics: did the model call the right tool, with arguments its schema accepts?

``evaluate`` and its result classes are loaded on first use, so that listing plugins stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradestack import Component, Panel, hookimpl

if TYPE_CHECKING:
    from gradestack_plugins.deepfabric.evaluation import Evaluation, Metrics, evaluate
    from gradestack_plugins.deepfabric.predictions import Prediction

__all__ = ["Evaluation", "Metrics", "Prediction", "evaluate", "gradestack_components"]

_PACKAGE = "gradestack_plugins.deepfabric"
_LAZY = {"Evaluation": "evaluation", "Metrics": "evaluation", "Prediction": "predictions", "evaluate": "evaluation"}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the family's reader, grader, aggregator, exporter and stack."""
    return (
        Component(
            kind="reader",
            name="deepfabric",
            target=f"{_PACKAGE}.reader:DeepFabricReader",
            summary="DeepFabric dataset JSONL with recorded replies, in the same lines or in a second file",
        ),
        Component(
            kind="grader",
            name="deepfabric",
            target=f"{_PACKAGE}.grader:DeepFabric",
            summary="Tool selection, parameter accuracy and execution success of the first call, weighted",
        ),
        Component(
            kind="aggregator",
            name="deepfabric",
            target=f"{_PACKAGE}.aggregators:DeepFabricMetrics",
            summary="DeepFabric's eight figures over total and attempted, with score bands and advice",
        ),
        Component(
            kind="exporter",
            name="deepfabric",
            target=f"{_PACKAGE}.exporter:DeepFabricExporter",
            summary="native/deepfabric.json: metrics, predictions and config as DeepFabric writes them",
        ),
        Component(
            kind="stack",
            name="deepfabric",
            target=f"{_PACKAGE}.stacks:deepfabric",
            summary="DeepFabric's weighted tool metrics under the grader key `tools`",
        ),
    )


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{_PACKAGE}.{module}"), name)


@hookimpl
def gradestack_panels() -> tuple[Panel, ...]:
    """Return what the family shows on pages."""
    return (Panel(name="readiness", place="overview", title="Readiness", target=f"{_PACKAGE}.panels:readiness"),)
