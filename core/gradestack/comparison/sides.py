"""One side of a comparison: the samples of one model in a finished run, as columns of its rows."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from statistics import median
from typing import Any, Literal, TypeVar, get_args

import msgspec

from gradestack.comparison.paired import mean_of
from gradestack.errors import ConfigError, DataError, error_text
from gradestack.grading.plan import Metric, Success, needs_of_figures
from gradestack.jsonio.values import as_map, as_text, dumps
from gradestack.model import Grade, Key, Outcome, Status
from gradestack.report import Report
from gradestack.rows.read import GradedRow, Took, table_of
from gradestack.table import Table

Match = Literal["id", "input", "ordinal"]
Failed = Literal["zero", "skip"]
Trial = tuple[int | str | None, int]
"""A trial's number or name, and which of its task's that are called so."""
Cause = tuple[Literal["reasons", "tools", "arguments", "details"], str]
"""A code of reasons, a tool they are about, an argument of it; or a code with these."""
Times = dict[str, int]
Entry = Mapping[str, Any]
"""What header.json says of a component."""
T = TypeVar("T")
MORE_REASONS = "more_reasons"
"""Code of a reason that is none: it says how many others were left out."""
_SEPARATOR = "::"
_NOT_GRADED = (Outcome.FAILED, Outcome.MISSING)
_encode = msgspec.json.Encoder(order="deterministic").encode


class SampleFacts(msgspec.Struct, gc=False, frozen=True):
    """The part of a row that a comparison needs beside its grades.

    Attributes:
        first_byte: Place of the row in its file.
        expected: Digest of what its grades were computed from; 0 where none is recorded.
        question: Digest of its input; 0 where none is recorded.
        passed: Whether the run's outcome passed.
        causes: What graders gave as reasons.
        usage: What the run took.
    """

    first_byte: int
    expected: int
    question: int
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
    _amounts: dict[str, list[float | None]] = msgspec.field(default_factory=dict)
    passes: dict[tuple[str, Failed], list[bool | None]] = msgspec.field(default_factory=dict)
    """Grader, and how failed trials count -> whether each row passes; filled as it is asked for."""

    def amounts(self, name: str) -> list[float | None]:
        """Return the amount that each row used: ``cost_usd``, ``tokens`` or ``seconds``."""
        if name not in self._amounts:
            self._amounts[name] = [getattr(fact.usage, name, None) for fact in self.facts]
        return self._amounts[name]


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
        grader = self.graders[key]
        entry = {"label": key, "unit": "score", "better": "higher", **grader}
        return {"label": entry["label"], "unit": entry["unit"], "better_is": entry["better"]}

    @property
    def outcome(self) -> str | None:
        """Key of the run's outcome grader."""
        return as_text(as_map(self.report.summary.get("outcome")).get("grader")) or None

    @property
    def is_whole_run(self) -> bool:
        """Whether the run has no other model."""
        tasks = self.tasks.values()
        total_tasks = sum(map(len, tasks))
        return total_tasks == len(self.samples.facts)

    def grade_values(self, key: str, value_of: Callable[[Grade], T]) -> list[T]:
        """Return for every row the value of its grade by a function."""
        table = self.samples.table
        grades = table.grades(key)
        values = [value_of(grade) for grade in grades]
        codes = table.verdicts[key].codes
        return [values[code] for code in codes]

    def scores(self, key: str, failed: Failed) -> list[float | None]:
        """Return the score of every row; None where it has no part.

        With ``zero`` a failed or missing one has the worst score there can be.
        """
        worst = None if failed == "skip" else self.worst_score(key)
        return self.grade_values(key, lambda grade: worst if _is_lost(grade) else grade.score)

    def worst_score(self, key: str) -> float | None:
        """Return the worst score a grader can give.

        None where no score is worse than another, or where there is no bound.
        """
        grader = self.graders[key]
        low, high = grader.get("bounds", (0.0, 1.0))
        worst: dict[str, float | None] = {"higher": low, "lower": high}
        direction = self.declared(key)["better_is"]
        return worst.get(direction)

    def has_lost_trials(self, key: str, tasks: Iterable[str]) -> bool:
        """Return whether a trial of some tasks has failed or is missing for a grader."""
        is_lost = self.grade_values(key, _is_lost)
        return any(is_lost) and any(is_lost[row] for task in tasks for row in self.tasks[task])

    def passes(self, key: str, failed: Failed) -> list[bool | None]:
        """Return whether each row passes, None where it has no part."""
        known = self.samples.passes
        if (key, failed) not in known:
            verdict_of_lost = None if failed == "skip" else False
            verdicts = zip(self._verdicts(key), self.grade_values(key, _is_lost), strict=True)
            known[key, failed] = [
                verdict_of_lost if is_lost else passed for passed, is_lost in verdicts
            ]
        return known[key, failed]

    def _verdicts(self, key: str) -> list[bool | None]:
        if key == self.outcome:
            return [fact.passed for fact in self.samples.facts]
        better: Any = "neither"
        if self.is_share(key):
            better = self.declared(key)["better_is"]
        rule = Success(key, better=better)
        return self.grade_values(key, rule.passed)

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
        return self._task_means(self.samples.amounts(name))

    def median_amount(self, name: str, tasks: Iterable[str]) -> float | None:
        """Return the median of what the runs of some tasks took; None where none records it."""
        amounts = self.samples.amounts(name)
        known = [amounts[row] for task in tasks for row in self.tasks[task]]
        recorded = [amount for amount in known if amount is not None]
        return median(recorded) if recorded else None

    def cost_per_passed(self, tasks: Iterable[str]) -> float | None:
        """Return the cost of all runs of some tasks for each that passed; None for no passed one.

        Runs without a recorded cost have no part.
        """
        costs = self.samples.amounts("cost_usd")
        known, passed = [], 0
        for task in tasks:
            for row in self.tasks[task]:
                cost = costs[row]
                if cost is not None:
                    known.append(cost)
                    fact = self.samples.facts[row]
                    passed += fact.passed is True
        return mean_of(known) * len(known) / passed if passed else None

    def _task_means(self, values: Sequence[float | None]) -> dict[str, float]:
        """Average the known values of the rows of each task."""
        means = {}
        for task, rows in self.tasks.items():
            of_task = [values[row] for row in rows]
            known = [value for value in of_task if value is not None]
            if known:
                means[task] = mean_of(known)
        return means

    def trial_verdicts(self, key: str, failed: Failed) -> dict[str, dict[Trial, bool]]:
        """Return whether each trial passed, by task and trial."""
        passes = self.passes(key, failed)
        tasks = self.tasks.items()
        return {task: self._verdicts_by_trial(rows, passes) for task, rows in tasks}

    def _verdicts_by_trial(
        self, rows: Sequence[int], passes: Sequence[bool | None]
    ) -> dict[Trial, bool]:
        """Map each trial (run, number within the run) to its verdict; skip rows without one."""
        runs = self.samples.table.keys["run"]
        verdicts: dict[Trial, bool] = {}
        times: dict[int | str | None, int] = {}
        for row in rows:
            passed = passes[row]
            if passed is not None:
                code = runs.codes[row]
                run = runs.values[code]
                number = times.get(run, 0) + 1
                times[run] = number
                verdicts[run, number] = passed
        return verdicts

    def causes_by_task(
        self, key: str, tasks: Iterable[str], failed: Failed
    ) -> tuple[Times, dict[Cause, Times]]:
        """Count the trials that some tasks have, and those in which each cause was given."""
        scores = self.scores(key, failed)
        facts = self.samples.facts
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
        table = self.samples.table
        values = table.facets()
        codes = table.keys["facets"].codes
        for row in self.tasks[task]:
            facets = values[codes[row]]
            if name in facets:
                return facets[name]
        return "(none)"


