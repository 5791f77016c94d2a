"""Grading from Python one sample after the other, keeping nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from gradestack.api import Grader, Profile
from gradestack.copies.files import named_as_given
from gradestack.model import BadRecord, Grade, Sample
from gradestack.output.terminal import terminal_line
from gradestack.python_api import installed
from gradestack.registry import Registry
from gradestack.rundir.recorder import stream_grades
from gradestack.suites.document import Document
from gradestack.suites.memory import Graders, MemoryReader, Samples, as_samples, graders_by_key, paths_of
from gradestack.suites.resolve import resolve, resolve_samples
from gradestack.suites.spec import RunOptions


def stream(
    data: Samples | str | Path | Sequence[str | Path],
    graders: Graders | Sequence[Graders] | Mapping[str, Graders | Mapping[str, Any]],
    *,
    profile: Profile = "documented",
    reader: str | None = None,
    dataset: str | Path | None = None,
    allow_code: bool = False,
    strict: bool = False,
    bad: Callable[[BadRecord], None] | None = None,
    registry: Registry | None = None,
) -> Iterator[tuple[Sample, Mapping[str, Grade]]]:
    """Grade samples one after the other and yield each with its grades, keeping nothing: memory stays constant.

    Grading is serial, at most a block of samples ahead of the caller, and nothing is written. Files are closed when
    the caller leaves the loop.

    Args:
        data: Samples, or mappings in the form of the ``jsonl`` format; or the path of a result file or directory, or
            several of one format.
        graders: As for :func:`grade`.
        profile: ``documented`` (default) or ``upstream``, for the reader and graders given by name.
        reader: Name of the files' format; default: recognised.
        dataset: File with expectations, joined by id; its rows that no record answers come last, as missing.
        allow_code: Import Python files that are named.
        strict: Raise at the first bad record or raising grader.
        bad: Called with every record no sample could be made of; default: a warning each.
        registry: Plugins to use; default: all installed ones.

    Returns:
        Each sample with its grades by grader key, in input order.

    Raises:
        ConfigError: A grader that cannot be honoured.
        DataError: An input that cannot be read, or holds no sample.
        PluginError: A plugin in use is broken.

    Example:
        >>> for sample, grades in gradestack.stream("results.json", ["tau_partial"]):  # doctest: +SKIP
        ...     print(sample.id, grades["tau_partial"].score)
    """
    registry = installed(registry)
    options = RunOptions(allow_code=allow_code, strict=strict, registry=registry)
    ready = graders_by_key(graders, registry)
    paths = paths_of(data)
    if paths is None:
        document = Document(data={"name": "samples", "profile": profile}, origin="stream()")
        suite = resolve_samples(
            document, options, MemoryReader(samples=as_samples(cast("Samples", data), registry)), ready
        )
    else:
        made = {key: each for key, each in ready.items() if isinstance(each, Grader)}
        given = {"reader": reader, "dataset": dataset and str(dataset), "profile": profile}
        content: dict[str, Any] = {key: each for key, each in given.items() if each is not None}
        content["target"] = {"paths": paths}
        content["graders"] = {key: {} if key in made else each for key, each in ready.items()}
        options = attrs.evolve(options, allow_remote=True)  # the caller names all files
        suite = resolve(Document(data=content, origin="stream()"), options, made=made)
    plan = attrs.evolve(suite.bare(), metrics=(), exporters=(), table=False)
    return _named(stream_grades(plan, bad or _warn, strict=strict))


def _named(graded: Iterator[tuple[Sample, Mapping[str, Grade]]]) -> Iterator[tuple[Sample, Mapping[str, Grade]]]:
    """Yield samples with their grades; errors name inputs as they were given."""
    with named_as_given():
        yield from graded


def _warn(record: BadRecord) -> None:
    warnings.warn(terminal_line(f"{record.source}: {record.reason}"), stacklevel=4)
