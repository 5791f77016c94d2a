"""header.json: what ran, with which versions and options, on which files.

And what its results depend on.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from gradestack._version import __version__
from gradestack.api import Shard
from gradestack.copies.files import check_original, is_fetched, name_of, original
from gradestack.declared import declared_entry
from gradestack.grading.input_files import FileState, read_ends
from gradestack.grading.loop import Loop
from gradestack.grading.plan import Stage
from gradestack.grading.reading import Bundle
from gradestack.grading.subset import subset_entry
from gradestack.model import JSON
from gradestack.regular_files import checksum, files_below, open_regular, real_paths
from gradestack.report import GENERATOR
from gradestack.suites.options import jsonable
from gradestack.suites.spec import RECORDED, Suite
from gradestack.table import FORM

MADE = "id_made"
"""Kind of remark on a record whose id its reader made up."""
_PIECE = 1 << 20
_DIGEST_BYTES = 16
_PYTHON = ".".join(map(str, sys.version_info[:3]))
_NO_RESULT_DEPENDS_ON = ("engine", "reports", "tables", "limits")
_RANGE_FIELDS = ("ordinal", "start", "end", "first_line", "first_row", "position", "extra")
RealPath = Callable[[Path], Path]


def fingerprint(suite: Suite, **more: Any) -> dict[str, Any]:
    """Collect everything that results depend on, by topic.

    A run can be continued only if it is all the same. Engine and limits may differ.
    """
    real_path = real_paths()
    config = {key: value for key, value in suite.config.items() if key not in _NO_RESULT_DEPENDS_ON}
    options = {
        **more,
        "main": suite.main,
        "same_inputs": suite.same_inputs,
        "tasks": suite.subset.tasks,
    }
    topics: dict[str, Any] = {
        "gradestack": __version__,
        "form of the table of grades": FORM,
        "python": _PYTHON,
        "suite": config,
        "suite's name": suite.name,
        "options": options,
    }
    for name, stage in _stages(suite):
        topics[name] = _stamp_component(stage)
    for file, digest in suite.files.digests.items():
        topics[f"code {file}"] = [digest]
    for input_ in suite.inputs.files:
        topics[f"input {input_.shown}"] = _stamp_files(input_.path, real_path)
    return json.loads(json.dumps(topics))  # type: ignore[no-any-return]


def _stages(suite: Suite) -> Iterator[tuple[str, Stage]]:
    """Yield every component that results depend on, with its topic."""
    for stage in suite.reader.parts or (suite.reader,):
        yield stage.key, stage
    for stage in suite.graders:
        yield f"grader {stage.key}", stage
    for metric in suite.metrics:
        yield f"metric {metric.name}", metric.stage
    for stage in suite.exporters:
        yield f"exporter {stage.key}", stage
    if suite.dataset_reader is not None:
        yield "dataset reader", suite.dataset_reader


def _stamp_component(stage: Stage) -> dict[str, Any]:
    """Describe a stage's component for the header, with stamps of the files its options name."""
    stamp = component_entry(stage)
    if attrs.has(type(stage.component)):
        paths = _paths_in(stage.component)
        stamp["files"] = [file for path in paths for file in _stamp_files(path, Path.resolve)]
    if stage.extractor is not None:
        stamp["extractor"] = _stamp_component(stage.extractor)
    return stamp


def _paths_in(value: Any) -> Iterator[Path]:
    """Yield the paths among the options of a component."""
    if isinstance(value, Path):
        yield value
        return
    members: Iterable[Any] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, Mapping):
        members = value.values()
    elif attrs.has(type(value)):
        fields = attrs.fields(type(value))
        members = [getattr(value, field.name) for field in fields]
    for member in members:
        yield from _paths_in(member)


def _stamp_files(path: Path, real_path: RealPath) -> list[list[Any]]:
    """Return stamps of the files at a path, by which others, and changed ones, are told."""
    stamps = []
    for copy in files_below(path):
        file = original(copy)
        status = file.stat()
        if is_fetched(copy):
            stamps.append([name_of(copy), status.st_size, checksum(file)])
        else:
            stamps.append([str(real_path(file)), status.st_size, status.st_mtime_ns])
    return stamps


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """List the differences between two fingerprints, one line each."""
    lines = []
    for topic in dict.fromkeys([*old, *new]):
        if topic not in new:
            lines.append(f"{topic}: not there any more")
        elif topic not in old:
            lines.append(f"{topic}: was not there")
        elif old[topic] != new[topic]:
            are_texts = isinstance(old[topic], str) and isinstance(new[topic], str)
            change = f"was {old[topic]}, is {new[topic]}" if are_texts else "changed"
            lines.append(f"{topic}: {change}")
    return lines


