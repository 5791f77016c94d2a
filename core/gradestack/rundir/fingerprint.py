"""What the results of a run depend on, so that a run that is continued is the run that was begun."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack._version import __version__
from gradestack.api import Input, Shard
from gradestack.copies.names import is_fetched, name_of, original
from gradestack.grading.plan import Stage
from gradestack.suites.spec import Suite, jsonable
from gradestack.table import FORM

_SAMPLE = 64 * 1024
"""Bytes at either end of a range that its checksum covers."""


def files_below(path: Path) -> Iterator[Path]:
    """Yield a file itself, or the files below a directory, sorted."""
    yield from [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())


def _stamps(path: Path) -> list[list[Any]]:
    found = []
    for copy in files_below(path):
        file = original(copy)
        stat = file.stat()
        if is_fetched(copy):
            with file.open("rb") as opened:
                found.append([name_of(copy), stat.st_size, hashlib.file_digest(opened, "sha256").hexdigest()])
        else:
            found.append([str(file.resolve()), stat.st_size, stat.st_mtime_ns])
    return found


def _named_files(value: Any) -> Iterator[Path]:
    """Yield the paths among a component's options."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _named_files(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _named_files(each)
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            yield from _named_files(getattr(value, field.name))


def _component(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = {"name": stage.name, "version": stage.version, "distribution": stage.distribution}
    found["options"] = {key: jsonable(each) for key, each in stage.options.items() if not key.startswith("_")}
    if attrs.has(type(stage.component)):
        found["files"] = [stamp for path in _named_files(stage.component) for stamp in _stamps(path)]
    if stage.extractor is not None:
        found["extractor"] = _component(stage.extractor)
    return found


def fingerprint(suite: Suite, **more: Any) -> dict[str, Any]:
    """Return what the results of a run depend on, as JSON data: topic -> content.

    The engine and the reports are not in it, nor are limits: a run may be continued with others.
    """
    stages: dict[str, Stage] = {"reader": suite.reader}
    stages |= {f"grader {stage.key}": stage for stage in suite.graders}
    stages |= {f"metric {metric.of}/{metric.stage.key}": metric.stage for metric in suite.metrics}
    stages |= {f"exporter {stage.key}": stage for stage in suite.exporters}
    if suite.dataset_reader is not None:
        stages["dataset reader"] = suite.dataset_reader
    given: list[Input] = [*suite.inputs.data, *([suite.inputs.dataset] if suite.inputs.dataset else [])]
    found: dict[str, Any] = {
        "gradestack": __version__,
        "form of the table of grades": FORM,
        "python": ".".join(map(str, sys.version_info[:3])),
        "suite": {key: value for key, value in suite.config.items() if key not in ("engine", "reports", "limits")},
        "suite's name": suite.name,
        "options": {**more, "main": suite.main, "same_inputs": suite.same_inputs},
        **{name: _component(stage) for name, stage in stages.items()},
        **{f"code {file}": [checksum] for file, checksum in suite.files.digests.items()},
        **{f"input {each.shown}": _stamps(each.path) for each in given},
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
            found.append(f"{name}: was {old[name]}, is {new[name]}" if plain else f"{name}: changed")
    return found


def range_mark(shard: Shard) -> str:
    """Return a checksum of a shard: what it is, and the first and last 64 KiB of its range."""
    digest = hashlib.blake2b(digest_size=16)
    what = [shard.ordinal, shard.input.name, shard.start, shard.end, shard.first_line, shard.first_row, shard.position]
    digest.update(json.dumps([*what, shard.extra], sort_keys=True, default=str).encode())
    if shard.input.path.is_file():
        with shard.input.path.open("rb") as file:
            end = shard.input.path.stat().st_size if shard.end is None else shard.end
            file.seek(shard.start)
            digest.update(file.read(min(_SAMPLE, max(0, end - shard.start))))
            file.seek(max(shard.start, end - _SAMPLE))
            digest.update(file.read(min(_SAMPLE, max(0, end - shard.start))))
    return digest.hexdigest()
