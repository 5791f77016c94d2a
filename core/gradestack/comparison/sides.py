"""One side of a comparison: the samples of one model in a finished run, as columns of its rows."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from hashlib import blake2b
from itertools import chain
from operator import add
from typing import Any, Literal, TypeVar

import msgspec

from gradestack.errors import ConfigError, DataError, error_text
from gradestack.grading.metrics import wanted
from gradestack.grading.plan import Metric, Success
from gradestack.jsonio.values import as_map, as_text, dumps
from gradestack.model import Grade, Key, Outcome, Status
from gradestack.output import counted
from gradestack.report import Report
from gradestack.rows.read import GradedRow, Took, table_of
from gradestack.table import Table

Match = Literal["id", "input", "ordinal"]
Failed = Literal["zero", "skip"]
Trial = tuple[
    int | str | None, int
]  # a trial's number or name, and which of its task's that are called so
Cause = tuple[Literal["reasons", "tools", "arguments"], str]
"""A code of reasons, a tool they are about, or an argument of it."""
Times = dict[str, int]
T = TypeVar("T")
MORE_REASONS = (
    "more_reasons"  # code of a reason that is none: it says how many others were left out
)
UNMATCHED = "; try --match input or ordinal"
_APART = "::"
_SAME = ("name", "version", "options", "code", "extractor")
"""What is the same of a component that gives the same on both sides."""
_ON_RECORD = frozenset({"judgements", "labels", "calibration"})
"""Options that say where replies and labels are, of which each run may have its own."""
# share of the tasks that were asked what another task was, from which on ids are taken for shifted
_SHIFTED = 0.1
_OTHER = (
    0.5  # share of the tasks that were asked something else, above which they are taken for others
)
_SEVERAL = b"several"


class Samples(msgspec.Struct, eq=False):
    """The samples of a run, row by row."""

    table: Table = msgspec.field(default_factory=lambda: Table(()))
    # digests of what grades were computed from, and of inputs; empty where none is recorded
    expected: list[bytes] = msgspec.field(default_factory=list)
    asked: list[bytes] = msgspec.field(default_factory=list)
    passed: list[bool | None] = msgspec.field(default_factory=list)
    places: list[int] = msgspec.field(default_factory=list)
    facets: dict[str, None] = msgspec.field(default_factory=dict)
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    causes: list[tuple[Cause, ...]] = msgspec.field(default_factory=list)
    usage: list[Took | None] = msgspec.field(default_factory=list)


class Side(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One model's tasks in one run."""

    name: str
    model: str
    report: Report
    samples: Samples
    tasks: Mapping[str, Sequence[int]]
    match: Match
    metrics: Mapping[tuple[str, str], Metric]

    @cached_property
    def graders(self) -> dict[str, Mapping[str, Any]]:
        """Grader key -> its entry in header.json."""
        return _graders(self.report)

    def is_share(self, key: str) -> bool:
        """Return whether a grader's scores are bound to [0, 1]."""
        return "bounds" not in self.graders[key]

    def declared(self, key: str) -> dict[str, Any]:
        """Return what a grader says of its score: label, unit, and which direction is better."""
        given = self.graders[key]
        defaults = {"label": key, "unit": "score", "better": "higher"}
        return {
            "better_is" if name == "better" else name: given.get(name, each)
            for name, each in defaults.items()
        }

    @property
    def outcome(self) -> str | None:
        """Key of the run's outcome grader."""
        return as_text(as_map(self.report.summary.get("outcome")).get("grader")) or None

    @property
    def trials(self) -> int:
        """The most trials of a task."""
        return max(map(len, self.tasks.values()), default=0)

    def _of_rows(self, key: str, value: Callable[[Grade], T]) -> list[T]:
        """Return for every row what a function makes of its grade."""
        table = self.samples.table
        values = list(map(value, table.grades(key)))
        return [values[code] for code in table.verdicts[key].codes]

    def scores(self, key: str, failed: Failed) -> list[float | None]:
        """Return the score of every row, with ``zero`` of a failed or missing one the worst there
        can be; or None.
        """
        lost = None if failed == "skip" else self.worst_score(key)
        return self._of_rows(key, lambda grade: lost if grade.outcome in _LOST else grade.score)

    def worst_score(self, key: str) -> float | None:
        """Return the worst score a grader can give.

        None where no score is worse than another, or where there is no bound.
        """
        low, high = self.graders[key].get("bounds", (0.0, 1.0))
        by_direction: dict[str, float | None] = {"higher": low, "lower": high}
        return by_direction.get(self.declared(key)["better_is"])

    def has_lost_trials(self, key: str, tasks: Iterable[str]) -> bool:
        """Return whether a trial of some tasks has failed or is missing for a grader."""
        is_lost = self._of_rows(key, lambda grade: grade.outcome in _LOST)
        return any(is_lost[row] for task in tasks for row in self.tasks[task])

    def states(self, key: str) -> Counter[str]:
        """Count the states that a grader's grades of this side are in."""
        outcomes = self._of_rows(key, lambda grade: str(grade.outcome))
        return Counter(outcomes[row] for rows in self.tasks.values() for row in rows)

    def passes(self, key: str, failed: Failed) -> list[bool | None]:
        """Return whether each row passes, None where it has no part."""
        better: Any = self.declared(key)["better_is"] if self.is_share(key) else "neither"
        broken = self._of_rows(key, lambda grade: grade.outcome in _LOST)
        own = (
            self._of_rows(key, Success(key, better=better).passed)
            if key != self.outcome
            else self.samples.passed
        )
        lost = None if failed == "skip" else False
        return [lost if out else passed for out, passed in zip(broken, own, strict=True)]

    def means(self, key: str, failed: Failed, *, rate: bool = False) -> dict[str, float]:
        """Return the mean score, or ``rate`` of passing, of every task that has a trial
        with one.
        """
        asked = (key, failed, rate)
        if asked not in self._means:
            values = self.passes(key, failed) if rate else self.scores(key, failed)
            self._means[asked] = self._task_means(values)
        return self._means[asked]

    def amounts(self, name: str) -> dict[str, float]:
        """Return the mean of what the trials of a task took, of tasks that record it.

        Args:
            name: ``cost_usd``, ``tokens`` or ``seconds``.
        """
        if (name,) not in self._means:
            values = [None if took is None else getattr(took, name) for took in self.samples.usage]
            self._means[name,] = self._task_means(values)
        return self._means[name,]

    @cached_property
    def _means(self) -> dict[tuple[object, ...], dict[str, float]]:
        return {}

    def _task_means(self, values: Sequence[float | None]) -> dict[str, float]:
        means = {}
        for task, rows in self.tasks.items():
            known = [value for row in rows if (value := values[row]) is not None]
            if known:
                means[task] = _mean(known)
        return means

    def trial_verdicts(self, key: str, failed: Failed) -> dict[str, dict[Trial, bool]]:
        """Return task -> trial -> whether it passed."""
        verdicts, runs = self.passes(key, failed), self.samples.table.keys["run"]
        found: dict[str, dict[Trial, bool]] = {task: {} for task in self.tasks}
        for task, rows in self.tasks.items():
            times = Counter[int | str | None]()
            for row in rows:
                if (passed := verdicts[row]) is not None:
                    times[run := runs.values[runs.codes[row]]] += 1
                    found[task][run, times[run]] = passed
        return found

    def causes_by_task(
        self, key: str, tasks: Iterable[str], failed: Failed
    ) -> tuple[Times, dict[Cause, Times]]:
        """Return how many trials some tasks have, and in how many of them each cause was given."""
        scores, trials = self.scores(key, failed), dict[str, int]()
        found: dict[Cause, dict[str, int]] = {}
        for task in tasks:
            rows = [row for row in self.tasks[task] if scores[row] is not None]
            if rows:
                trials[task] = len(rows)
            for cause, count in Counter(
                cause for row in rows for cause in self.samples.causes[row]
            ).items():
                found.setdefault(cause, {})[task] = count
        return trials, found

    def facet(self, name: str, task: str) -> Any:
        """Return a task's value of a facet, ``(none)`` where it has none."""
        values, codes = self.samples.table.facets(), self.samples.table.keys["facets"].codes
        return next(
            (values[codes[row]][name] for row in self.tasks[task] if name in values[codes[row]]),
            "(none)",
        )


