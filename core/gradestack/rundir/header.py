"""header.json: what ran, with which versions and options, on which files."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from gradestack._version import __version__
from gradestack.copies.names import is_fetched, name_of, original
from gradestack.grading.merging import Merged
from gradestack.grading.plan import Stage
from gradestack.jsonio.values import json_data
from gradestack.model import JSON
from gradestack.report import GENERATOR
from gradestack.rundir.fingerprint import files_below
from gradestack.suites.spec import RECORDED, Suite, jsonable

MADE = "id_made"
"""What readers remark on a record whose id they made up."""


def _checksum(path: Path) -> dict[str, Any]:
    """Return path, size and SHA-256 of an input file; None for what cannot be had of one that is gone by now."""
    local = original(path)
    found: dict[str, Any] = {
        "path": name_of(path) if is_fetched(path) else str(local.resolve()),
        "bytes": None,
        "sha256": None,
    }
    try:
        with local.open("rb") as file:
            found["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
            found["bytes"] = file.tell()
    except OSError:
        return found
    return found


def _absolute(path: Any) -> str:
    path = Path(path)
    return name_of(path) if is_fetched(path) else str(original(path).absolute())


def _recording(suite: Suite) -> dict[str, Any]:
    """Return how the trajectories of a slim run are read again: by which reader, from which paths."""
    reader = suite.reader.component
    options = {
        field.name: json_data(getattr(reader, field.name), _absolute)
        for field in (attrs.fields(type(reader)) if attrs.has(type(reader)) else ())
        if field.init and field.name in suite.reader.options
    }
    given = {"inputs": list(suite.inputs.data), "dataset": suite.inputs.dataset if reader.takes_dataset else None}
    shown = json_data(given, _absolute)
    return {"reader": suite.reader.name, "options": options, **shown}


def _bounds(stage: Stage) -> dict[str, JSON]:
    """Return the bounds of a grader's scores where they are no shares; null for one that is infinite."""
    low, high = getattr(stage.component, "bounds", (0.0, 1.0)) if stage.kind == "grader" else (0.0, 1.0)
    return {} if low >= 0 and high <= 1 else {"bounds": [None if math.isinf(end) else end for end in (low, high)]}


def _declared(stage: Stage) -> dict[str, JSON]:
    """Return what a grader says of its score, or an aggregator of its figures: labels, directions, units."""
    component = stage.component
    if stage.kind == "grader":
        return {"label": component.label or stage.key, "better": component.better, "unit": component.score_unit}
    if stage.kind == "aggregator":
        names = ("name", "label", "better", "unit")
        return {"figures": [{name: getattr(each, name) for name in names} for each in component.figures]}
    return {}


def component_entry(stage: Stage, of: str | None = None) -> dict[str, Any]:
    """Return what header.json says of a component; of an aggregator also which grader it is ``of``.

    ``code`` stands only in the entry of one that is the user's own, ``extractor`` in that of a grader of texts.
    """
    return {
        "kind": stage.kind,
        "key": stage.key,
        "name": stage.name,
        "version": stage.version,
        "distribution": stage.distribution,
        "options": {key: jsonable(each) for key, each in stage.options.items() if not key.startswith("_")},
        **({"code": dict(stage.code)} if stage.code else {}),
        **({} if stage.extractor is None else {"extractor": component_entry(stage.extractor)}),
        **_bounds(stage),
        **_declared(stage),
        **({} if of is None else {"of": of}),
    }


def peak_memory() -> dict[str, int]:
    """Return the most memory this process has had at once, and the largest of its workers, in bytes."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return {}
    unit = 1 if sys.platform == "darwin" else 1024
    kinds = {"main": resource.RUSAGE_SELF, "largest_worker": resource.RUSAGE_CHILDREN}
    return {name: resource.getrusage(kind).ru_maxrss * unit for name, kind in kinds.items()}


def header(
    suite: Suite, started: str, timings: Mapping[str, Any], remarks: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """Return the content of header.json, the one file whose bytes depend on time, place and machine."""
    before: list[Stage] = [suite.reader, *suite.graders]
    after: list[Stage] = [*suite.exporters, suite.engine, *suite.reports]
    given = [each.path for each in (*suite.inputs.data, suite.inputs.dataset) if each is not None]
    files = [file for path in given for file in (files_below(path) if path.is_dir() else [path])]
    return {
        "generator": GENERATOR,
        "suite_name": suite.name,
        "timestamp": started,
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "profile": suite.profile,
        "rows": RECORDED[suite.rows],
        "components": [
            *map(component_entry, before),
            *(component_entry(metric.stage, metric.of) for metric in suite.metrics),
            *map(component_entry, after),
        ],
        "code": [{"path": file, "sha256": checksum} for file, checksum in suite.files.digests.items()],
        "inputs": [_checksum(path) for path in files],
        "ignored": {kind: remarks[kind][0] for kind in sorted(remarks) if kind != MADE},
        "ids_made": remarks[MADE][0] if MADE in remarks else 0,
        **({"recording": _recording(suite)} if suite.rows == "slim" else {}),
        "timings": dict(timings),
        "peak_memory": peak_memory(),
    }


def timed_out(suite: Suite, merged: Merged) -> dict[str, Any]:
    """Return what header.json says of grades that took too long: figures with them are this machine's."""
    if not merged.timed_out:
        return {}
    many = f"{merged.timed_out} grade{'s' if merged.timed_out > 1 else ''} took longer than"
    limit = f"{suite.seconds_per_grade:g} s (limits.seconds_per_grade)"
    told = f"{many} {limit} and failed: another machine may give other bytes; --resume does them again"
    return {"timed_out": merged.timed_out, "warnings": [told]}
