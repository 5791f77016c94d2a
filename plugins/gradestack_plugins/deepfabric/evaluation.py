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
        options: ``profile``, and options of the grader, such as ``weights`` and ``multi_turn``.

    Returns:
        What ``native/deepfabric.json`` holds, metrics and predictions by attribute, and
        ``bad_records``: the lines that no sample could be made of, as summary.json lists them.

    Raises:
        ConfigError: An option cannot be used.
        DataError: A file cannot be used, or ``on_stop: stop`` met a record on which the program
            ends.
    """
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
