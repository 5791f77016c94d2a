"""One side of a comparison: the samples of one model in a finished run, as columns of its rows."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeVar

import msgspec

from gradestack.comparison.paired import mean_of
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
Trial = tuple[int | str | None, int]
"""A trial's number or name, and which of its task's that are called so."""
Cause = tuple[Literal["reasons", "tools", "arguments"], str]
"""A code of reasons, a tool they are about, or an argument of it."""
Times = dict[str, int]
Entry = Mapping[str, Any]
"""What header.json says of a component."""
T = TypeVar("T")
MORE_REASONS = "more_reasons"
"""Code of a reason that is none: it says how many others were left out."""
UNMATCHED = "; try --match input or ordinal"
_SEPARATOR = "::"
_SAME = ("name", "version", "options", "code", "extractor")
"""Parts of a component's entry that are the same where it gives the same on both sides."""
_ON_RECORD = frozenset({"judgements", "labels", "calibration"})
"""Options that say where replies and labels are, of which each run may have its own."""
# share of the tasks that were asked something else, above which they are taken for others
_OTHER = 0.5
_SHIFTED = 0.1
"""Share of the tasks whose input has another id on the other side, from which ids have shifted."""
_LOST = (Outcome.FAILED, Outcome.MISSING)


class SampleFacts(msgspec.Struct, gc=False, frozen=True):
    """The part of a row that a comparison needs beside its grades.

    Attributes:
        place: First byte of the row.
        expected: Digest of what its grades were computed from; 0 where none is recorded.
        asked: Digest of its input; 0 where none is recorded.
        passed: Whether the run's outcome passed.
        causes: What graders gave as reasons.
        usage: What the run took.
    """

    place: int
    expected: int
    asked: int
    passed: bool | None
    causes: tuple[Cause, ...]
    usage: Took | None


