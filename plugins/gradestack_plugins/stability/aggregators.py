"""Grader ``stability_label`` and aggregator ``stability``: how alike the runs of a task are."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal

import attrs
import msgspec
from attrs.validators import ge, gt, lt, optional
from typing_extensions import override

from gradestack import (
    JSON,
    Fault,
    Figure,
    Grade,
    Grader,
    Grades,
    Outcome,
    Reason,
    Sample,
    Status,
    failed,
    native_of,
    ratio,
    ratio_interval,
    replace,
    skipped,
)
from gradestack.jsonio import as_count, as_list, as_map
from gradestack_plugins.readers.joined import INVALID, LABELS
from gradestack_plugins.stability.items import item_measures
from gradestack_plugins.stability.program import METRICS_PER_GOLD
from gradestack_plugins.stability.reader import StabilityRun
from gradestack_plugins.statistics.mean import IntervalAggregator


class StabilityLabel(Grader):
    """Compares the label of one run with the gold label: score 1.0 when equal, 0.0 otherwise.

    The aggregator ``stability`` folds the labels of a task's runs; the mean score over runs is the
    mean accuracy across runs when every task has as many. The first run of a record carries the
    runs asked for. A label outside the four is ``invalid``, a null label a missing run, and a gold
    label outside the four a failure.

    Samples of other formats are graded by their ``label`` and expected label, whatever the label
    set.
    """

    compares = frozenset({"label"})
    graded_statuses = frozenset({Status.OK, Status.MISSING})
    metrics = ("mean", "stability")
    verdict_labels = ("correct", "wrong")
    native = StabilityRun

    @override
    def grade(self, sample: Sample) -> Grade:
        native = native_of(sample, StabilityRun)
        if native is None:
            return _compare(sample, sample.label)
        label = sample.label
        gold = sample.expected.label
        if label not in (None, *LABELS):
            label = INVALID
        grade = _compare(sample, label)
        if label is not None and gold not in (None, *LABELS):
            message = f"gold label {gold!r} is none of {', '.join(LABELS)}"
            fault = Fault(category="data", code="unknown_gold", message=message)
            grade = replace(failed(fault), label=label, gold=gold)
        metadata: dict[str, JSON] = {}
        if native.first:
            label_set = {"labels": list(LABELS)}
            metadata = {"label_set": label_set, "n_runs": native.n_runs}
        return replace(grade, metadata=metadata, counts=native.counts, parts=native.parts)


def _compare(sample: Sample, label: str | None) -> Grade:
    """Grade a run by whether its label is the gold one; skip it where either is missing."""
    gold = sample.expected.label
    if sample.status is Status.MISSING:
        return Grade(outcome=Outcome.MISSING, gold=gold, rationale="this run was not recorded")
    if label is None:
        return skipped("no_label", "the run has no label")
    if gold is None:
        no_gold = skipped("no_gold_label", "no gold label: give the dataset (--dataset)")
        return replace(no_gold, label=label)
    if label == gold:
        return Grade(score=1.0, label=label, gold=gold)
    reason = Reason(code="wrong_label", expected=gold, actual=label)
    return Grade(score=0.0, label=label, gold=gold, reasons=(reason,), rationale=reason.code)


PASS, FAIL = "pass", "fail"
_LOWER = ("stable_but_wrong_rate", "mean_entropy", "mean_normalized_entropy", "mean_flip_rate")
_BITS = "mean_entropy"
"""The mean that is not bound to [0, 1]."""

MEANS: dict[str, tuple[str, str]] = {
    "stability_at_k": ("The same answer in every run", "tasks whose k runs are alike / tasks"),
    "mean_consistency_at_k": (
        "Consistency",
        "mean over tasks of m / k, m runs having the most frequent value",
    ),
    "stable_and_correct_rate": (
        "The same right answer in every run",
        "tasks whose k runs are right / tasks",
    ),
    "stable_but_wrong_rate": (
        "The same wrong answer in every run",
        "tasks of k alike, wrong runs / tasks",
    ),
    "mode_correct_rate": (
        "Most frequent answer right",
        "tasks whose most frequent value is right / tasks",
    ),
    "mean_accuracy_across_runs": ("Accuracy across runs", "mean over tasks of right runs / k"),
    "mean_entropy": (
        "Entropy of the answers",
        "mean over tasks of -sum of p log2 p over the values of a task",
    ),
    "mean_normalized_entropy": (
        "Normalised entropy of the answers",
        "entropy / log2 of the size of the label set",
    ),
    "mean_flip_rate": ("Answer changed from run to run", "mean over tasks of changes / (runs - 1)"),
}
"""Means over tasks in output order: their words and formulas."""


def _declare(metric: str, suffix: str = "") -> Figure:
    """Declare the figure of a mean over tasks, whose name ends in ``suffix``."""
    label, about = MEANS[metric]
    undefined = "no task has two runs" if metric == "mean_flip_rate" else "no task"
    return Figure(
        metric + suffix,
        label,
        "lower" if metric in _LOWER else "higher",
        "bits" if metric == _BITS else "share",
        about,
        undefined=undefined,
    )


class Task(msgspec.Struct):
    """Runs of one task by one model."""

    id: str
    model: str = ""
    n_asked: int = 0
    """Runs asked for, 0 when unknown."""
    runs: list[str] = []
    """Values in recorded order."""
    gold: str | None = None
    rows: int = 1
    """Dataset rows with this id; 1 when there is no dataset."""
    valueless: Counter[str] = msgspec.field(default_factory=Counter)
    """Runs without a value, by outcome."""
    measures: dict[str, float | None] = {}
    """A value for every mean, None where undefined; empty without runs or a known gold label."""

    @property
    def k(self) -> int:
        """The runs asked for, at least those recorded or lost."""
        run_count = len(self.runs)
        total = self.valueless.total()
        return max(self.n_asked, run_count + total)

    def measure(self, labels: Sequence[str]) -> None:
        """Measure a task within a label set; values outside it are all alike."""
        if not self.runs or self.gold not in labels:
            return
        # None, not INVALID: a class may have that name
        values = [value if value in labels else None for value in self.runs]
        counts = Counter(values)
        mode, count = counts.most_common(1)[0]
        n_labels = len(labels) + (None in values)
        item = item_measures(values, n_labels)
        is_stable = count == self.k
        is_right = mode == self.gold
        stable_and_correct_rate = is_stable and is_right
        stable_but_wrong_rate = is_stable and not is_right
        mean_consistency_at_k = count / self.k
        mean_entropy = item["H_i"]
        mean_normalized_entropy = item["H_i^norm"]
        mean_flip_rate = item["FlipRate_i"]
        self.measures = {
            "stability_at_k": is_stable,
            "mean_consistency_at_k": mean_consistency_at_k,
            "stable_and_correct_rate": stable_and_correct_rate,
            "stable_but_wrong_rate": stable_but_wrong_rate,
            "mode_correct_rate": is_right,
            "mean_accuracy_across_runs": values.count(self.gold) / self.k,
            "mean_entropy": mean_entropy,
            "mean_normalized_entropy": mean_normalized_entropy,
            "mean_flip_rate": mean_flip_rate,
        }


@attrs.frozen(kw_only=True)
class Stability(IntervalAggregator):
    """Stability of the k runs of a task, over any grader's outcomes.

    A run's value is the label of its grade, or ``pass`` / ``fail`` where the grader gives none (its
    own verdict, else score against ``threshold``; the gold label is then ``pass``). Per task with
    values y1 ... yk in recorded order, m the multiplicity of the most frequent value (the mode; on
    a tie the value seen first):

    - consistency = m / k; stable: m = k; mode correct: mode = gold
    - mean accuracy across runs = #(y_r = gold) / k
    - entropy H = -sum p log2 p over the values present; normalised H / log2 |Y|
    - flip rate = #(y_r != y_(r-1)) / (runs - 1); a single run has none

    k are the runs asked for, at least those recorded or lost. |Y| is the size of the label set, one
    more for a task that holds a value outside it. All such values count as ``invalid``.

    Every metric is the arithmetic mean over the tasks processed, those with runs and a gold label.
    They are ``stability_at_k``, ``mean_consistency_at_k``, ``stable_and_correct_rate``,
    ``stable_but_wrong_rate``, ``mode_correct_rate``, ``mean_accuracy_across_runs``,
    ``mean_entropy``, ``mean_normalized_entropy`` and ``mean_flip_rate``. Some are repeated per gold
    label, as ``..._gold_LABEL``. ``coverage = n_items_processed / n_items_total``, the tasks of the
    dataset; those outside it are left out. Each mean has an interval that leaves out one task at a
    time. Of several models ``models`` has the figures of each.

    ``k`` is the number of runs of a task where all have as many; else ``warnings`` says them.

    A run without a value (missing, failed or skipped) is counted under ``n_runs_missing``; it keeps
    a task from being stable.
    """

    version = "2"
    figures = (
        Figure("coverage", "Coverage", about="tasks processed / tasks", undefined="no task"),
        *map(_declare, MEANS),
        *[_declare(metric, "_gold_{label}") for metric in METRICS_PER_GOLD],
    )
    keeps = frozenset({"metadata:label_set", "metadata:n_runs"})

    labels: tuple[str, ...] | None = None
    """Label set; default: as declared by the grades, else pass and fail, else the labels seen."""
    value: Literal["auto", "label", "passed"] = "auto"
    """What a run's value is: ``label``, ``passed``, or the label where there is one."""
    threshold: float = attrs.field(default=1.0, validator=[gt(-math.inf), lt(math.inf)])
    """Score from which a run passes, where its grader has no verdict of its own."""
    runs: int | None = attrs.field(default=None, validator=optional(ge(1)))
    """Runs asked for per task (k), where the records do not say."""
    by: tuple[str, ...] = ("experiment",)
    """Facets that keep runs of the same task and model apart."""

    def __attrs_post_init__(self) -> None:
        if self.labels is not None and len({*self.labels}) < max(2, len(self.labels)):
            raise ValueError("labels must name at least two different labels")

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return self.by

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        groups: dict[tuple[Hashable, ...], Task] = {}
        declared: dict[str, None] = {}
        has_verdicts = False
        for key, grade in grades:
            facets = json.dumps([key.facets.get(name) for name in self.by], sort_keys=True)
            group = (key.model, key.id, facets)
            if group not in groups:
                groups[group] = Task(key.id, key.model or "", self.runs or 0)
            label_set = as_map(grade.metadata.get("label_set"))
            declared |= dict.fromkeys(as_list(label_set.get("labels")))
            has_verdicts |= self._add_run(groups[group], grade)
        tasks = list(groups.values())
        labels, classes = self._label_set([*declared], tasks, has_verdicts)
        for task in tasks:
            task.measure(labels)
        inside = [task for task in tasks if task.rows]
        figures: dict[str, JSON] = {
            **self._figures(inside, classes, len(labels)),
            **_count_unusable(inside, labels),
            "n_items_outside_dataset": len(tasks) - len(inside),
            **_count_runs([task for task in inside if task.runs]),
            "labels": labels,
            "gold_labels": classes,
        }
        models = dict.fromkeys(task.model for task in tasks)
        if len(models) > 1:
            figures["models"] = {
                model: self._figures(
                    [task for task in inside if task.model == model], classes, len(labels)
                )
                for model in models
            }
        return figures

    def _add_run(self, task: Task, grade: Grade) -> bool:
        """Add a run to its task; return whether its value is a pass or fail."""
        n_runs = as_count(grade.metadata.get("n_runs"))
        task.n_asked = max(task.n_asked, n_runs)
        task.rows = grade.counts.get("dataset_rows", task.rows)
        value, gold = grade.label, grade.gold
        if grade.outcome is Outcome.MISSING:
            value = None
        elif self.value == "passed" or (self.value == "auto" and value is None):
            value = self._verdict(grade)
            gold = gold if value is None else PASS
        if task.gold is None:
            task.gold = gold
        if value is None:
            task.valueless[grade.outcome] += 1
        else:
            task.runs.append(value)
        return value is not None and value is not grade.label

    def _verdict(self, grade: Grade) -> str | None:
        """Return whether a run passed; None where it has no score."""
        if grade.score is None:
            return None
        if grade.passed is None:
            passed = grade.score >= self.threshold
        else:
            passed = grade.passed
        return PASS if passed else FAIL

    def _label_set(
        self, declared: list[str], tasks: Sequence[Task], has_verdicts: bool
    ) -> tuple[list[str], list[str]]:
        """Return the label set, and those of them whose tasks have figures of their own."""
        if self.labels is not None:
            return [*self.labels], [*self.labels]
        values = {value for task in tasks for value in task.runs}
        if has_verdicts and values <= {PASS, FAIL}:
            return [PASS, FAIL], []
        golds = {task.gold for task in tasks if task.gold is not None}
        labels = declared or sorted((values - {INVALID}) | golds)
        return labels, labels

    def _figures(
        self, inside: Sequence[Task], classes: Sequence[str], n_labels: int
    ) -> dict[str, JSON]:
        """Compute the numbers of items, the coverage, and the means over all tasks and by class."""
        processed = [task for task in inside if task.measures]
        total = sum(task.rows for task in inside)
        most_runs = max((len(task.runs) for task in processed), default=1)
        most_bits = math.log2(min(n_labels + 1, most_runs))
        coverage = ratio(len(processed), total)
        means = self._means(processed, MEANS, "", most_bits)
        figures: dict[str, JSON] = {
            "n_items_total": total,
            "n_items_processed": len(processed),
            "coverage": coverage,
            **means,
        }
        if total:
            figures["coverage_interval"] = {"reason": "counted"}
        for label in classes:
            of_label = [task for task in processed if task.gold == label]
            figures[f"n_items_gold_{label}"] = len(of_label)
            figures |= self._means(of_label, METRICS_PER_GOLD, f"_gold_{label}", most_bits)
        return figures

    def _means(
        self, tasks: Sequence[Task], metrics: Iterable[str], suffix: str, most_bits: float
    ) -> dict[str, JSON]:
        """Return means over tasks, and their intervals; ``most_bits`` is the greatest entropy."""
        figures: dict[str, JSON] = {}
        for metric in metrics:
            name = metric + suffix
            values: list[float] = []
            by_task = defaultdict[str, list[float]](list)
            n_runs = 0
            for task in tasks:
                value = task.measures[metric]
                if value is not None:
                    values.append(value)
                    by_task[task.id].append(value)
                    n_runs += len(task.runs)
            figures[name] = ratio(math.fsum(values), len(values))
            if values:
                sums = [(len(values), math.fsum(values)) for values in by_task.values()]
                interval = ratio_interval(
                    Counter[tuple[float, ...]](sums),
                    n=n_runs,
                    confidence=self.confidence,
                    share=metric != _BITS,
                    most=most_bits if metric == _BITS else math.inf,
                )
                figures[f"{name}_interval"] = {**interval}
        return figures