def _is_lost(grade: Grade) -> bool:
    return grade.outcome in _NOT_GRADED


def split_name(name: str) -> tuple[str, str | None]:
    """Return the run and the model of ``RUN::MODEL``; None for all its models."""
    run, separator, model = name.rpartition(_SEPARATOR)
    return (run, model) if separator else (name, None)


def sides_of(
    report: Report,
    name: str,
    model: str | None = None,
    match: Match = "id",
    metrics: Sequence[Metric] = (),
    by: str | None = None,
    *,
    is_only_run: bool = False,
) -> list[Side]:
    """Return a run's models as sides, in input order.

    Each is named by run and model; by its model alone where no other run is compared, and by the
    run alone where it has one model.
    """
    samples = _read_samples(report, name, match, metrics, by)
    tasks_of = _tasks_by_model(samples.table)
    if model is not None and model not in tasks_of:
        known = ", ".join(filter(None, tasks_of))
        others = f"there are: {known}" if known else "its runs name no model"
        raise ConfigError(f"{name}: it has no model {model!r}; {others}")
    is_alone = model is None and len(tasks_of) == 1
    by_path = {(metric.of, metric.stage.key): metric for metric in metrics}
    sides = []
    for model_name, tasks in tasks_of.items():
        if model in (None, model_name):
            full_name = model_name if is_only_run else f"{name}{_SEPARATOR}{model_name}"
            if is_alone or not full_name:
                full_name = name
            sides.append(Side(full_name, model_name, report, samples, tasks, match, by_path))
    return sides


def _tasks_by_model(table: Table) -> dict[str, dict[str, array[int]]]:
    """Return model -> task -> its rows, in input order."""
    ids = table.keys["id"]
    models = table.keys["model"]
    codes = zip(ids.codes, models.codes, strict=True)
    tasks_of: dict[str, dict[str, array[int]]] = {}
    for row, (task_code, model_code) in enumerate(codes):
        model = models.values[model_code] or ""
        task = ids.values[task_code]
        tasks = tasks_of.setdefault(model, {})
        tasks.setdefault(task, array("I")).append(row)
    return tasks_of


