"""DeepFabric's weighted tool metrics.

Did the model call the right tool, with arguments its schema accepts?
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradestack
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
panel readiness .panels:Readiness Advice for figures that are low
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
    return {
        "graders": {"tools": {"kind": "deepfabric"}},
        "outcome": "tools",
        "headline": {
            "figures": {
                name.replace("_", " ").capitalize(): f"tools.deepfabric.{name}" for name in figures
            },
        },
    }


Records = str | Path | Sequence[Any]  # a JSONL file, or its lines decoded


def evaluate(dataset: Records, replies: Records | None = None, **options: Any) -> SimpleNamespace:
    """Grade recorded replies and return DeepFabric's result object.

    ``metrics``, ``predictions`` and ``config``.

    Args:
        dataset: JSONL file, or decoded lines: records with their replies, or without where
            ``replies`` has these.
        replies: JSONL file, or decoded replies to the records at the same places.
        options: ``profile``, and options of the grader, such as ``weights`` and ``multi_turn``.

    Returns:
        What ``native/deepfabric.json`` holds, metrics and predictions by attribute, and
        ``bad_records``: the lines that no sample could be made of, as summary.json lists them.

    Raises:
        ConfigError: An option cannot be used.
        DataError: A file cannot be used, or ``on_stop: stop`` met a record on which the program
            ends.
    """
    # the plugin is imported wherever there are plugins, this is rarely called
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as place:
        given = (
            {"dataset": dataset} if replies is None else {"dataset": dataset, "replies": replies}
        )
        files = [_file(records, Path(place, f"{name}.jsonl")) for name, records in given.items()]
        suite = {
            "name": "deepfabric",
            "profile": options.pop("profile", "documented"),
            **({} if replies is None else {"dataset": files[0]}),
            "target": {"paths": [files[-1]], "reader": "deepfabric"},
            "graders": {"tools": {"kind": "deepfabric", **options}},
            "reports": [],
        }
        out = Path(place, "run")
        report = gradestack.run(suite, output=out, rows="none")
        found = json.loads((out / "native/deepfabric.json").read_bytes())
        bad = report.summary["bad_records"]["listed"]
    return SimpleNamespace(
        metrics=SimpleNamespace(**found["metrics"]),
        predictions=[SimpleNamespace(**each) for each in found["predictions"]],
        config=found["config"],
        bad_records=bad,
    )


def _file(records: Records, place: Path) -> str:
    if isinstance(records, str | Path):
        return str(records)
    place.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return str(place)