def _count_unusable(tasks: Sequence[Task], labels: Sequence[str]) -> dict[str, JSON]:
    with_runs = [task for task in tasks if task.runs]
    golds = [task.gold for task in with_runs if task.gold is not None]
    n_items_unknown_gold = sum(gold not in labels for gold in golds)
    n_items_without_runs = len(tasks) - len(with_runs)
    n_items_without_gold = len(with_runs) - len(golds)
    return {
        "n_items_without_runs": n_items_without_runs,
        "n_items_without_gold": n_items_without_gold,
        "n_items_unknown_gold": n_items_unknown_gold,
    }


def _count_runs(with_runs: Sequence[Task]) -> dict[str, JSON]:
    """Count the runs of tasks that have any."""
    ks = sorted(task.k for task in with_runs)
    tasks_by_k = Counter(ks)
    valueless = sum((task.valueless for task in with_runs), Counter[str]())
    recorded = sum(len(task.runs) for task in with_runs)
    n_tasks_by_k = {str(k): n_tasks for k, n_tasks in tasks_by_k.items()}
    n_runs_failed = valueless[Outcome.FAILED]
    n_runs_skipped = valueless[Outcome.SKIPPED]
    n_runs_missing = sum(ks) - recorded
    counts: dict[str, JSON] = {
        "tasks_by_k": n_tasks_by_k,
        "n_runs_expected": sum(ks),
        "n_runs_recorded": recorded,
        "n_runs_missing": n_runs_missing,
        "n_runs_failed": n_runs_failed,
        "n_runs_skipped": n_runs_skipped,
    }
    if len(tasks_by_k) == 1:
        counts["k"] = ks[0]
    elif ks:
        listed = ", ".join(f"{n_tasks} of k = {k}" for k, n_tasks in tasks_by_k.items())
        counts["warnings"] = [f"tasks have different numbers of runs k: {listed}"]
    return counts
