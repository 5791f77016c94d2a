"""Stability over the runs of each task."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Figure, Grade, Grades, Outcome, Profile, valid_confidence
from gradestack_plugins.stability.measures import Measures, documented, upstream
from gradestack_plugins.stability.records import INVALID
from gradestack_plugins.stability.sureness import IN_BITS, Share, mean_intervals

PASS, FAIL = "pass", "fail"

RATES: dict[str, str] = {
    "stability_at_k": "is_stable",
    "mean_consistency_at_k": "consistency",
    "stable_and_correct_rate": "is_stable_and_correct",
    "stable_but_wrong_rate": "is_stable_but_wrong",
    "mode_correct_rate": "is_mode_correct",
    "mean_accuracy_across_runs": "mean_accuracy_across_runs",
    "mean_entropy": "entropy",
    "mean_normalized_entropy": "normalized_entropy",
    "mean_flip_rate": "flip_rate",
}
"""Metric -> measure of one task it is the mean of, in output order."""

PER_GOLD = (
    "stability_at_k",
    "mean_consistency_at_k",
    "mean_entropy",
    "mean_normalized_entropy",
    "mean_flip_rate",
    "mean_accuracy_across_runs",
    "mode_correct_rate",
)
"""Metrics repeated for each gold label, in output order."""

_ENTROPY = "-sum of p log2 p over the values of a task"
_DECLARED: tuple[tuple[str, str, Literal["higher", "lower"], str], ...] = (
    ("stability_at_k", "The same answer in every run", "higher", "tasks whose k runs are alike / tasks"),
    (
        "mean_consistency_at_k",
        "Consistency",
        "higher",
        "mean over tasks of m / k, m runs having the most frequent value",
    ),
    ("stable_and_correct_rate", "The same right answer in every run", "higher", "tasks whose k runs are right / tasks"),
    ("stable_but_wrong_rate", "The same wrong answer in every run", "lower", "tasks of k alike, wrong runs / tasks"),
    ("mode_correct_rate", "Most frequent answer right", "higher", "tasks whose most frequent value is right / tasks"),
    ("mean_accuracy_across_runs", "Accuracy across runs", "higher", "mean over tasks of right runs / k"),
    ("mean_entropy", "Entropy of the answers", "lower", f"mean over tasks of {_ENTROPY}"),
    (
        "mean_normalized_entropy",
        "Normalised entropy of the answers",
        "lower",
        "entropy / log2 of the size of the label set",
    ),
    ("mean_flip_rate", "Answer changed from run to run", "lower", "mean over tasks of changes / (runs - 1)"),
)
_FIGURES = tuple(
    Figure(name, label, better=better, unit="bits" if metric in IN_BITS else "share", about=about, optional=True)
    for metric, label, better, about in _DECLARED
    for name in (metric, *([f"{metric}_gold_{{label}}"] if metric in PER_GOLD else []))
)


@attrs.define
class Task:
    """What was recorded of one task of a model."""

    id: str
    runs: list[Hashable] = attrs.field(factory=list)
    """Values in recorded order; a label that is no text stands as (its JSON text,)."""
    gold: str | None = None
    k: int = 0
    """Runs asked for, 0 when unknown."""
    rows: int | None = None
    """Dataset rows with this id; None when there is no dataset."""
    lost: Counter[str] = attrs.field(factory=Counter)
    """Runs without a value, by outcome."""
    derived: Mapping[str, Any] | None = None
    """Derived fields of a record that are trusted; None when there is no record of that kind."""


@attrs.frozen
class _Processed:
    measures: Measures
    gold: str
    task: str
    runs: int


@attrs.frozen(kw_only=True)
class Stability(Aggregator):
    """How alike the k runs of a task are, over any grader's outcomes.

    A run's value is the label of its grade, or ``pass`` / ``fail`` where the grader gives none (its own verdict, else
    score against ``threshold``; the gold label is then ``pass``). Per task with values y1 ... yk in recorded order, m
    the multiplicity of the most frequent value (the mode; on a tie the value seen first):

    - consistency = m / k; stable: m = k; mode correct: mode = gold
    - mean accuracy across runs = #(y_r = gold) / k
    - entropy H = -sum p log2 p over the values present; normalised H / log2 |Y|
    - flip rate = #(y_r != y_(r-1)) / (runs - 1)

    Every metric is the arithmetic mean over tasks: ``stability_at_k``, ``mean_consistency_at_k``,
    ``stable_and_correct_rate``, ``stable_but_wrong_rate``, ``mode_correct_rate``, ``mean_accuracy_across_runs``,
    ``mean_entropy``, ``mean_normalized_entropy``, ``mean_flip_rate``; some again per gold label, ``..._gold_LABEL``.
    ``coverage = n_items_processed / n_items_total``. Standard errors of the means over tasks stand under ``stderr``, an
    interval that leaves out one task at a time beside each mean. Of several models ``models`` has the figures of each.

    Differences between the profiles:

    - divisor: ``documented`` the tasks processed; ``upstream`` the tasks of the dataset, so a task without runs lowers
      every mean, and one outside the dataset raises it (coverage can pass 1). ``documented`` leaves the latter out.
    - |Y|: ``documented`` the label set, one more for a task that holds a value outside it (all such values count as
      ``invalid``), so at most 1; ``upstream`` the label set, so ``invalid`` can take it above 1
    - k: ``documented`` the runs asked for, at least those recorded or lost; ``upstream`` the record's ``n_runs`` even
      when more runs are there, so m / k can pass 1, and for the accuracy the runs recorded
    - flip rate of a single run: ``documented`` undefined (null, outside the mean); ``upstream`` 0.0
    - derived fields of a record: ``documented`` computes all anew; ``upstream`` trusts what is there
    - nothing to average: ``documented`` null; ``upstream`` 0.0 per gold label, and no metrics at all without any task

    A run without a value (missing, failed or skipped) is counted under ``n_runs_missing``; it keeps a task from being
    stable.
    """

    version = "2"
    figures: ClassVar = _FIGURES
    keeps: ClassVar = frozenset(f"metadata:{name}" for name in ("label_set", "n_runs", "derived", "label_json"))

    profile: Profile = "documented"
    labels: tuple[str, ...] | None = None
    """Label set; default: as declared by the grades, else pass and fail, else the labels seen."""
    value: Literal["auto", "label", "passed"] = "auto"
    """What a run's value is: ``label``, ``passed``, or the label where there is one."""
    threshold: float = 1.0
    """Score from which a run passes, where its grader has no verdict of its own."""
    runs: int | None = None
    """Runs asked for per task (k), where the records do not say."""
    divisor: Literal["processed", "items"] | None = None
    """What means are divided by; default ``processed`` (upstream: ``items``)."""
    by: tuple[str, ...] = ("experiment",)
    """Facets that keep runs of the same task and model apart."""
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    def __attrs_post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise ValueError(f"runs must be at least 1, got {self.runs}")
        if self.labels is not None and (len(self.labels) < 2 or len(set(self.labels)) < len(self.labels)):
            raise ValueError("labels must name at least two different labels")
        if not math.isfinite(self.threshold):
            raise ValueError("threshold must be a finite number")

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return self.by

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        groups: dict[tuple[Hashable, ...], Task] = {}
        models: dict[str, list[Task]] = {}
        declared: dict[str, None] = {}
        passes = False
        for key, grade in grades:
            place = (key.model, *(json.dumps(key.facets.get(name), sort_keys=True) for name in self.by), key.id)
            if (task := groups.get(place)) is None:
                task = groups[place] = Task(key.id)
                models.setdefault(key.model or "", []).append(task)
            declared |= dict.fromkeys(_declared(grade.metadata))
            passes = self._record(task, grade) or passes
        tasks = list(groups.values())
        labels, classes = self._label_set(tuple(declared), tasks, passes=passes)
        found, counts = self._figures(tasks, labels, classes)
        result = {**found, **counts, **self._runs(tasks), "labels": list(labels), "gold_labels": list(classes)}
        if len(models) > 1:
            result["models"] = {model: self._figures(held, labels, classes)[0] for model, held in models.items()}
        return result

    def _record(self, task: Task, grade: Grade) -> bool:
        """Add a run to its task; return whether its value is a pass or fail."""
        if isinstance(asked := grade.metadata.get("n_runs"), int):
            task.k = max(task.k, asked)
        if task.derived is None and isinstance(derived := grade.metadata.get("derived"), Mapping):
            task.derived = derived
        task.rows = grade.counts.get("dataset_rows") if task.rows is None else task.rows
        value, gold, passed = self._value(grade)
        task.gold = gold if task.gold is None else task.gold
        if value is None:
            task.lost[grade.outcome] += 1
        else:
            task.runs.append(value)
        return passed

    def _figures(
        self, tasks: Sequence[Task], labels: tuple[str, ...], classes: tuple[str, ...]
    ) -> tuple[dict[str, JSON], dict[str, JSON]]:
        """Return the figures of tasks, and what is counted beside them."""
        if self.profile == "upstream":
            return self._upstream(tasks, labels, classes)
        return self._documented(tasks, labels, classes)

    def _value(self, grade: Grade) -> tuple[str | tuple[str] | None, str | None, bool]:
        """Return (value, gold, whether it is a pass or fail); value None when the run has none."""
        if grade.outcome is Outcome.MISSING:
            return None, grade.gold, False
        if self.value != "passed":
            if grade.label is not None:
                return grade.label, grade.gold, False
            if isinstance(text := grade.metadata.get("label_json"), str):
                return (text,), grade.gold, False
        if self.value == "label" or grade.score is None:
            return None, grade.gold, False
        passed = grade.passed if grade.passed is not None else grade.score >= self.threshold
        return PASS if passed else FAIL, PASS, True

    def _label_set(
        self, declared: tuple[str, ...], tasks: Sequence[Task], *, passes: bool
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the label set, and those of it that are reported as gold labels of their own."""
        if self.labels is not None:
            return self.labels, self.labels
        seen = {value for task in tasks for value in task.runs}
        if passes and seen <= {PASS, FAIL}:
            return (PASS, FAIL), ()
        if declared:
            return declared, declared
        seen = (seen - {INVALID}) | {task.gold for task in tasks}
        known = tuple(sorted(label for label in seen if isinstance(label, str)))
        return known, known

    @staticmethod
    def _total(tasks: Sequence[Task]) -> int:
        return sum(1 if task.rows is None else task.rows for task in tasks)

    def _documented(
        self, tasks: Sequence[Task], labels: tuple[str, ...], classes: tuple[str, ...]
    ) -> tuple[dict[str, JSON], dict[str, JSON]]:
        outside = [task for task in tasks if task.rows == 0]
        inside = [task for task in tasks if task.rows != 0]
        with_runs = [task for task in inside if task.runs]
        with_gold = [task for task in with_runs if task.gold is not None]
        processed = [
            _Processed(self._measure(task, labels), str(task.gold), task.id, len(task.runs))
            for task in with_gold
            if task.gold in labels
        ]
        total = self._total(inside)
        divisor = total if self.divisor == "items" else None
        undefined: dict[str, str] = {}
        metrics: dict[str, JSON] = {
            "n_items_total": total,
            "n_items_processed": len(processed),
            "coverage": len(processed) / total if total else None,
        }
        metrics |= _means(processed, RATES, "", divisor, undefined)
        absent = _absent(inside, processed) if divisor is not None else ()
        metrics |= self._intervals(processed, RATES, "", absent, undefined)
        for label in classes:
            some = [each for each in processed if each.gold == label]
            suffix = f"_gold_{label}"
            metrics[f"n_items{suffix}"] = len(some)
            metrics |= _means(some, PER_GOLD, suffix, None, undefined)
            metrics |= self._intervals(some, PER_GOLD, suffix, (), undefined)
        metrics["stderr"] = {name: _stderr(_values(processed, name)) for name in RATES}
        metrics["undefined"] = undefined
        return metrics, {
            "n_items_without_runs": len(inside) - len(with_runs),
            "n_items_without_gold": len(with_runs) - len(with_gold),
            "n_items_unknown_gold": len(with_gold) - len(processed),
            "n_items_outside_dataset": len(outside),
        }

    def _intervals(
        self,
        processed: Sequence[_Processed],
        metrics: Iterable[str],
        suffix: str,
        absent: Sequence[Share],
        undefined: Mapping[str, str],
    ) -> dict[str, JSON]:
        """Return the interval of each mean; ``absent`` adds to the divisor alone."""
        means = {}
        for name in metrics:
            values = [(each, getattr(each.measures, RATES[name])) for each in processed]
            present = [Share(each.task, each.runs, float(value)) for each, value in values if value is not None]
            means[name] = [*present, *absent]
        found = mean_intervals(means, self.confidence)
        return {
            f"{name}{suffix}_interval": {"reason": undefined[name + suffix]}
            if name + suffix in undefined
            else {**found[name]}
            for name in means
        }

    def _asked(self, task: Task) -> int:
        """Return k of ``documented``: the runs asked for, at least those recorded or lost."""
        return max(task.k, self.runs or 0, len(task.runs) + sum(task.lost.values()))

    def _measure(self, task: Task, labels: tuple[str, ...]) -> Measures:
        # None, not INVALID: a class may have that name
        values: list[Hashable] = [value if value in labels else None for value in task.runs]
        size = len(labels) + any(value not in labels for value in values)
        return documented(values, task.gold, self._asked(task), size)

    def _upstream(
        self, tasks: Sequence[Task], labels: tuple[str, ...], classes: tuple[str, ...]
    ) -> tuple[dict[str, JSON], dict[str, JSON]]:
        records = [task for task in tasks if task.runs or task.derived is not None]
        with_gold = [task for task in records if task.gold is not None]
        processed = [
            _Processed(
                upstream(task.runs, task.gold, task.k or self.runs or 0, len(labels), task.derived or {}),
                str(task.gold),
                task.id,
                len(task.runs),
            )
            for task in with_gold
            if task.gold in labels
        ]
        total = self._total(tasks)
        counts: dict[str, JSON] = {
            "n_items_without_runs": len(tasks) - len(records),
            "n_items_without_gold": len(records) - len(with_gold),
            "n_items_unknown_gold": len(with_gold) - len(processed),
            "n_items_outside_dataset": sum(task.rows == 0 for task in tasks),
        }
        if not total:
            return {}, counts
        divisor = float(len(with_gold) if self.divisor == "processed" else total)
        metrics: dict[str, JSON] = {
            "n_items_total": float(total),
            "n_items_processed": float(len(with_gold)),
            "coverage": len(with_gold) / float(total),
        }
        for name in RATES:
            metrics[name] = math.fsum(_values(processed, name)) / divisor if divisor else 0.0
        if self.divisor == "processed":
            absent = [Share(task.id, 0, 0.0) for task in with_gold if task.gold not in labels]
        else:
            absent = _absent(tasks, processed)
        metrics |= self._intervals(processed, RATES, "", absent, {})
        for label in classes:
            some = [each for each in processed if each.gold == label]
            for name in PER_GOLD:
                value = math.fsum(_values(some, name)) / float(len(some)) if some else 0.0
                metrics[f"{name}_gold_{label}"] = value
            metrics |= self._intervals(some, PER_GOLD, f"_gold_{label}", (), {})
        return metrics, counts

    def _runs(self, tasks: Sequence[Task]) -> dict[str, JSON]:
        """Return what is there and what is lacking, over tasks with at least one recorded run."""
        asked = Counter(self._asked(task) for task in tasks if task.runs)
        expected = sum(k * number for k, number in asked.items())
        recorded = sum(len(task.runs) for task in tasks)
        lost: Counter[str] = Counter()
        for task in tasks:
            lost.update(task.lost if task.runs else {})
        return {
            "tasks_by_k": {str(k): asked[k] for k in sorted(asked)},
            "n_runs_expected": expected,
            "n_runs_recorded": recorded,
            "n_runs_missing": expected - recorded,
            "n_runs_failed": lost[Outcome.FAILED],
            "n_runs_skipped": lost[Outcome.SKIPPED],
        }


def _declared(metadata: Mapping[str, JSON]) -> list[str]:
    """Return the labels a grade declares."""
    label_set = metadata.get("label_set")
    declared = label_set.get("labels") if isinstance(label_set, Mapping) else None
    return [each for each in declared if isinstance(each, str)] if isinstance(declared, list | tuple) else []


def _values(processed: Sequence[_Processed], metric: str) -> list[float]:
    found: Iterator[float | None] = (getattr(each.measures, RATES[metric]) for each in processed)
    return [float(value) for value in found if value is not None]


def _absent(tasks: Sequence[Task], processed: Sequence[_Processed]) -> list[Share]:
    """Return what tasks add to a divisor of dataset rows beyond the one of every task that was processed."""
    found = [Share(task.id, 0, 0.0, float(1 if task.rows is None else task.rows)) for task in tasks]
    return [*found, *(Share(each.task, 0, 0.0, -1.0) for each in processed)]


def _means(
    processed: Sequence[_Processed],
    metrics: Sequence[str] | Mapping[str, str],
    suffix: str,
    divisor: int | None,
    undefined: dict[str, str],
) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for name in metrics:
        values = _values(processed, name)
        by = len(values) if divisor is None else divisor
        found[name + suffix] = math.fsum(values) / by if by else None
        if not by:
            undefined[name + suffix] = "no task has two runs" if processed and name == "mean_flip_rate" else "no task"
    return found


def _stderr(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean over tasks, sample standard deviation / sqrt(n); None below two tasks."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
