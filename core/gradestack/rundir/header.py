"""header.json: what ran, with which versions and options, on which files.

And what its results depend on.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from gradestack.regular_files import files_below, open_regular, real_paths
from gradestack.report import GENERATOR
from gradestack.suites.options import jsonable
from gradestack.suites.spec import RECORDED, Suite
from gradestack.table import FORM

_PIECE = 1 << 20


def _stamps(path: Path, real_path: Callable[[Path], Path]) -> list[list[Any]]:
    found = []
    for copy in files_below(path):
        file = original(copy)
        stat = file.stat()
        if is_fetched(copy):
            with open_regular(file) as opened:
                found.append(
                    [name_of(copy), stat.st_size, hashlib.file_digest(opened, "sha256").hexdigest()]
                )
        else:
            found.append([str(real_path(file)), stat.st_size, stat.st_mtime_ns])
    return found


def _named_files(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
        return
    inner: Iterable[Any] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif attrs.has(type(value)):
        inner = (getattr(value, field.name) for field in attrs.fields(type(value)))
    for each in inner:
        yield from _named_files(each)


def _component(stage: Stage) -> dict[str, Any]:
    found = component_entry(stage)
    if attrs.has(type(stage.component)):
        found["files"] = [
            stamp for path in _named_files(stage.component) for stamp in _stamps(path, Path.resolve)
        ]
    if stage.extractor is not None:
        found["extractor"] = _component(stage.extractor)
    return found


def fingerprint(suite: Suite, **more: Any) -> dict[str, Any]:
    """Return what results depend on, topic -> content.

    A run may be continued with another engine and limits.
    """
    stages = {each.key: each for each in suite.reader.parts or (suite.reader,)}
    stages |= {f"grader {stage.key}": stage for stage in suite.graders}
    stages |= {f"metric {metric.of}/{metric.stage.key}": metric.stage for metric in suite.metrics}
    stages |= {f"exporter {stage.key}": stage for stage in suite.exporters}
    if suite.dataset_reader is not None:
        stages["dataset reader"] = suite.dataset_reader
    real_path = real_paths()
    found: dict[str, Any] = {
        "gradestack": __version__,
        "form of the table of grades": FORM,
        "python": ".".join(map(str, sys.version_info[:3])),
        "suite": {
            key: value
            for key, value in suite.config.items()
            if key not in ("engine", "reports", "tables", "limits")
        },
        "suite's name": suite.name,
        "options": {
            **more,
            "main": suite.main,
            "same_inputs": suite.same_inputs,
            "tasks": suite.subset.tasks,
        },
        **{name: _component(stage) for name, stage in stages.items()},
        **{f"code {file}": [checksum] for file, checksum in suite.files.digests.items()},
        **{f"input {each.shown}": _stamps(each.path, real_path) for each in suite.inputs.files},
    }
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what differs between two fingerprints, one line each."""
    found = []
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            found.append(f"{name}: not there any more")
        elif name not in old:
            found.append(f"{name}: was not there")
        elif old[name] != new[name]:
            plain = isinstance(old[name], str) and isinstance(new[name], str)
            found.append(
                f"{name}: was {old[name]}, is {new[name]}" if plain else f"{name}: changed"
            )
    return found


def range_mark(shard: Shard) -> str:
    """Return a checksum of a shard: what it is, and both ends of its range."""
    if isinstance(shard, Bundle):
        marks = "".join(map(range_mark, shard.shards))
        return hashlib.blake2b(marks.encode(), digest_size=16).hexdigest()
    what = [
        shard.ordinal,
        shard.input.name,
        shard.start,
        shard.end,
        shard.first_line,
        shard.first_row,
        shard.position,
    ]
    ends: tuple[bytes, ...] = ()
    with suppress(OSError):  # of a directory, or what reading will say is gone
        ends = read_ends(shard.input.path, shard.start, shard.end)
    text = json.dumps([*what, shard.extra], sort_keys=True, default=str).encode()
    return hashlib.blake2b(b"".join([text, *ends]), digest_size=16).hexdigest()


MADE = "id_made"  # what readers remark on a record whose id they made up