_LOST = (Outcome.FAILED, Outcome.MISSING)


def _mean(values: Sequence[float]) -> float:
    total = reduce(add, values)  # from Python 3.12 on, ``sum`` rounds otherwise
    if math.isinf(total):
        return math.fsum(value / len(values) for value in values)
    return total / len(values)


def split_name(given: str) -> tuple[str, str | None]:
    """Return the run and the model of ``RUN::MODEL``; None for all its models."""
    run, apart, model = given.rpartition(_APART)
    return (run, model) if apart else (given, None)


def sides_of(
    report: Report,
    name: str,
    model: str | None = None,
    match: Match = "id",
    metrics: Sequence[Metric] = (),
    by: str | None = None,
    *,
    reasons: bool = False,
) -> list[Side]:
    """Return a run's models as sides, in input order.

    With what graders gave as reasons, where it is asked for.
    """
    samples, made = Samples(), 0
    digests, known = (
        {b"": b""},
        dict[tuple[Cause, ...], tuple[Cause, ...]](),
    )  # equal ones are held once
    needs = wanted(_graders(report), metrics, () if by is None else (by,))

    def rows() -> Iterator[tuple[Key, GradedRow]]:
        nonlocal made
        for place, row in report.decoded(name):
            causes = (
                _causes([row.grades[key] for key in needs.parts if key in row.grades])
                if reasons
                else ()
            )
            samples.causes.append(known.setdefault(causes, causes))
            samples.usage.append(row.usage if reasons else None)
            given = {key: value for key, value in row.expected.items() if value is not None}
            expected = (
                _digest(given) if given or row.status is Status.OK else b""
            )  # a run that broke may hold none
            samples.expected.append(digests.setdefault(expected, expected))
            asked, said = b"", row.sample.input
            if said is not None:
                words = " ".join(map(str, said if isinstance(said, list) else [said])).split()
                asked = _digest(" ".join(words))
            samples.asked.append(digests.setdefault(asked, asked))
            samples.passed.append(row.passed)
            samples.places.append(place)
            samples.facets |= dict.fromkeys(row.facets or ())
            made += (row.facets or {}).get("id_made") is True
            yield row.key(_task_of(row, match, name)), row

    samples.table = table_of(
        rows(), needs, lambda metric, error: samples.broken.update({metric: error_text(error)})
    )
    if not samples.places and report.summary:
        raise DataError(f"{name}: the run holds no sample, so that there is nothing to compare")
    if match == "id" and made and made == len(samples.places):
        why = "the records have no ids (they were numbered), so tasks cannot be matched"
        raise DataError(f"{name}: {why}", "use --match input or ordinal")
    ids, models = samples.table.keys["id"], samples.table.keys["model"]
    rows_of: dict[str, dict[str, array[int]]] = {}
    for row, (code, of) in enumerate(zip(ids.codes, models.codes, strict=True)):
        rows_of.setdefault(models.values[of] or "", {}).setdefault(
            ids.values[code], array("I")
        ).append(row)
    if model is not None and model not in rows_of:
        there = ", ".join(each or "(unnamed)" for each in rows_of)
        raise ConfigError(f"{name}: it has no model {model!r}; there are: {there}")
    by_path = {(each.of, each.stage.key): each for each in metrics}
    alone = model is None and len(rows_of) == 1
    return [
        Side(
            name if alone else f"{name}{_APART}{each}", each, report, samples, tasks, match, by_path
        )
        for each, tasks in rows_of.items()
        if model in (None, each)
    ]


