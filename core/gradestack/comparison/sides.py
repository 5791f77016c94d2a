"""One side of a comparison: the trials of one model's tasks in a finished run, read from its rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from hashlib import blake2b
from operator import add
from typing import Any, Literal

import attrs
import msgspec

from gradestack.errors import ConfigError, DataError
from gradestack.jsonio.values import as_map, as_text, dumps
from gradestack.model import JSON, Outcome
from gradestack.output.words import counted
from gradestack.report import Report

Match = Literal["id", "input", "ordinal"]
Failed = Literal["zero", "skip"]
UNMATCHED = "have no task in common"
_APART = "::"
_SAME = ("name", "version", "options", "code", "extractor")
"""What is the same of a component that gives the same on both sides."""
_SHIFTED = 0.1
"""Share of the tasks that were asked what another task was, from which on ids are taken for shifted."""
_OTHER = 0.5
"""Share of the tasks that were asked something else, above which they are taken for others."""
_SEVERAL = "several"


@attrs.frozen
class Graded:
    """What one grader says of one trial."""

    state: str
    score: float | None
    passed: bool


@attrs.frozen
class Trial:
    """One recorded run of a task."""

    run: int | str | None
    grades: Mapping[str, Graded]
    position: int
    """Zero-based number of its row."""
    passed: bool | None = None
    """The run's verdict on it; None where it has none."""


@attrs.define
class Task:
    """One task's trials."""

    trials: list[Trial] = attrs.field(factory=list)
    expected: str = ""
    """Digest of what its grades were computed from."""
    asked: str = ""
    """Digest of its input, where all its trials have the same; "" where none records one."""
    facets: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Side:
    """One model's tasks in one run."""

    name: str
    model: str
    report: Report
    tasks: Mapping[str, Task]
    match: Match = "id"

    def share(self, key: str) -> bool:
        """Return whether a grader's scores are bound to [0, 1]."""
        graders = (each for each in self.report.header.get("components", ()) if each["kind"] == "grader")
        return not any(each["key"] == key and "bounds" in each for each in graders)

    def declared(self, key: str) -> dict[str, JSON]:
        """Return what a grader says of its score: label, unit, and which direction is better."""
        entries = self.report.header.get("components", ())
        none: Mapping[str, Any] = {}
        entry = next((each for each in entries if each["kind"] == "grader" and each["key"] == key), none)
        return {
            "label": entry.get("label", key),
            "unit": entry.get("unit", "score"),
            "better_is": entry.get("better", "higher"),
        }

    @property
    def outcome(self) -> str | None:
        """Key of the run's outcome grader."""
        return as_text(as_map(self.report.summary.get("outcome")).get("grader")) or None

    @property
    def graders(self) -> dict[str, JSON]:
        """Grader key -> its entry in header.json."""
        return {each["key"]: each for each in self.report.header.get("components", ()) if each["kind"] == "grader"}

    @property
    def trials(self) -> int:
        """The most trials of a task."""
        return max((len(task.trials) for task in self.tasks.values()), default=0)


def split_name(given: str) -> tuple[str, str | None]:
    """Return the run and the model of ``RUN::MODEL``; None for all its models."""
    run, apart, model = given.rpartition(_APART)
    return (run, model) if apart else (given, None)


