"""Samples and graders of every kind, as callers pass them in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Grader, Input, Inputs, Reader, Shard
from gradestack.errors import ConfigError
from gradestack.model import BadRecord, Sample
from gradestack.registry import Registry, flaw
from gradestack.suites.code import FUNCTIONS, RECORDS, Graders, by_key, key_of
from gradestack.suites.components import FIRST


@attrs.frozen(kw_only=True)
class MemoryReader(Reader):
    """Samples that are already objects, as one shard."""

    samples: Iterator[Sample | BadRecord] = attrs.field(repr=False)
    empty_answers = True
    first: list[Sample | BadRecord] = attrs.field(init=False, repr=False, factory=list)
    """The first samples, which are read twice: before they are graded a stack is chosen by them."""

    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        """Return the one shard."""
        memory = Input(path=Path("memory"), name="memory", shown="memory")
        return [Shard(ordinal=0, input=memory)]

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples, whose iterator can be used once.

        Those that an earlier look took from it (``first``) come first, so that none is lost.
        """
        yield from self.first
        for sample in self.samples:
            if len(self.first) < FIRST:
                self.first.append(sample)
            yield sample


def graders_by_key(graders: Any, registry: Registry) -> dict[str, Any]:
    """Return grader objects, names and mappings by key.

    A class as its object, a function as what calls it.
    """
    if not isinstance(graders, Mapping):
        is_list = isinstance(graders, Sequence) and not isinstance(graders, str)
        several = graders if is_list else [graders]
        named = ((_name_of(grader), grader) for grader in several)
        graders = by_key(named, "give a mapping of keys to graders")
    try:
        return {key: _ready(grader, registry) for key, grader in graders.items()}
    # options that are wrong; or other parameters than a sample
    except (TypeError, ValueError) as error:
        raise ConfigError(f"graders: {error}") from error


def _name_of(grader: Graders) -> str:
    if isinstance(grader, str):
        return key_of(grader)
    if isinstance(grader, Grader):
        return type(grader).__name__
    return getattr(grader, "__name__", "function")


def _ready(grader: Any, registry: Registry) -> Any:
    """Return a grader as a suite takes it: an object for a class, a wrapper for a function."""
    if callable(grader) and not isinstance(grader, Grader | type):
        return registry.load("grader", FUNCTIONS).of(grader)
    is_class = isinstance(grader, type)
    problem = None
    if is_class:
        problem = flaw(grader, "grader")
    if problem is not None:
        raise ConfigError(f"graders: {grader.__name__} {problem}")
    return grader() if is_class else grader


def as_samples(
    samples: Any, registry: Registry, columns: Mapping[str, str] | None = None
) -> Iterator[Sample | BadRecord]:
    """Return samples as they are, mappings as the ``jsonl`` format reads them, tables as
    ``records`` does.
    """
    is_one = isinstance(samples, Sample | Mapping | bytes | bytearray)
    is_path = paths_of(samples) is not None
    is_several = hasattr(samples, "columns") or isinstance(samples, Iterable)
    if is_one or is_path or not is_several:
        expected = "a list of samples or mappings, or a data frame"
        advice = "one sample goes into a list, files are graded by gradestack.grade_files"
        kind = type(samples).__name__
        raise ConfigError(f"samples: expected {expected}, got {kind}; {advice}")
    return _samples(samples, registry, columns)


def _samples(
    samples: Any, registry: Registry, columns: Mapping[str, str] | None
) -> Iterator[Sample | BadRecord]:
    """Yield a sample per object given in Python: tables by their columns, other records as JSON."""
    if columns or hasattr(samples, "columns"):
        try:
            kind = registry.load("reader", RECORDS)
            reader = kind(columns=dict(columns or {}))
        except ValueError as error:
            raise ConfigError(f"columns: {error}") from error
        yield from reader.rows(samples)
        return
    parse = None
    for ordinal, sample in enumerate(samples):
        if isinstance(sample, Sample):
            yield sample
            continue
        if parse is None:
            reader = registry.load("reader", "jsonl")()
            parse = reader.record
        yield parse(sample, file="memory", ordinal=ordinal)


def paths_of(data: Any) -> list[str] | None:
    """Return paths as texts; None when what was given are samples."""
    if isinstance(data, str | Path):
        return [str(data)]
    if not isinstance(data, list | tuple) or not data:
        return None
    are_paths = all(isinstance(path, str | Path) for path in data)
    if are_paths:
        return list(map(str, data))
    return None
