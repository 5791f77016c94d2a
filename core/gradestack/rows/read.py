"""Rows of results.jsonl read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from gradestack.errors import DataError
from gradestack.grading.filters import Fields
from gradestack.jsonio.values import as_map, check_utf8
from gradestack.model import Grade, Key, Outcome, Status
from gradestack.table import Columns, Table, Wanted


class GradeRow(TypedDict):
    """A grade in the form of a row, as ``gradestack.grade_to_json`` returns it."""

    state: str
    score: float
    rationale: str
    metadata: dict[str, Any]
    passed: NotRequired[bool]
    label: NotRequired[str]
    gold: NotRequired[str]
    counts: NotRequired[dict[str, int]]
    parts: NotRequired[dict[str, float | None]]
    reasons: NotRequired[list[dict[str, Any]]]
    items: NotRequired[list[dict[str, Any]]]
    fault: NotRequired[dict[str, str]]


class Row(TypedDict):
    """One line of results.jsonl: what was recorded of a sample, and its grades."""

    sample: dict[str, Any]
    submission: str
    submissions: dict[str, str] | None
    grade: GradeRow
    grades: dict[str, GradeRow]
    state: str
    passed: bool | None
    expected: dict[str, Any]
    predicted: dict[str, Any]
    trajectory: list[list[dict[str, Any]]]
    tools: list[str | dict[str, Any]] | None
    model_name: str | None
    run: int | str | None
    status: str
    error: dict[str, str] | None
    facets: dict[str, Any]
    recorded: dict[str, Any]
    source: dict[str, Any] | None
    agent_id: str | None
    agent_usage: Any
    usage: NotRequired[dict[str, Any]]
    cluster: NotRequired[str]
    ended: NotRequired[str]
    trace: NotRequired[dict[str, str]]
    children: NotRequired[list[str]]
    remarks: NotRequired[dict[str, int]]
    native: NotRequired[Any]


def grade_from_json(row: Mapping[str, Any]) -> Grade:
    """Return the grade that ``gradestack.grade_to_json`` wrote.

    Metrics can be recomputed from rows alone.
    """
    grade = msgspec.convert(row, _Grade)
    return Grade(**{name: getattr(grade, name) for name in Grade.__struct_fields__})


def check_count(path: Path, rows: int, summary: Mapping[str, Any]) -> None:
    """Refuse a results file that has lost rows, or got some, since the figures of its run were
    computed.
    """
    total = as_map(summary.get("metrics")).get("total")
    if isinstance(total, int) and rows != total:
        problem = f"{rows} rows, but summary.json is of {total} samples: it was changed"
        raise DataError(f"{path}: {problem}; grade the files again")


class _Grade(Grade, frozen=True, kw_only=True, gc=False):
    """A grade in the form of a row, where 0.0 is the score of what is not graded."""

    outcome: Outcome = field(name="state")

    def __post_init__(self) -> None:
        if self.outcome is not Outcome.GRADED:
            force_setattr(self, "score", None)
        elif self.score is None or not math.isfinite(self.score):
            raise ValueError("it is graded, and its score is no finite number")


class _Sample(Struct, gc=False):
    id: str | int
    input: Any = None


class _Source(Struct, gc=False):
    ordinal: Any = None


class Took(Struct, gc=False):
    """The usage of a run, as far as a comparison needs it; None is "not recorded"."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None

    @property
    def tokens(self) -> float | None:
        """Tokens in and out, where both are known and a float can hold them."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        try:
            return float(self.input_tokens + self.output_tokens)
        except OverflowError:
            return None


class GradedRow(Struct, gc=False):
    """The part of a row that figures and comparisons need; nothing else of it is decoded."""

    sample: _Sample
    expected: dict[str, Any]
    grades: dict[str, _Grade]
    status: Status = Status.OK
    run: int | str | None = None
    model_name: str | None = None
    cluster: str | None = None
    facets: dict[str, Any] | None = None
    source: _Source | None = None
    passed: bool | None = None
    usage: Took | None = None

    def key(self, task: str | None = None) -> Key:
        """Return its key: with a task as its id, else as it was graded."""
        name, cluster = (str(self.sample.id), self.cluster) if task is None else (task, None)
        return Key(
            id=name, cluster=cluster, model=self.model_name, run=self.run, facets=self.facets or {}
        )


class NamedRow(Struct, gc=False):
    """The part of a row that a filter may name."""

    sample: _Sample
    model_name: str | None = None
    run: int | str | None = None
    cluster: str | None = None
    status: str = "ok"
    ended: str | None = None
    source: dict[str, Any] | None = None
    facets: dict[str, Any] | None = None

    @property
    def fields(self) -> Fields:
        """The same by the names of filters."""
        return Fields(
            str(self.sample.id),
            self.model_name,
            self.run,
            self.cluster,
            self.status,
            self.ended,
            self.sample.input,
            as_map(self.source).get("file"),
            self.facets,
        )


Decode = Callable[[int, bytes, Callable[[int, bytes], Any]], Any]
"""Takes the number of a line, the line, and what returns the value of a line that msgspec cannot
decode: of one with NaN, or a lone surrogate. Raises a ValueError where that is not the row of a
run.
"""


def decoder_of(kind: Any) -> Decode:
    """Return a function that decodes the fields of a struct from a row, and skips all others."""
    decode = msgspec.json.Decoder(kind).decode

    def decode_line(number: int, line: bytes, loads: Callable[[int, bytes], Any]) -> Any:
        try:
            check_utf8(line)  # what is left out is not looked at
            return decode(line)
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            return msgspec.convert(loads(number, line), kind)

    return decode_line


_BLOCK = 32
"""Rows added to a table at once: what is decoded of more leaves the processor's second cache."""


def table_of(
    rows: Iterable[tuple[Key, GradedRow]],
    wanted: Wanted,
    broken: Callable[[str, BaseException], None] | None = None,
) -> Table:
    """Return the table of the grades in rows."""
    columns, absent = Columns(wanted, broken), Grade(outcome=Outcome.SKIPPED)
    waiting = iter(rows)
    while block := list(islice(waiting, _BLOCK)):
        graded = [row for _, row in block]
        grades = {key: [row.grades.get(key, absent) for row in graded] for key in wanted.parts}
        is_missing = [row.status is Status.MISSING for row in graded]
        columns.add([key for key, _ in block], grades, is_missing)
    table = Table(wanted.parts)
    table.extend(columns.to_bytes())
    return table