def sides_of(
    report: Report,
    name: str,
    model: str | None = None,
    match: Match = "id",
    rows: Iterable[Mapping[str, Any]] | None = None,
) -> list[Side]:
    """Return a run's models as sides, in input order.

    Args:
        report: The finished run.
        name: What it is called; with its model where it has several.
        model: The only model wanted.
        match: What makes two samples the same task: their id (or cluster), their input, their place in the file.
        rows: The rows, where the report has none yet.

    Raises:
        ConfigError: It has no such model.
        DataError: It keeps no rows, or rows that are not those of a run, or nothing to match by.
    """
    if report.header.get("rows") is False:
        msg = f"{name}: the run keeps no rows (rows: none), so that nothing can be compared task by task"
        raise DataError(msg)
    models: dict[str, dict[str, Task]] = {}
    made = count = 0
    for row in _rows(report, name) if rows is None else rows:
        tasks = models.setdefault(row.get("model_name") or "", {})
        _take(tasks.setdefault(task_of(row, match, name), Task()), row, count)
        count += 1
        made += (row.get("facets") or {}).get("id_made") is True
    if rows is None and not count:
        msg = f"{name}: the run holds no sample, so that there is nothing to compare"
        raise DataError(msg)
    if match == "id" and count and made == count:
        msg = f"{name}: all ids were made up, so that tasks cannot be matched by them"
        raise DataError(msg, "use --match input or ordinal")
    if model is not None and model not in models:
        known = ", ".join(each or "(unnamed)" for each in models)
        msg = f"{name}: it has no model {model!r}; there are: {known}"
        raise ConfigError(msg)
    if model is not None:
        return [Side(f"{name}{_APART}{model}", model, report, models[model], match)]
    if len(models) == 1:
        only, tasks = next(iter(models.items()))
        return [Side(name, only, report, tasks, match)]
    return [Side(f"{name}{_APART}{each}", each, report, tasks, match) for each, tasks in models.items()]


class _Sample(msgspec.Struct):
    id: str | int


class _Grade(msgspec.Struct):
    state: Outcome
    score: float | None
    passed: bool | None = None


class _Row(msgspec.Struct):
    """What is read of a row; pages show the rest, and nothing is computed from it."""

    sample: _Sample
    expected: dict[str, Any]
    grades: dict[str, _Grade]
    run: int | str | None = None
    model_name: str | None = None
    cluster: str | None = None
    facets: dict[str, Any] | None = None
    source: dict[str, Any] | None = None


