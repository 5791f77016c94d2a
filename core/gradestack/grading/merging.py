"""What shards came to, and all of them: columns joined in order, figures of the whole table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gradestack.errors import PluginError, error_text
from gradestack.grading.metrics import Count, counts_by_model, figures_of, grades_of
from gradestack.grading.plan import Plan
from gradestack.model import JSON, Grade
from gradestack.table import Table

LISTED = 1000
"""Bad and repeated records are all counted; this many are listed."""


class Tally(msgspec.Struct, kw_only=True):
    """What is counted of a shard, and of a whole run."""

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
    seen: set[tuple[str, str, str]] = msgspec.field(default_factory=set)
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
    """What all shards came to."""

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


class Merging:
    """Takes in shard results one after the other, in shard order."""

    def __init__(self, plan: Plan, *, strict: bool = False) -> None:
        self.plan, self._strict = plan, strict
        self.merged = Merged(table=Table([stage.key for stage in plan.graders]))

    def add(self, result: ShardResult) -> None:
        """Take in the next shard's result."""
        merged = self.merged
        for name in ("broken", "tracebacks", "ids"):  # what was said first stays
            setattr(merged, name, {**getattr(result, name), **getattr(merged, name)})
        for name in ("samples", "timed_out", "bad", "bad_parts", "left_out"):
            setattr(merged, name, getattr(merged, name) + getattr(result, name))
        before = len(merged.table)
        if result.table:
            merged.table.extend(result.table, result.input)
        grades, codes = (
            merged.table.grades(self.plan.main),
            merged.table.verdicts[self.plan.main].codes,
        )
        for code, times in Counter(codes[before:]).items():
            merged.states[str(grades[code].outcome)] += times
        merged.bad_listed += result.bad_listed[: LISTED - len(merged.bad_listed)]
        for kind, (times, place) in result.remarks.items():
            merged.remarks.setdefault(kind, [0, place])[0] += times
        merged.seen |= result.seen
        merged.facets |= result.facets
        merged.interrupted |= result.interrupted
        merged.superseded += len(result.superseded)
        merged.superseded_first = merged.superseded_first or next(iter(result.superseded), "")
        merged.duplicates += len(result.superseded)
        merged.duplicates_listed += result.superseded[: LISTED - len(merged.duplicates_listed)]
        for key, seconds in result.timings.items():
            merged.timings[key] = merged.timings.get(key, 0.0) + seconds

    def figures(self, rows: Sequence[int] | None = None) -> dict[str, dict[str, Any]]:
        """Return what the metrics make of grades: grader key -> metric key -> figures.

        A broken one says so.
        """
        found: dict[str, dict[str, Any]] = {stage.key: {} for stage in self.plan.graders}
        for metric in self.plan.metrics:
            name, aggregator = metric.name, metric.stage.component
            made: dict[str, JSON] = {}
            if name not in self.merged.broken:
                try:
                    grades = grades_of(aggregator, self.merged.table, metric.of, name, rows)
                    made = figures_of(aggregator, grades)
                except (
                    Exception,
                    SystemExit,
                    GeneratorExit,
                ) as error:  # the other metrics must not be lost with it
                    if self._strict:
                        raise PluginError(f"{metric.label}: {error_text(error)}") from error
                    self.merged.broken[name] = error_text(error)
            found[metric.of][metric.stage.key] = (
                {"error": self.merged.broken[name]} if name in self.merged.broken else made
            )
        return found

    def counts(self, rows: Sequence[int] | None = None) -> dict[str, dict[str, Count]]:
        """Return what is counted of each grader's grades, by model."""
        return {
            stage.key: counts_by_model(self.merged.table, stage.key, self.plan.rule, rows)
            for stage in self.plan.graders
        }


Grades = Mapping[str, Grade]
"""Grader key -> grade."""