def _causes(grades: Sequence[Any]) -> tuple[Cause, ...]:
    """Return what a row's grades and their items name as reasons, each once."""
    found: dict[Cause, None] = {
        ("reasons", grade.fault.code): None for grade in grades if grade.fault is not None
    }
    for reason in chain.from_iterable(
        part.reasons for grade in grades for part in (grade, *grade.items)
    ):
        if reason.code == MORE_REASONS:
            continue
        found["reasons", reason.code] = None
        if reason.subject:
            found["tools", reason.subject] = None
            if argument := reason.pointer.removeprefix("/").partition("/")[0]:
                found[
                    "arguments",
                    f"{reason.subject}.{argument.replace('~1', '/').replace('~0', '~')}",
                ] = None
    return tuple(found)


def _graders(report: Report) -> dict[str, Mapping[str, Any]]:
    return {
        each["key"]: each
        for each in report.header.get("components", ())
        if each["kind"] == "grader"
    }


def _digest(value: Any) -> bytes:
    try:
        data = msgspec.json.encode(value, order="deterministic")
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, or a number beyond 64 bits
        data = dumps(value).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).digest()


def _task_of(row: GradedRow, match: Match, name: str) -> str:
    if match == "id":
        return str(row.cluster or row.sample.id)
    given = row.sample.input if match == "input" else (row.source or {}).get("ordinal")
    if given is None:
        what, other = ("input", "ordinal") if match == "input" else ("place", "input")
        raise DataError(
            f"{name}: sample {row.sample.id} has no recorded {what} to match by; use --match id "
            f"or {other}"
        )
    return json.dumps(given, sort_keys=True) if match == "input" else str(given)