def _rows(report: Report, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield a run's rows, which anybody may have written since.

    Raises:
        DataError: One is not of the form of a row, or has a grade without a finite score.
    """
    for number, row in enumerate(report.rows(), 1):
        try:
            grades = msgspec.convert(row, _Row).grades
        except msgspec.ValidationError as error:
            msg = f"{name}: row {number} of its results.jsonl is not that of a run: {error}"
            raise DataError(msg) from error
        for key, grade in grades.items():
            if grade.state == Outcome.GRADED and (grade.score is None or not math.isfinite(grade.score)):
                msg = f"{name}: row {number} of its results.jsonl is graded by {key}, and its score is no finite number"
                raise DataError(msg)
        yield row


def _take(task: Task, row: Mapping[str, Any], position: int) -> None:
    expected = {key: value for key, value in row["expected"].items() if value is not None}
    task.expected = _one(task.expected, _digest(dumps(expected)))
    if (asked := row["sample"].get("input")) is not None:
        words = " ".join(map(str, asked if isinstance(asked, list) else [asked])).split()
        task.asked = _one(task.asked, _digest(" ".join(words)))
    task.facets = task.facets or row.get("facets") or {}
    grades = {}
    for key, grade in row["grades"].items():
        graded = grade["state"] == Outcome.GRADED
        score = grade["score"] if graded else None
        passed = grade.get("passed")
        grades[key] = Graded(
            grade["state"], score, bool(score is not None and score >= 1) if passed is None else passed
        )
    task.trials.append(Trial(row.get("run"), grades, position, row.get("passed")))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _one(before: str, digest: str) -> str:
    return digest if before in ("", digest) else _SEVERAL


def task_of(row: Mapping[str, Any], match: Match, name: str) -> str:
    """Return what a row's task is called, which is the same in all runs.

    Raises:
        DataError: It records no input, or no place, to match by.
    """
    sample = row["sample"]
    if match == "id":
        return str(row.get("cluster") or sample["id"])
    if match == "input":
        if sample.get("input") is None:
            msg = f"{name}: sample {sample['id']} has no recorded input to match by; use --match id or ordinal"
            raise DataError(msg)
        return json.dumps(sample["input"], sort_keys=True)
    source = row.get("source") or {}
    if "ordinal" not in source:
        msg = f"{name}: sample {sample['id']} has no recorded place to match by; use --match id or input"
        raise DataError(msg)
    return str(source["ordinal"])


def score_of(trial: Trial, key: str, failed: Failed) -> float | None:
    """Return a trial's score; a failed or missing one is 0 with ``zero``, None where it has no part."""
    grade = trial.grades.get(key)
    if grade is None or grade.state == Outcome.SKIPPED:
        return None
    if grade.score is None:
        return 0.0 if failed == "zero" else None
    return grade.score


def task_means(tasks: Mapping[str, Task], key: str, failed: Failed) -> dict[str, float]:
    """Return the mean score of every task that has a trial with one."""
    found = {}
    for name, task in tasks.items():
        scores = [score for trial in task.trials if (score := score_of(trial, key, failed)) is not None]
        if scores:
            found[name] = reduce(add, scores) / len(scores)  # from Python 3.12 on, ``sum`` rounds otherwise
    return found


def pass_rates(tasks: Mapping[str, Task], key: str, failed: Failed) -> dict[str, float]:
    """Return the share of trials that passed, by the run's verdict, of every task; ``key`` is the outcome grader."""
    found = {}
    for name, task in tasks.items():
        counted = [trial.passed is True for trial in task.trials if score_of(trial, key, failed) is not None]
        if counted:
            found[name] = sum(counted) / len(counted)
    return found


def differing_parts(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return what differs between two entries of a component; what only one of them records is not compared."""
    found = []
    for name in _SAME:
        if name in one and name in other:
            left, right = one[name], other[name]
            if differing_parts(left, right) if name == "extractor" else left != right:
                found.append(name)
    return found


def differing(a: Side, b: Side, only: str | None = None) -> list[str]:
    """Return why two sides cannot be compared, on all graders or ``only`` one; empty where they can."""
    problems = []
    for key, made in b.graders.items():
        mine = a.graders.get(key)
        if mine is not None and only in (None, key) and (parts := differing_parts(mine, made)):
            verb = "differs" if len(parts) == 1 and parts != ["options"] else "differ"
            problems.append(f"grader {key}: {', '.join(parts)} {verb} between {a.name} and {b.name}")
    common = [task for task in a.tasks if task in b.tasks]
    changed = [task for task in common if a.tasks[task].expected != b.tasks[task].expected]
    if changed:
        has = "has" if len(common) == 1 else "have"
        what = f"{len(changed):,} of {counted(len(common), 'task')} {has} other expectations"
        problems.append(f"{what} in {a.name} than in {b.name}, the first: {changed[0]}")
    if (others := asked_otherwise(a, b)) is not None and others.apart:
        problems.append(others.text)
    if not common:
        problems.append(f"{a.name} and {b.name} {UNMATCHED}")
    return problems


@attrs.frozen
class AskedOtherwise:
    """Tasks that were asked something else on each side."""

    text: str
    """How many, and the first."""
    apart: bool
    """Whether ids do not stand for the same tasks."""


def asked_otherwise(a: Side, b: Side) -> AskedOtherwise | None:
    """Return how many tasks of two sides have another input, None where none has.

    Inputs that differ between the trials of a task, as those of simulated users do, say nothing.
    """
    known = {
        task: (left.asked, right.asked)
        for task, left in a.tasks.items()
        if (right := b.tasks.get(task)) is not None and not {"", _SEVERAL} & {left.asked, right.asked}
    }
    changed = [task for task, (left, right) in known.items() if left != right]
    if not changed:
        return None
    before, after = (Counter(each) for each in zip(*known.values(), strict=True))
    moved = [task for task in changed if before[known[task][1]] == after[known[task][1]] == 1]
    alike = len({a.tasks[task].expected for task in changed}) == 1  # they do not tell tasks apart
    shifted = len(moved) >= _SHIFTED * len(known)
    were = "was" if len(changed) == 1 else "were"
    text = f"{len(changed):,} of {counted(len(known), 'task')} {were} asked something else in {a.name} than in {b.name}"
    text += f", the first: {(moved if shifted else changed)[0]}"
    if shifted:
        what = "ordinal" if a.match == "ordinal" else "id"
        text += f"; {len(moved):,} of them what {a.name} has under another {what}: {what}s may have shifted"
    return AskedOtherwise(text, shifted or (alike and len(changed) > _OTHER * len(known)))