def range_mark(shard: Shard) -> str:
    """Return a checksum of a shard's fields and of both ends of its byte range."""
    if isinstance(shard, Bundle):
        return _digest("".join(map(range_mark, shard.shards)).encode())
    ends: tuple[bytes, ...] = ()
    with suppress(OSError):  # of a directory, or what reading will say is gone
        ends = read_ends(shard.input.path, shard.start, shard.end)
    about = [shard.input.name, *[getattr(shard, name) for name in _RANGE_FIELDS]]
    text = json.dumps(about, sort_keys=True, default=str)
    return _digest(b"".join([text.encode(), *ends]))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def _checksum(path: Path, state: FileState, real_path: RealPath) -> dict[str, Any]:
    """Return name, size and checksum of an input; null where it cannot be read any more."""
    local = original(path)
    name = name_of(path) if is_fetched(path) else str(real_path(local))
    entry: dict[str, Any] = {"path": name, "bytes": None, "sha256": None}
    with suppress(OSError):
        with open_regular(local) as file:
            left = state.size if local == path else os.fstat(file.fileno()).st_size
            digest = hashlib.sha256()
            while piece := file.read(min(left, _PIECE)):
                digest.update(piece)
                left -= len(piece)
            entry |= {"bytes": file.tell(), "sha256": digest.hexdigest()}
        check_original(path)
    return entry


def component_entry(stage: Stage, of: str | None = None) -> dict[str, Any]:
    """Return the entry of a component in header.json.

    Of an aggregator also which grader it is ``of``.
    """
    options = {
        key: jsonable(value) for key, value in stage.options.items() if not key.startswith("_")
    }
    entry = {
        "kind": stage.kind,
        "key": stage.key,
        "name": stage.name,
        "version": stage.version,
        "distribution": stage.distribution,
        "options": options,
    }
    if stage.code:
        entry["code"] = dict(stage.code)
    if stage.extractor is not None:
        entry["extractor"] = component_entry(stage.extractor)
    if stage.filter:
        entry["filter"] = stage.filter
    entry |= _declared_by(stage)
    return entry if of is None else {**entry, "of": of}


def _declared_by(stage: Stage) -> dict[str, JSON]:
    """Return the declarations of a grader's scores or an aggregator's figures."""
    component = stage.component
    if stage.kind == "aggregator":
        return {"figures": [declared_entry(figure) for figure in component.figures]}
    if stage.kind != "grader":
        return {}
    label = component.label or stage.key
    entry = {
        "label": label,
        "better": component.better,
        "unit": component.score_unit,
    }
    low, high = component.bounds
    if low < 0 or high > 1:
        entry["bounds"] = [None if math.isinf(end) else end for end in (low, high)]
    return entry


def header(suite: Suite, loop: Loop, started: str, timings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of header.json, whose bytes depend on time, place and machine.

    No input may have changed.
    """
    merged, remarks = loop.merged, loop.merged.remarks
    real_path = real_paths()
    states = loop.files.states.items()
    inputs = [_checksum(path, state, real_path) for path, state in states]
    loop.files.check(loop.shards)
    code = suite.files.digests.items()
    rows = RECORDED[suite.rows]
    entry = {
        "generator": GENERATOR,
        "suite_name": suite.name,
        "timestamp": started,
        "version": __version__,
        "python": _PYTHON,
        "profile": suite.profile,
        "rows": rows,
        "components": _component_entries(suite),
        "code": [{"path": file, "sha256": checksum} for file, checksum in code],
        "inputs": inputs,
        "ignored": {kind: remarks[kind][0] for kind in sorted(remarks) if kind != MADE},
        "ids_made": remarks[MADE][0] if MADE in remarks else 0,
        "timings": dict(timings),
    }
    judgements = _judgements(suite, real_path)
    notes = [*suite.notes, *loop.notes]
    warnings = _warnings(suite, loop)
    optional: dict[str, Any] = {
        "judgements": list(judgements),
        "notes": notes,
        "timed_out": merged.timed_out,
        "warnings": list(warnings),
        "resumed": loop.resumed,
    }
    if merged.left_out or suite.subset:
        optional["subset"] = subset_entry(suite.taken, merged.samples, merged.left_out)
    return entry | {name: value for name, value in optional.items() if value}


def _component_entries(suite: Suite) -> list[dict[str, Any]]:
    first = [*(suite.reader.parts or [suite.reader]), *suite.graders]
    last = [*suite.exporters, *suite.programs, suite.engine, *suite.reports]
    metrics = [component_entry(metric.stage, metric.of) for metric in suite.metrics]
    return [*map(component_entry, first), *metrics, *map(component_entry, last)]


def _judgements(suite: Suite, real_path: RealPath) -> Iterator[dict[str, Any]]:
    """Yield the files of verdicts on record that graders have read."""
    for stage in suite.graders:
        path = getattr(stage.component, "judgements", None)
        if path:
            file_state = FileState.of(path.stat())
            checksum = _checksum(path, file_state, real_path)
            yield {"grader": stage.key, **checksum}


def _warnings(suite: Suite, loop: Loop) -> Iterator[str]:
    """Yield warnings about grades that took too long and about input files that grew."""
    timed_out = loop.merged.timed_out
    if timed_out:  # figures with them are this machine's
        count = "1 grade or record" if timed_out == 1 else f"{timed_out} grades or records"
        limit = f"{suite.limits.seconds_per_grade:g} s (limits.seconds_per_grade)"
        outcome = "and failed, or have no reasons: another machine may give other bytes"
        yield f"{count} took longer than {limit} {outcome}; --resume does them again"
    yield from loop.files.grown.values()