def differing_parts(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return what differs between two entries of a component.

    What only one of them records is not compared.
    """
    found = []
    for name in _SAME:
        if name in one and name in other:
            left, right = one[name], other[name]
            if name == "options" and "judgements" in left:
                left, right = (
                    {k: v for k, v in each.items() if k not in _ON_RECORD} for each in (left, right)
                )
            if differing_parts(left, right) if name == "extractor" else left != right:
                found.append(name)
    return found


class Problem(msgspec.Struct, frozen=True):
    """Why two sides cannot be compared, or only with care."""

    text: str
    fix: str = ""
    refuses: bool = True


def differing(a: Side, b: Side, only: str | None = None) -> Iterator[Problem]:
    """Yield what differs between two sides beside their grades.

    Of all graders or ``only`` one, and of their tasks.
    """
    for key, made in b.graders.items():
        mine = a.graders.get(key)
        if mine is not None and only in (None, key) and (parts := differing_parts(mine, made)):
            verb = "differs" if len(parts) == 1 and parts != ["options"] else "differ"
            yield Problem(f"grader {key}: {', '.join(parts)} {verb} between {a.name} and {b.name}")
    left, right = _one_of_task(a, a.samples.expected), _one_of_task(b, b.samples.expected)
    common = [task for task in left if task in right]
    if changed := [
        task
        for task in common
        if left[task] != right[task] and b"" not in (left[task], right[task])
    ]:
        has = "has" if len(common) == 1 else "have"
        what = f"{len(changed):,} of {counted(len(common), 'task')} {has} other expectations"
        yield Problem(f"{what} in {a.name} than in {b.name}, the first: {changed[0]}")
    yield from _asked_otherwise(a, b, left)
    if not common:
        yield Problem(f"{a.name} and {b.name} have no task in common", UNMATCHED)


def _one_of_task(side: Side, digests: Sequence[bytes]) -> dict[str, bytes]:
    """Return the digest that all rows of a task have, or that they have several.

    Empty where none has one.
    """
    found = {}
    for task, rows in side.tasks.items():
        known = {digests[row] for row in rows} - {b""}
        found[task] = _SEVERAL if len(known) > 1 else known.pop() if known else b""
    return found


def _asked_otherwise(a: Side, b: Side, expected: Mapping[str, bytes]) -> Iterator[Problem]:
    """Yield how many tasks have another input.

    Inputs that differ between a task's trials say nothing.
    """
    first, second = _one_of_task(a, a.samples.asked), _one_of_task(b, b.samples.asked)
    nothing = {b"", _SEVERAL}
    known = {
        task: (one, two)
        for task, one in first.items()
        if not nothing & {one, two := second.get(task, b"")}
    }
    changed = [task for task, (left, right) in known.items() if left != right]
    if not changed:
        return
    before, after = (Counter(each) for each in zip(*known.values(), strict=True))
    moved = [task for task in changed if before[known[task][1]] == after[known[task][1]] == 1]
    alike = len({expected[task] for task in changed}) == 1  # they do not tell tasks apart
    shifted = len(moved) >= _SHIFTED * len(known)
    were = "was" if len(changed) == 1 else "were"
    text = (
        f"{len(changed):,} of {counted(len(known), 'task')} {were} asked something else in "
        f"{a.name} than in {b.name}"
    )
    text += f", the first: {(moved if shifted else changed)[0]}"
    if shifted:
        what = "ordinal" if a.match == "ordinal" else "id"
        text += (
            f"; {len(moved):,} of them what {a.name} has under another {what}: {what}s may "
            "have shifted"
        )
    yield Problem(
        text, "; try --match input", shifted or (alike and len(changed) > _OTHER * len(known))
    )