class Samples(msgspec.Struct, eq=False):
    """The samples of a run, row by row."""

    table: Table = msgspec.field(default_factory=lambda: Table(()))
    facts: list[SampleFacts] = msgspec.field(default_factory=list)
    facets: dict[str, None] = msgspec.field(default_factory=dict)
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    """Name of a metric -> why it has no figures."""


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
    def graders(self) -> dict[str, Entry]:
        """Grader key -> its entry in header.json."""
        return _graders(self.report)

    def is_share(self, key: str) -> bool:
        """Return whether a grader's scores are bound to [0, 1]."""
        return "bounds" not in self.graders[key]

    def declared(self, key: str) -> dict[str, Any]:
        """Return the label and unit of a grader's score, and which direction is better."""
        entry = {"label": key, "unit": "score", "better": "higher", **self.graders[key]}
        return {"label": entry["label"], "unit": entry["unit"], "better_is": entry["better"]}

    @property
    def outcome(self) -> str | None:
        """Key of the run's outcome grader."""
        return as_text(as_map(self.report.summary.get("outcome")).get("grader")) or None

    @property
    def is_whole_run(self) -> bool:
        """Whether the run has no other model."""
        return sum(map(len, self.tasks.values())) == len(self.samples.facts)

    def grade_values(self, key: str, value_of: Callable[[Grade], T]) -> list[T]:
        """Return for every row the value of its grade by a function."""
        table = self.samples.table
        values = list(map(value_of, table.grades(key)))
        return [values[code] for code in table.verdicts[key].codes]

    def scores(self, key: str, failed: Failed) -> list[float | None]:
        """Return the score of every row; None where it has no part.

        With ``zero`` a failed or missing one has the worst score there can be.
        """
        lost = None if failed == "skip" else self.worst_score(key)
        return self.grade_values(key, lambda grade: lost if _is_lost(grade) else grade.score)

    def worst_score(self, key: str) -> float | None:
        """Return the worst score a grader can give.

        None where no score is worse than another, or where there is no bound.
        """
        low, high = self.graders[key].get("bounds", (0.0, 1.0))
        worst: dict[str, float | None] = {"higher": low, "lower": high}
        return worst.get(self.declared(key)["better_is"])

    def has_lost_trials(self, key: str, tasks: Iterable[str]) -> bool:
        """Return whether a trial of some tasks has failed or is missing for a grader."""
        is_lost = self.grade_values(key, _is_lost)
        return any(is_lost[row] for task in tasks for row in self.tasks[task])

    def passes(self, key: str, failed: Failed) -> list[bool | None]:
        """Return whether each row passes, None where it has no part."""
        if key == self.outcome:
            verdicts = [fact.passed for fact in self.samples.facts]
        else:
            better: Any = self.declared(key)["better_is"] if self.is_share(key) else "neither"
            verdicts = self.grade_values(key, Success(key, better=better).passed)
        lost = None if failed == "skip" else False
        is_lost = self.grade_values(key, _is_lost)
        return [lost if out else passed for out, passed in zip(is_lost, verdicts, strict=True)]

    def means(self, key: str, failed: Failed, *, rate: bool = False) -> dict[str, float]:
        """Return the mean score of every task with a score, or its ``rate`` of passing."""
        of = (key, failed, rate)
        if of not in self._means:
            values = self.passes(key, failed) if rate else self.scores(key, failed)
            self._means[of] = self._task_means(values)
        return self._means[of]

    @cached_property
    def _means(self) -> dict[tuple[str, Failed, bool], dict[str, float]]:
        return {}

    def amounts(self, name: str) -> dict[str, float]:
        """Return the mean of what the trials of a task took, of tasks that record it.

        Args:
            name: ``cost_usd``, ``tokens`` or ``seconds``.
        """
        return self._task_means([getattr(fact.usage, name, None) for fact in self.samples.facts])

    def _task_means(self, values: Sequence[float | None]) -> dict[str, float]:
        means = {}
        for task, rows in self.tasks.items():
            known = [value for row in rows if (value := values[row]) is not None]
            if known:
                means[task] = mean_of(known)
        return means

    def trial_verdicts(self, key: str, failed: Failed) -> dict[str, dict[Trial, bool]]:
        """Return task -> trial -> whether it passed."""
        passes, runs = self.passes(key, failed), self.samples.table.keys["run"]
        verdicts: dict[str, dict[Trial, bool]] = {}
        for task, rows in self.tasks.items():
            verdicts[task] = {}
            times = Counter[int | str | None]()
            for row in rows:
                passed = passes[row]
                if passed is not None:
                    run = runs.values[runs.codes[row]]
                    times[run] += 1
                    verdicts[task][run, times[run]] = passed
        return verdicts

    def causes_by_task(
        self, key: str, tasks: Iterable[str], failed: Failed
    ) -> tuple[Times, dict[Cause, Times]]:
        """Count the trials that some tasks have, and those in which each cause was given."""
        scores, facts = self.scores(key, failed), self.samples.facts
        trials: Times = {}
        causes: dict[Cause, Times] = {}
        for task in tasks:
            rows = [row for row in self.tasks[task] if scores[row] is not None]
            if rows:
                trials[task] = len(rows)
            for row in rows:
                for cause in facts[row].causes:
                    times = causes.setdefault(cause, {})
                    times[task] = times.get(task, 0) + 1
        return trials, causes

    def facet(self, name: str, task: str) -> Any:
        """Return a task's value of a facet, ``(none)`` where it has none."""
        values, codes = self.samples.table.facets(), self.samples.table.keys["facets"].codes
        facets = (values[codes[row]] for row in self.tasks[task])
        return next((known[name] for known in facets if name in known), "(none)")


def _is_lost(grade: Grade) -> bool:
    return grade.outcome in _LOST


def split_name(given: str) -> tuple[str, str | None]:
    """Return the run and the model of ``RUN::MODEL``; None for all its models."""
    run, separator, model = given.rpartition(_SEPARATOR)
    return (run, model) if separator else (given, None)