def _checksum(path: Path, state: FileState, real_path: Callable[[Path], Path]) -> dict[str, Any]:
    local = original(path)
    name = name_of(path) if is_fetched(path) else str(real_path(local))
    found: dict[str, Any] = {"path": name, "bytes": None, "sha256": None}
    with suppress(OSError):
        with open_regular(local) as file:
            digest, left = (
                hashlib.sha256(),
                state.size if local == path else os.fstat(file.fileno()).st_size,
            )
            while piece := file.read(min(left, _PIECE)):
                digest.update(piece)
                left -= len(piece)
            found |= {"bytes": file.tell(), "sha256": digest.hexdigest()}
        check_original(path)
    return found


def _declared(stage: Stage) -> dict[str, JSON]:
    component = stage.component
    if stage.kind == "grader":
        low, high = component.bounds
        bounds = (
            {}
            if low >= 0 and high <= 1
            else {"bounds": [None if math.isinf(end) else end for end in (low, high)]}
        )
        label = component.label or stage.key
        return {"label": label, "better": component.better, "unit": component.score_unit, **bounds}
    if stage.kind == "aggregator":
        return {"figures": [declared_entry(each) for each in component.figures]}
    return {}


def component_entry(stage: Stage, of: str | None = None) -> dict[str, Any]:
    """Return what header.json says of a component.

    Of an aggregator also which grader it is ``of``.
    """
    return {
        "kind": stage.kind,
        "key": stage.key,
        "name": stage.name,
        "version": stage.version,
        "distribution": stage.distribution,
        "options": {
            key: jsonable(each) for key, each in stage.options.items() if not key.startswith("_")
        },
        **({"code": dict(stage.code)} if stage.code else {}),
        **({} if stage.extractor is None else {"extractor": component_entry(stage.extractor)}),
        **({"filter": stage.filter} if stage.filter else {}),
        **_declared(stage),
        **({} if of is None else {"of": of}),
    }


def header(suite: Suite, loop: Loop, started: str, timings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of header.json, whose bytes depend on time, place and machine.

    No input may have changed.
    """
    merged = loop.merged
    remarks: Mapping[str, Sequence[Any]] = merged.remarks
    real_path = real_paths()
    checksums = [_checksum(path, state, real_path) for path, state in loop.files.states.items()]
    loop.files.check(loop.shards)
    journals = [
        (stage.key, getattr(stage.component, "judgements", None)) for stage in suite.graders
    ]
    judged = [
        {"grader": key, **_checksum(path, FileState.of(path.stat()), real_path)}
        for key, path in journals
        if path
    ]
    warnings = list(loop.files.grown.values())
    if merged.timed_out:  # figures with them are this machine's
        many = (
            "1 grade or record"
            if merged.timed_out == 1
            else f"{merged.timed_out} grades or records"
        )
        limit = f"{suite.limits.seconds_per_grade:g} s (limits.seconds_per_grade)"
        what = (
            "and failed, or have no reasons: another machine may give other bytes; --resume "
            "does them again"
        )
        warnings.insert(0, f"{many} took longer than {limit} {what}")
    optional = {
        "judgements": judged,
        "subset": subset_entry(suite.taken, merged.samples, merged.left_out)
        if merged.left_out or suite.subset
        else None,
        "notes": [*suite.notes, *loop.notes],
        "timed_out": merged.timed_out,
        "warnings": warnings,
        "resumed": loop.resumed,
    }
    found = {
        "generator": GENERATOR,
        "suite_name": suite.name,
        "timestamp": started,
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "profile": suite.profile,
        "rows": RECORDED[suite.rows],
        "components": [
            *map(component_entry, [*(suite.reader.parts or [suite.reader]), *suite.graders]),
            *(component_entry(metric.stage, metric.of) for metric in suite.metrics),
            *map(
                component_entry,
                [*suite.exporters, *suite.programs, suite.engine, *suite.reports],
            ),
        ],
        "code": [
            {"path": file, "sha256": checksum} for file, checksum in suite.files.digests.items()
        ],
        "inputs": checksums,
        "ignored": {kind: remarks[kind][0] for kind in sorted(remarks) if kind != MADE},
        "ids_made": remarks[MADE][0] if MADE in remarks else 0,
        "timings": dict(timings),
    }
    return found | {name: each for name, each in optional.items() if each}