def _read_samples(
    report: Report, name: str, match: Match, metrics: Sequence[Metric], by: str | None
) -> Samples:
    """Read the rows of a report into facts and a table of grades; refuse rows without task ids."""
    samples = Samples()
    facets_used = () if by is None else (by,)
    needs = needs_of_figures(_graders(report), metrics, facets_used)
    is_numbered = match == "id"

    def read_rows() -> Iterator[tuple[Key, GradedRow]]:
        """Yield key and row of each decoded row, and note its facts and facets in the samples."""
        nonlocal is_numbered
        for first_byte, row in report.decoded(name):
            facets = row.facets or {}
            keys = samples.facets.keys()
            if not facets.keys() <= keys:
                samples.facets |= dict.fromkeys(facets)
            facts = _facts_of(first_byte, row, needs.parts)
            samples.facts.append(facts)
            is_numbered = is_numbered and facets.get("id_made") is True
            task = _task_of(row, match, name)
            yield row.key(task), row

    def note_broken(metric: str, error: BaseException) -> None:
        samples.broken[metric] = error_text(error)

    samples.table = table_of(read_rows(), needs, note_broken)
    if samples.facts and is_numbered:
        why = "the records have no ids (they were numbered), so tasks cannot be matched"
        raise DataError(f"{name}: {why}", "use --match input or ordinal")
    if not samples.facts and report.summary:
        raise DataError(f"{name}: it has no runs to compare")
    return samples


def _facts_of(first_byte: int, row: GradedRow, graders: Iterable[str]) -> SampleFacts:
    """Collect the digests, causes and usage of a row by which two runs are compared."""
    expected = {name: value for name, value in row.expected.items() if value is not None}
    is_recorded = bool(expected) or row.status is Status.OK  # a run that broke may hold none
    expected_digest = _digest(expected) if is_recorded else 0
    question = _digest_of_words(row.sample.input)
    causes: dict[Cause, None] = {}
    for key in graders:
        if key in row.grades:
            _add_causes(causes, row.grades[key])
    return SampleFacts(first_byte, expected_digest, question, row.passed, tuple(causes), row.usage)


def _digest_of_words(question: Any) -> int:
    """Return a digest of the words of an input; 0 where none is recorded."""
    if question is None:
        return 0
    text = " ".join(map(str, question)) if isinstance(question, list) else str(question)
    words = text.split()
    return hash(" ".join(words))


def _add_causes(causes: dict[Cause, None], grade: Any) -> None:
    """Add what a row's grade and its items name as reasons, each once."""
    if grade.fault is not None:
        causes["reasons", grade.fault.code] = None
        causes["details", grade.fault.code] = None
    reasons = grade.reasons
    for item in grade.items:
        if item.reasons:
            reasons += item.reasons
    for reason in reasons:
        if reason.code != MORE_REASONS:
            causes |= _causes_of(reason.code, reason.subject, reason.pointer)


@lru_cache(maxsize=4096)  # rows give the same reasons again and again
def _causes_of(code: str, subject: str | None, pointer: str | None) -> dict[Cause, None]:
    """Return the names that a reason is counted under: its code, tool, argument, and all three."""
    if not subject:
        return {("reasons", code): None, ("details", code): None}
    first_part = f"{pointer}/".split("/")[1]
    argument = first_part.replace("~1", "/").replace("~0", "~")
    if not argument:
        detail = f"{code}: {subject}"
        return {("reasons", code): None, ("details", detail): None, ("tools", subject): None}
    name = f"{subject}.{argument}"
    named: list[Cause] = [("reasons", code), ("tools", subject), ("details", f"{code}: {name}")]
    return dict.fromkeys([*named, ("arguments", name)])


def _graders(report: Report) -> dict[str, Entry]:
    entries = report.header.get("components", ())
    return {entry["key"]: entry for entry in entries if entry["kind"] == "grader"}


def _digest(value: Any) -> int:
    try:
        return hash(_encode(value))
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, or a number beyond 64 bits
        return hash(dumps(value))


def _task_of(row: GradedRow, match: Match, name: str) -> str:
    """Return the text by which a row's task is matched: its id, or its input or ordinal as JSON."""
    if match == "id":
        return str(row.cluster or row.sample.id)
    ordinal = None if row.source is None else row.source.ordinal
    matched = row.sample.input if match == "input" else ordinal
    if matched is None:
        lacks = f"sample {row.sample.id} has no recorded {match} to match by"
        others = " or ".join(way for way in get_args(Match) if way != match)
        raise DataError(f"{name}: {lacks}", f"use --match {others}")
    return json.dumps(matched, sort_keys=True)
