"""Part of a run's samples: those an expression is true of, of some tasks, the first ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from gradestack.errors import ConfigError, suggest
from gradestack.grading.filters import Fields, parse_expression
from gradestack.output import counted
from gradestack.regular_files import read_text

_NAMED = 20
"""Facets that a message names."""


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that count; by default all do."""

    filter: str = ""
    tasks: tuple[str, ...] | None = None
    limit: int = 0
    """The first tasks of those that are left; 0: all."""
    tags: str = ""

    def __bool__(self) -> bool:
        return bool(self.filter or self.limit) or self.tasks is not None

    def __str__(self) -> str:
        """Describe the choice in words: filter, task list, tags and limit."""
        parts = [f"filter {self.filter}"] if self.filter else []
        if self.tasks is not None:
            parts.append(f"tasks of a list of {len(self.tasks):,}")
        if self.tags:
            parts.append(self.tags)
        if self.limit:
            parts.append(f"the first {counted(self.limit, 'task')}")
        return ", ".join(parts)

    @classmethod
    def read(
        cls,
        filter: str | None,  # noqa: A002 (as the option is called)
        tasks: str | Path | None,
        limit: int | None,
    ) -> Subset:
        """Return the subset that callers ask for."""
        if limit is not None and limit < 1:
            raise ConfigError(f"limit: expected at least 1 task, got {limit}")
        if filter is not None:
            parse_expression(filter)
        ids = None if tasks is None else read_ids(Path(tasks))
        return cls(filter=filter or "", tasks=ids, limit=limit or 0)

    def admits(self, fields: Fields) -> bool:
        """Return whether a sample is of the tasks, and the expression true of it."""
        if self.tasks is not None and fields.id not in _as_set(self.tasks):
            return False
        return not self.filter or bool(parse_expression(self.filter).holds(fields))


_as_set = lru_cache(8)(frozenset[str])


def left_out_text(subset: Subset, count: int, left_out: int) -> str:
    """Describe in one sentence the samples that are left out, and why."""
    return f"{left_out:,} of {count + left_out:,} runs are left out: {subset}"


def subset_entry(subset: Subset, count: int, left_out: int) -> dict[str, Any]:
    """Return the same for a run's header and summary."""
    tasks = len(subset.tasks or ())
    entry = {"filter": subset.filter, "tasks": tasks, "limit": subset.limit, "tags": subset.tags}
    filled = {name: value for name, value in entry.items() if value}
    return {**filled, "taken": count, "left_out": left_out}


def not_found(subset: Subset, facets: Iterable[str], ids: Iterable[str]) -> list[str]:
    """List the tasks of a list, and the facets of a filter, that no sample has, in sentences."""
    if subset.filter:
        return _absent_facets(subset.filter, sorted(facets))
    tasks, known = [*dict.fromkeys(subset.tasks or ())], {*ids}
    absent = [number for number, task in enumerate(tasks, 1) if task not in known]
    if not absent:
        return []
    # not the id: the list may be any file that a suite names
    count = f"{len(absent):,} of {counted(len(tasks), 'listed task')}"
    return [f"{count} without a run, the first: number {absent[0]:,} of the list"]


def _absent_facets(text: str, known: list[str]) -> list[str]:
    known_names = f"; there are: {', '.join(known[:_NAMED])}" if known else "; there are no facets"
    return [
        f"no run has the facet {name!r}{suggest(name, known) or known_names}"
        for name in parse_expression(text).facets
        if name not in known
    ]


def read_ids(path: Path) -> tuple[str, ...]:
    """Return the ids of a file: one a line, but blank lines and those that begin with ``#``."""
    problem = f"{path}: the list of tasks cannot be read"
    try:
        text = read_text(path)
    except OSError as error:
        raise ConfigError(f"{problem}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{problem}: it is no UTF-8 text") from error
    lines = [line.strip() for line in text.splitlines()]
    ids = [line for line in lines if line and not line.startswith("#")]
    if not ids:
        raise ConfigError(f"{path}: expected ids of tasks, one a line")
    return tuple(dict.fromkeys(ids))