def sides_of(
    report: Report,
    name: str,
    model: str | None = None,
    match: Match = "id",
    metrics: Sequence[Metric] = (),
    by: str | None = None,
) -> list[Side]:
    """Return a run's models as sides, in input order."""
    samples = _read_samples(report, name, match, metrics, by)
    ids, models = samples.table.keys["id"], samples.table.keys["model"]
    tasks_of: dict[str, dict[str, array[int]]] = {}
    for row, (task_code, model_code) in enumerate(zip(ids.codes, models.codes, strict=True)):
        tasks = tasks_of.setdefault(models.values[model_code] or "", {})
        tasks.setdefault(ids.values[task_code], array("I")).append(row)
    if model is not None and model not in tasks_of:
        known = ", ".join(model_name or "(unnamed)" for model_name in tasks_of)
        raise ConfigError(f"{name}: it has no model {model!r}; there are: {known}")
    is_alone = model is None and len(tasks_of) == 1
    by_path = {(metric.of, metric.stage.key): metric for metric in metrics}
    sides = []
    for model_name, tasks in tasks_of.items():
        if model in (None, model_name):
            full_name = name if is_alone else f"{name}{_SEPARATOR}{model_name}"
            sides.append(Side(full_name, model_name, report, samples, tasks, match, by_path))
    return sides


def _read_samples(
    report: Report, name: str, match: Match, metrics: Sequence[Metric], by: str | None
) -> Samples:
    samples = Samples()
    needs = wanted(_graders(report), metrics, () if by is None else (by,))
    is_numbered = match == "id"

    def read_rows() -> Iterator[tuple[Key, GradedRow]]:
        nonlocal is_numbered
        for place, row in report.decoded(name):
            facets = row.facets or {}
            samples.facets |= dict.fromkeys(facets)
            samples.facts.append(_facts_of(place, row, needs.parts))
            is_numbered = is_numbered and facets.get("id_made") is True
            yield row.key(_task_of(row, match, name)), row

    def note_broken(metric: str, error: BaseException) -> None:
        samples.broken[metric] = error_text(error)

    samples.table = table_of(read_rows(), needs, note_broken)
    if samples.facts and is_numbered:
        why = "the records have no ids (they were numbered), so tasks cannot be matched"
        raise DataError(f"{name}: {why}", "use --match input or ordinal")
    if not samples.facts and report.summary:
        raise DataError(f"{name}: the run holds no sample, so that there is nothing to compare")
    return samples


def _facts_of(place: int, row: GradedRow, graders: Iterable[str]) -> SampleFacts:
    expected = {name: value for name, value in row.expected.items() if value is not None}
    is_recorded = bool(expected) or row.status is Status.OK  # a run that broke may hold none
    asked = row.sample.input
    turns = asked if isinstance(asked, list) else [asked]
    words = tuple(" ".join(map(str, turns)).split())
    expected_digest = _digest(expected) if is_recorded else 0
    asked_digest = 0 if asked is None else hash(words)
    causes = _causes([row.grades[key] for key in graders if key in row.grades])
    return SampleFacts(place, expected_digest, asked_digest, row.passed, causes, row.usage)


def _causes(grades: Sequence[Any]) -> tuple[Cause, ...]:
    """Return the reasons that a row's grades and their items name, each once."""
    faults = [grade.fault for grade in grades if grade.fault is not None]
    causes: dict[Cause, None] = {("reasons", fault.code): None for fault in faults}
    parts = [part for grade in grades for part in (grade, *grade.items)]
    for reason in [reason for part in parts for reason in part.reasons]:
        if reason.code == MORE_REASONS:
            continue
        causes["reasons", reason.code] = None
        if reason.subject:
            causes["tools", reason.subject] = None
            argument = f"{reason.pointer}/".split("/")[1].replace("~1", "/").replace("~0", "~")
            if argument:
                causes["arguments", f"{reason.subject}.{argument}"] = None
    return tuple(causes)


def _graders(report: Report) -> dict[str, Entry]:
    entries = report.header.get("components", ())
    return {entry["key"]: entry for entry in entries if entry["kind"] == "grader"}


def _digest(value: Any) -> int:
    try:
        return hash(msgspec.json.encode(value, order="deterministic"))
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, or a number beyond 64 bits
        return hash(dumps(value))


def _task_of(row: GradedRow, match: Match, name: str) -> str:
    if match == "id":
        return str(row.cluster or row.sample.id)
    given = row.sample.input if match == "input" else (row.source or {}).get("ordinal")
    if given is None:
        lacks = f"sample {row.sample.id} has no recorded {match} to match by"
        raise DataError(f"{name}: {lacks}", "use --match id, input or ordinal")
    return json.dumps(given, sort_keys=True)


