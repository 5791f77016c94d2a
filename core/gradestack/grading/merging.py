"""The results of shards, and of all of them: columns joined in order, counts added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from gradestack.grading.plan import Plan
from gradestack.model import Grade
from gradestack.table import Table

LISTED = 1000
"""Bad and repeated records are all counted; this many are listed."""
Grades = Mapping[str, Grade]
"""Grader key -> grade."""


class Tally(msgspec.Struct, kw_only=True):
    """The counts of a shard, and of a run."""

    samples: int = 0
    bad: int = 0
    bad_parts: int = 0
    """Those of them that are parts of runs which were read without them."""
    bad_listed: list[dict[str, Any]] = msgspec.field(default_factory=list)
    remarks: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    """Kind of remark on records -> how many, and where the first was."""
    ids: dict[str, str] = msgspec.field(default_factory=dict)
    """How ids that are whole numbers were recorded, ``number`` or ``text`` -> where the
    first was.
    """
    left_out: int = 0
    """Samples that the first tasks, tags or a subset leave out."""
    facets: set[str] = msgspec.field(default_factory=set)
    """Names of facets, only kept where a filter is asked."""
    answered: set[tuple[str, str, str]] = msgspec.field(default_factory=set)
    """(model, id, run as JSON or "" where runs are not told apart), only kept when a dataset is
    joined.
    """
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    """Aggregators (``grader/metric``) and exporters (name) that raised, with what they said."""
    timings: dict[str, float] = msgspec.field(default_factory=dict)
    """Grader key -> seconds."""
    tracebacks: dict[str, str] = msgspec.field(default_factory=dict)
    """Grader key -> traceback of the first error it raised."""
    timed_out: int = 0
    """Grades that took too long: another machine may give others."""
    interrupted: bool = False

    def add_remark(self, kind: str, times: int, first: str) -> None:
        """Count remarks of a kind; ``first`` names the record of the first one."""
        self.remarks.setdefault(kind, [0, first])[0] += times


class ShardResult(Tally, kw_only=True):
    """Everything one shard came to."""

    ordinal: int
    input: str
    parts: Any = None
    """What its shard writer was closed with, for the recorder: where rows and native chunks are."""
    table: bytes = b""
    """Its columns of the table of grades."""
    superseded: list[str] = msgspec.field(default_factory=list)
    """Places of records left out because a later one of the same (id, model, run) counts."""


class Merged(Tally, kw_only=True):
    """The results of all shards, added in shard order."""

    main: str
    """Key of the main grader."""
    table: Table
    states: Counter[str] = msgspec.field(default_factory=Counter)
    """Outcome of the main grader -> samples."""
    superseded: int = 0
    """Records left out because a later one of the same (id, model, run) counts."""
    superseded_first: str = ""
    duplicates: int = 0
    duplicates_listed: list[str] = msgspec.field(default_factory=list)
    unmatched: tuple[list[str], list[str]] = ([], [])
    """Ids of samples without a row in the dataset, and of its rows that no sample answers."""
    contradicted: list[str] = msgspec.field(default_factory=list)
    """Ids whose rows in the dataset expect different things."""

    @classmethod
    def of(cls, plan: Plan) -> Merged:
        """Return the empty result of a plan."""
        return cls(main=plan.main, table=Table([stage.key for stage in plan.graders]))

    def add(self, result: ShardResult) -> None:
        """Add the next shard's result."""
        for name in ("samples", "timed_out", "bad", "bad_parts", "left_out"):
            setattr(self, name, getattr(self, name) + getattr(result, name))
        for name in ("broken", "tracebacks", "ids"):  # what was said first stays
            setattr(self, name, getattr(result, name) | getattr(self, name))
        self.interrupted |= result.interrupted
        self.answered |= result.answered
        self.facets |= result.facets
        self.bad_listed += result.bad_listed[: LISTED - len(self.bad_listed)]
        for kind, (times, first) in result.remarks.items():
            self.add_remark(kind, times, first)
        for key, seconds in result.timings.items():
            self.timings[key] = self.timings.get(key, 0.0) + seconds
        self._add_superseded(result.superseded)
        if result.table:
            self._add_table(result)

    def _add_superseded(self, places: list[str]) -> None:
        self.superseded += len(places)
        self.superseded_first = self.superseded_first or next(iter(places), "")
        self.duplicates += len(places)
        self.duplicates_listed += places[: LISTED - len(self.duplicates_listed)]

    def _add_table(self, result: ShardResult) -> None:
        before = len(self.table)
        self.table.extend(result.table, result.input)
        grades, codes = self.table.grades(self.main), self.table.verdicts[self.main].codes
        for code, times in Counter(codes[before:]).items():
            self.states[str(grades[code].outcome)] += times
