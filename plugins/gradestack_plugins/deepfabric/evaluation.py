"""DeepFabric's evaluation as one function."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradestack

Records = str | Path | Sequence[Any]  # a JSONL file, or its lines decoded


def evaluate(dataset: Records, replies: Records | None = None, **options: Any) -> SimpleNamespace:
    """Grade recorded replies and return DeepFabric's result object.

    ``metrics``, ``predictions`` and ``config``.

    Args:
        dataset: JSONL file, or decoded lines: records with their replies, or without where
            ``replies`` has these.
        replies: JSONL file, or decoded replies to the records at the same places.
        options: ``profile``, and options of the grader, such as ``metric_weights``.

    Returns:
        What ``native/deepfabric.json`` holds, metrics and predictions by attribute, and
        ``bad_records``: the lines that no sample could be made of, as summary.json lists them.

    Raises:
        ConfigError: An option cannot be used.
        DataError: A file cannot be used.
    """
    with tempfile.TemporaryDirectory() as folder:
        profile = options.pop("profile", "documented")
        suite: dict[str, Any] = {
            "name": "deepfabric",
            "profile": profile,
            "graders": {"tools": {"kind": "deepfabric", **options}},
            "reports": [],
        }
        path = _path_of(dataset, Path(folder, "dataset.jsonl"))
        if replies is not None:
            suite["dataset"] = path
            path = _path_of(replies, Path(folder, "replies.jsonl"))
        suite["target"] = {"paths": [path], "reader": "deepfabric"}
        output = Path(folder, "run")
        report = gradestack.run(suite, output=output, rows="none")
        text = Path(folder, "run/native/deepfabric.json").read_bytes()
        native = json.loads(text)
        bad_records = report.summary["bad_records"]["listed"]
    metrics = SimpleNamespace(**native["metrics"])
    predictions = [SimpleNamespace(**prediction) for prediction in native["predictions"]]
    return SimpleNamespace(
        metrics=metrics,
        predictions=predictions,
        config=native["config"],
        bad_records=bad_records,
    )


def _path_of(records: Records, path: Path) -> str:
    if isinstance(records, str | Path):
        return str(records)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)