def differing_parts(one: Entry, other: Entry) -> list[str]:
    """Return the parts in which two entries of a component differ.

    What only one of them records is not compared.
    """
    both = [name for name in _SAME if name in one and name in other]
    return [name for name in both if _decisive(one[name]) != _decisive(other[name])]


def _decisive(part: Any) -> Any:
    """Return a part of a component's entry without the places of recorded replies."""
    if "judgements" not in as_map(part):
        return part
    return {name: option for name, option in part.items() if name not in _ON_RECORD}


class Problem(msgspec.Struct, frozen=True):
    """Why two sides cannot be compared, or only with care."""

    text: str
    fix: str = ""
    refuses: bool = True


def differing(a: Side, b: Side, only: str | None = None) -> Iterator[Problem]:
    """Yield the differences between two sides beside their grades.

    Of all graders or ``only`` one, and of their tasks.
    """
    for key, entry in b.graders.items():
        if key in a.graders and only in (None, key):
            parts = differing_parts(a.graders[key], entry)
            verb = "differs" if len(parts) == 1 and parts != ["options"] else "differ"
            if parts:
                names = ", ".join(parts)
                yield Problem(f"grader {key}: {names} {verb} between {a.name} and {b.name}")
    common = [task for task in a.tasks if task in b.tasks]
    if not common:
        yield Problem(f"{a.name} and {b.name} have no task in common", UNMATCHED)
    expected_a, expected_b = _digests(a, "expected"), _digests(b, "expected")
    known = [task for task in common if expected_a[task] and expected_b[task]]
    changed = [task for task in known if expected_a[task] != expected_b[task]]
    if changed:
        has = "has" if len(common) == 1 else "have"
        what = f"{len(changed):,} of {counted(len(common), 'task')} {has} other expectations"
        yield Problem(f"{what} in {a.name} than in {b.name}, the first: {changed[0]}")
    yield from _asked_otherwise(a, b, expected_a)


def _digests(side: Side, name: str) -> dict[str, set[int]]:
    """Return the digests that the rows of each task have; none where none is recorded."""
    facts = side.samples.facts
    digests = {}
    for task, rows in side.tasks.items():
        digests[task] = {getattr(facts[row], name) for row in rows} - {0}
    return digests


def _shifted(changed: Sequence[str], inputs: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return the tasks whose input on the other side stands under another task on this one.

    None unless they are a tenth of all: then it is the ids that shifted.

    Args:
        changed: Tasks with another input.
        inputs: Task -> digest of its input on this side, and on the other.
    """
    times = Counter(here for here, _ in inputs.values())
    times_there = Counter(there for _, there in inputs.values())
    moved = []
    for task in changed:
        there = inputs[task][1]
        if times[there] == times_there[there] == 1:
            moved.append(task)
    return moved if len(moved) >= _SHIFTED * len(inputs) else []


def _asked_otherwise(a: Side, b: Side, expected: Mapping[str, set[int]]) -> Iterator[Problem]:
    """Yield the number of tasks with another input; if it differs by trial, it says nothing."""
    asked_a, asked_b = _digests(a, "asked"), _digests(b, "asked")
    known = [task for task in asked_a if len(asked_a[task]) == len(asked_b.get(task, ())) == 1]
    changed = [task for task in known if asked_a[task] != asked_b[task]]
    if not changed:
        return
    inputs = {task: (max(asked_a[task]), max(asked_b[task])) for task in known}
    shifted = _shifted(changed, inputs)
    were = "was" if len(changed) == 1 else "were"
    what = f"{len(changed):,} of {counted(len(known), 'task')} {were} asked something else"
    text = f"{what} in {a.name} than in {b.name}, the first: {(shifted or changed)[0]}"
    if shifted:
        name = "ordinal" if a.match == "ordinal" else "id"
        moved = f"{len(shifted):,} of them what {a.name} has under another {name}"
        yield Problem(f"{text}; {moved}: {name}s may have shifted", "; try --match input")
        return
    # what is expected does not tell the tasks apart
    are_alike = all(expected[task] == expected[changed[0]] for task in changed)
    if are_alike and len(changed) > _OTHER * len(known):
        yield Problem(f"{text}; they may be other tasks", "; try --match input")
    else:
        yield Problem(text, refuses=False)
