"""Grader ``stability_label``, aggregator ``stability``, and the evaluation suite's metrics file."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Exporter,
    ExportSummary,
    Fault,
    Figure,
    Grade,
    Grader,
    Grades,
    Outcome,
    Profile,
    Reason,
    Sample,
    Status,
    failed,
    native_of,
    ratio_interval,
    read_records,
    replace,
    skipped,
)
from gradestack_plugins.readers.joined import INVALID, LABELS, uuid_of
from gradestack_plugins.stability.items import entropy, entropy_in_order, flips, mode
from gradestack_plugins.stability.reader import (
    UPSTREAM_FLAGS,
    UPSTREAM_FLOATS,
    StabilityRun,
    kind_of,
    sweep_name,
)
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals

_LABEL_SET = {"labels": list(LABELS)}


@attrs.frozen(kw_only=True)
class StabilityLabel(Grader):
    """Compares the label of one run with the gold label: score 1.0 when equal, 0.0 otherwise.

    The aggregator ``stability`` folds the labels of a task's runs; the mean score over runs is the
    mean accuracy across runs when every task has as many. The first run of a record carries what
    the record says of itself: the runs asked for and, in ``upstream``, the derived fields that are
    trusted.

    Differences between the profiles:

    - a label outside the four is ``invalid`` in ``documented`` and a value of its own in
      ``upstream``
    - a null label is a missing run in ``documented`` and a value like any other in ``upstream``
    - a gold label outside the four is a failure in ``documented``; ``upstream`` counts the task as
      processed and adds nothing for it

    Samples of other formats are graded by their ``label`` and expected label, whatever the label
    set.
    """

    needs = frozenset({"label", "expected", "native"})
    graded_statuses = frozenset({Status.OK, Status.MISSING})
    metrics = ("mean", "stability")
    verdict_labels = ("correct", "wrong")
    native = StabilityRun

    profile: Profile = "documented"

    @property
    @override
    def references(self) -> frozenset[str]:
        return frozenset({"label"})

    @override
    def grade(self, sample: Sample) -> Grade:
        native = native_of(sample, StabilityRun)
        grade = self._grade(sample, native)
        if native is None:
            return grade
        about: dict[str, Any] = {"label_json": native.label.json}
        if native.first:
            about = {
                "label_set": _LABEL_SET,
                "n_runs": native.n_runs,
                "derived": native.derived,
                **about,
            }
        rows = native.dataset_rows if native.first else None
        metadata = {name: value for name, value in about.items() if value is not None} | {
            **grade.metadata
        }
        counts = {} if rows is None else {"dataset_rows": rows}
        parts = dict(native.item)
        if "m_i" in parts:
            counts["m_i"] = parts.pop("m_i")
        return replace(grade, metadata=metadata, counts=counts, parts=parts)

    def _grade(self, sample: Sample, native: StabilityRun | None) -> Grade:
        gold = sample.expected.label
        if sample.status is Status.MISSING:
            return Grade(outcome=Outcome.MISSING, gold=gold, rationale="this run was not recorded")
        label = sample.label
        if label is None and (native is None or native.label.json is None):
            return skipped("no_label", "the run has no label")
        documented = native is not None and self.profile == "documented"
        if documented and label not in LABELS:
            label = INVALID
        if gold is None:
            return replace(
                skipped("no_gold_label", "no gold label: give the dataset (--dataset)"), label=label
            )
        if documented and gold not in LABELS:
            message = f"gold label {gold!r} is none of {', '.join(LABELS)}"
            fault = Fault(category="data", code="unknown_gold", message=message)
            return replace(failed(fault), label=label, gold=gold)
        if label == gold:
            return Grade(score=1.0, label=label, gold=gold)
        reason = Reason(code="wrong_label", expected=gold, actual=label)
        return Grade(score=0.0, label=label, gold=gold, reasons=(reason,), rationale=reason.code)


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
    *(
        "stability_at_k",
        "mean_consistency_at_k",
        "mean_entropy",
        "mean_normalized_entropy",
        "mean_flip_rate",
    ),
    *("mean_accuracy_across_runs", "mode_correct_rate"),
)

_LABELS: dict[str, tuple[str, str]] = {
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
_LOWER = ("stable_but_wrong_rate", "mean_entropy", "mean_normalized_entropy", "mean_flip_rate")
_IN_BITS = "mean_entropy"
"""The mean that is not bound to [0, 1]."""
_FIGURES = (
    Figure("coverage", "Coverage", about="tasks processed / tasks", optional=True),
    *(
        Figure(
            name,
            label,
            "lower" if metric in _LOWER else "higher",
            "bits" if metric == _IN_BITS else "share",
            about,
            least=0.0,
            optional=True,
        )
        for metric, (label, about) in _LABELS.items()
        for name in (metric, *([f"{metric}_gold_{{label}}"] if metric in PER_GOLD else []))
    ),
)


Measures = Mapping[str, Any]
"""Stability of one task: what ``RATES`` names; None where it is undefined."""


def measures(
    labels: Sequence[Hashable],
    gold: Hashable,
    k: int,
    n_labels: int,
    trusted: Mapping[str, Any] | None = None,
) -> Measures:
    """Return the measures of one task."""
    upstream, trusted, n = trusted is not None, trusted or {}, len(labels)
    found: dict[str, Any] = {
        name: trusted[name] for name in (*UPSTREAM_FLOATS, *UPSTREAM_FLAGS) if name in trusted
    }
    if not labels:
        return {**dict.fromkeys(RATES.values(), 0.0), **found}
    k = k if k > 0 else n
    label, count = mode(labels)
    if "mode_label" in trusted and "mode_count" in trusted:
        label, count = trusted["mode_label"], trusted["mode_count"]
    if (
        "consistency" not in found
    ):  # numbers too large for a float are allowed where nothing is computed from them
        found["consistency"] = float(count) / float(k)
    found.setdefault("is_stable", count == k)
    found.setdefault("is_mode_correct", label == gold)
    found.setdefault("is_stable_and_correct", found["is_stable"] and found["is_mode_correct"])
    found.setdefault("is_stable_but_wrong", found["is_stable"] and not found["is_mode_correct"])
    found.setdefault(
        "mean_accuracy_across_runs",
        sum(each == gold for each in labels) / float(n if upstream else k),
    )
    found.setdefault("entropy", entropy_in_order(labels) if upstream else entropy(labels))
    none = 0.0 if upstream else None
    normalized = found["entropy"] / math.log2(n_labels) if n_labels > 1 else none
    found.setdefault(
        "normalized_entropy", normalized if upstream or normalized is None else min(1.0, normalized)
    )
    found.setdefault("flip_rate", flips(labels) / float(n - 1) if n > 1 else none)
    return found


class Task(msgspec.Struct):
    """What was recorded of one task of a model."""

    id: str
    runs: list[Hashable] = msgspec.field(default_factory=list)
    """Values in recorded order; a label that is no text stands as (its JSON text,)."""
    gold: str | None = None
    k: int = 0
    """Runs asked for, 0 when unknown."""
    rows: int | None = None
    """Dataset rows with this id; None when there is no dataset."""
    lost: Counter[str] = msgspec.field(default_factory=Counter)
    """Runs without a value, by outcome."""
    derived: Mapping[str, Any] | None = None
    """Derived fields of a record that are trusted; None when there is no record of that kind."""


class _Share(NamedTuple):
    """What one task of one group adds to a mean.

    Recorded runs, its value, and what it adds to the divisor.
    """

    task: str
    runs: int = 0
    value: float = 0.0
    weight: float = 1.0


Measured = Sequence[tuple[Task, Measures]]


@attrs.frozen(kw_only=True)
class Stability(IntervalAggregator):
    """How alike the k runs of a task are, over any grader's outcomes.

    A run's value is the label of its grade, or ``pass`` / ``fail`` where the grader gives none (its
    own verdict, else score against ``threshold``; the gold label is then ``pass``). Per task with
    values y1 ... yk in recorded order, m the multiplicity of the most frequent value (the mode; on
    a tie the value seen first):

    - consistency = m / k; stable: m = k; mode correct: mode = gold
    - mean accuracy across runs = #(y_r = gold) / k
    - entropy H = -sum p log2 p over the values present; normalised H / log2 |Y|
    - flip rate = #(y_r != y_(r-1)) / (runs - 1)

    Every metric is the arithmetic mean over tasks: ``stability_at_k``, ``mean_consistency_at_k``,
    ``stable_and_correct_rate``, ``stable_but_wrong_rate``, ``mode_correct_rate``,
    ``mean_accuracy_across_runs``, ``mean_entropy``, ``mean_normalized_entropy``,
    ``mean_flip_rate``; some again per gold label, ``..._gold_LABEL``.
    ``coverage = n_items_processed / n_items_total``. Standard errors of the means over tasks stand
    under ``stderr``, an interval that leaves out one task at a time beside each mean. Of several
    models ``models`` has the figures of each.

    Differences between the profiles:

    - divisor: ``documented`` the tasks processed; ``upstream`` the tasks of the dataset, so a task
      without runs lowers every mean, and one outside the dataset raises it (coverage can pass 1).
      ``documented`` leaves the latter out.
    - |Y|: ``documented`` the label set, one more for a task that holds a value outside it (all such
      values count as ``invalid``), so at most 1; ``upstream`` the label set, so ``invalid`` can
      take it above 1
    - k: ``documented`` the runs asked for, at least those recorded or lost; ``upstream`` the
      record's ``n_runs`` even when more runs are there, so m / k can pass 1, and for the accuracy
      the runs recorded
    - flip rate of a single run: ``documented`` undefined (null, outside the mean); ``upstream`` 0.0
    - derived fields of a record: ``documented`` computes all anew; ``upstream`` trusts what is
      there
    - nothing to average: ``documented`` null; ``upstream`` 0.0 per gold label, and no metrics at
      all without any task

    ``k`` is the number of runs of a task where all have as many; else ``warnings`` says them.

    A run without a value (missing, failed or skipped) is counted under ``n_runs_missing``; it keeps
    a task from being stable.
    """

    version = "2"
    figures: ClassVar = _FIGURES
    keeps: ClassVar = frozenset(
        f"metadata:{name}" for name in ("label_set", "n_runs", "derived", "label_json")
    )

    profile: Profile = "documented"
    labels: tuple[str, ...] | None = None
    """Label set; default: as declared by the grades, else pass and fail, else the labels seen."""
    value: Literal["auto", "label", "passed"] = "auto"
    """What a run's value is: ``label``, ``passed``, or the label where there is one."""
    threshold: float = attrs.field(
        default=1.0, validator=[attrs.validators.gt(-math.inf), attrs.validators.lt(math.inf)]
    )
    """Score from which a run passes, where its grader has no verdict of its own."""
    runs: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(1))
    )
    """Runs asked for per task (k), where the records do not say."""
    divisor: Literal["processed", "items"] | None = None
    """What means are divided by; default ``processed`` (upstream: ``items``)."""
    by: tuple[str, ...] = ("experiment",)
    """Facets that keep runs of the same task and model apart."""

    def __attrs_post_init__(self) -> None:
        if self.labels is not None and (
            len(self.labels) < 2 or len(set(self.labels)) < len(self.labels)
        ):
            raise ValueError("labels must name at least two different labels")

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
            place = (
                key.model,
                *(json.dumps(key.facets.get(name), sort_keys=True) for name in self.by),
                key.id,
            )
            if (task := groups.get(place)) is None:
                task = groups[place] = Task(key.id)
                models.setdefault(key.model or "", []).append(task)
            declared |= dict.fromkeys(_declared(grade.metadata))
            passes = self._record(task, grade) or passes
        tasks = list(groups.values())
        labels, classes = self._label_set(tuple(declared), tasks, passes=passes)
        found, counts = self._figures(tasks, labels, classes)
        result = {
            **found,
            **counts,
            **self._runs(self._inside(tasks)),
            "labels": list(labels),
            "gold_labels": list(classes),
        }
        if len(result["tasks_by_k"]) == 1:
            result["k"] = int(next(iter(result["tasks_by_k"])))
        elif result["tasks_by_k"]:
            listed = ", ".join(f"{n} of k = {k}" for k, n in result["tasks_by_k"].items())
            result["warnings"] = [f"tasks have different numbers of runs k: {listed}"]
        if len(models) > 1:
            result["models"] = {
                model: self._figures(held, labels, classes)[0] for model, held in models.items()
            }
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

    def _inside(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks that figures are of: without those outside the dataset.

        ``upstream`` has these in its sums.
        """
        return [task for task in tasks if self.profile == "upstream" or task.rows != 0]

    def _figures(
        self, tasks: Sequence[Task], labels: tuple[str, ...], classes: tuple[str, ...]
    ) -> tuple[dict[str, JSON], dict[str, JSON]]:
        upstream = self.profile == "upstream"
        inside = self._inside(tasks)
        with_runs = [
            task for task in inside if task.runs or (upstream and task.derived is not None)
        ]
        with_gold = [task for task in with_runs if task.gold is not None]
        processed = [
            (task, self._measure(task, labels)) for task in with_gold if task.gold in labels
        ]
        total = sum(1 if task.rows is None else task.rows for task in inside)
        counts: dict[str, JSON] = {
            "n_items_without_runs": len(inside) - len(with_runs),
            "n_items_without_gold": len(with_runs) - len(with_gold),
            "n_items_unknown_gold": len(with_gold) - len(processed),
            "n_items_outside_dataset": sum(task.rows == 0 for task in tasks),
        }
        if upstream and not total:
            return {}, counts
        divisor, absent = None, list[_Share]()
        if (self.divisor or ("items" if upstream else "processed")) == "items":
            # to which dataset rows add more than the one of every task that was processed
            divisor = total
            absent = [
                _Share(task.id, weight=float(1 if task.rows is None else task.rows))
                for task in inside
            ]
            absent += [_Share(task.id, weight=-1.0) for task, _ in processed]
        elif upstream:
            divisor = len(with_gold)
            absent = [_Share(task.id) for task in with_gold if task.gold not in labels]
        n = len(with_gold) if upstream else len(processed)
        undefined: dict[str, str] = {}
        bits = math.log2(
            min(len(labels) + 1, max((len(task.runs) for task, _ in processed), default=1)) or 1
        )
        figures: dict[str, JSON] = {
            "n_items_total": float(total) if upstream else total,
            "n_items_processed": float(n) if upstream else n,
            "coverage": n / total if total else None,
        }
        figures |= self._means(processed, RATES, "", bits, divisor, absent, undefined)
        for label in classes:
            some = [each for each in processed if each[0].gold == label]
            if not upstream:
                figures[f"n_items_gold_{label}"] = len(some)
            figures |= self._means(some, PER_GOLD, f"_gold_{label}", bits, None, [], undefined)
        if not upstream:
            figures["coverage_interval"] = {"reason": "counted"}
            figures["stderr"] = {name: _stderr(processed, name) for name in RATES}
            figures["undefined"] = undefined
        return figures, counts

    def _means(
        self,
        processed: Measured,
        metrics: Iterable[str],
        suffix: str,
        bits: float,
        divisor: int | None,
        absent: Sequence[_Share],
        undefined: dict[str, str],
    ) -> dict[str, JSON]:
        """Return means and their intervals.

        ``absent`` adds to the divisor alone, ``bits`` is the greatest entropy.
        """
        means, intervals = dict[str, JSON](), dict[str, JSON]()
        for metric in metrics:
            name, shares = metric + suffix, _shares(processed, metric)
            by = len(shares) if divisor is None else divisor
            total = math.fsum(each.value for each in shares)
            means[name] = total / by if by else None if self.profile == "documented" else 0.0
            if means[name] is None:
                why = (
                    "no task has two runs"
                    if processed and metric == "mean_flip_rate"
                    else "no task"
                )
                undefined[name] = why
                intervals |= no_intervals({name: why})
            else:
                most = bits if metric == _IN_BITS else None
                intervals[f"{name}_interval"] = {**self._interval([*shares, *absent], most)}
        return means | intervals

    def _interval(self, shares: Iterable[_Share], most: float | None) -> Mapping[str, JSON]:
        by_task: defaultdict[str, list[_Share]] = defaultdict(list)
        for each in shares:
            by_task[each.task].append(each)
        cells, n = Counter[tuple[float, ...]](), 0
        for parts in by_task.values():
            weight = math.fsum(each.weight for each in parts)
            cells[weight, math.fsum(each.value for each in parts)] += 1
            n += sum(each.runs for each in parts) if weight else 0
        bound: dict[str, Any] = {} if most is None else {"share": False, "least": 0.0, "most": most}
        return ratio_interval(cells, n=n, confidence=self.confidence, **bound)

    def _asked(self, task: Task) -> int:
        """Return k of ``documented``: the runs asked for, at least those recorded or lost."""
        return max(task.k, self.runs or 0, len(task.runs) + sum(task.lost.values()))

    def _measure(self, task: Task, labels: tuple[str, ...]) -> Measures:
        if self.profile == "upstream":
            return measures(
                task.runs, task.gold, task.k or self.runs or 0, len(labels), task.derived or {}
            )
        # None, not INVALID: a class may have that name
        values: list[Hashable] = [value if value in labels else None for value in task.runs]
        return measures(values, task.gold, self._asked(task), len(labels) + (None in values))

    def _value(self, grade: Grade) -> tuple[str | tuple[str] | None, str | None, bool]:
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

    def _runs(self, tasks: Sequence[Task]) -> dict[str, JSON]:
        asked = Counter(self._asked(task) for task in tasks if task.runs)
        expected, recorded = (
            sum(k * number for k, number in asked.items()),
            sum(len(task.runs) for task in tasks),
        )
        lost = sum((task.lost for task in tasks if task.runs), Counter[str]())
        return {
            "tasks_by_k": {str(k): asked[k] for k in sorted(asked)},
            "n_runs_expected": expected,
            "n_runs_recorded": recorded,
            "n_runs_missing": expected - recorded,
            "n_runs_failed": lost[Outcome.FAILED],
            "n_runs_skipped": lost[Outcome.SKIPPED],
        }


def _declared(metadata: Mapping[str, JSON]) -> list[str]:
    label_set = metadata.get("label_set")
    declared = label_set.get("labels") if isinstance(label_set, Mapping) else None
    return (
        [each for each in declared if isinstance(each, str)]
        if isinstance(declared, list | tuple)
        else []
    )


def _shares(processed: Measured, metric: str) -> list[_Share]:
    values = ((task, each[RATES[metric]]) for task, each in processed)
    return [
        _Share(task.id, len(task.runs), float(value)) for task, value in values if value is not None
    ]


def _stderr(processed: Measured, metric: str) -> float | None:
    values = [each.value for each in _shares(processed, metric)]
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)


_COUNTS = ("n_items_total", "n_items_processed", "coverage")
_ADDED = (
    *(
        "n_items_without_runs",
        "n_items_without_gold",
        "n_items_unknown_gold",
        "n_items_outside_dataset",
    ),
    *("n_runs_expected", "n_runs_recorded", "n_runs_missing"),
)


def metrics_block(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics in the suite's order; empty when there are none."""
    if "stability_at_k" not in found:
        return {}
    per_gold = [f"{name}_gold_{label}" for label in found["gold_labels"] for name in PER_GOLD]
    return {name: found[name] for name in (*_COUNTS, *RATES, *per_gold)}


def heading(record: Mapping[str, Any], stem: str) -> dict[str, Any]:
    """Return what stands before the metrics.

    Name, number of runs, temperatures and, for scoring, the delimiter.
    """
    kind, temperature = kind_of(record), record.get("temperature")
    found: dict[str, Any] = {"exp_name": sweep_name(record, stem), "n_runs": record.get("n_runs")}
    if kind == "llm_judge":
        return {
            **found,
            "target_temperature": temperature,
            "judge_temperature": record.get("judge_temperature", 0.0),
        }
    delimiter = (
        {"forced_delimiter": record.get("forced_delimiter")} if kind == "mcq_logprob" else {}
    )
    return {**found, "temperature": temperature, **delimiter}


@attrs.frozen(kw_only=True)
class StabilityExporter(Exporter):
    """Writes ``{exp_name, n_runs, temperature, metrics}`` as the suite does after a sweep.

    In ``documented`` a last key ``gradestack`` holds counts the suite does not have: tasks without
    runs, without or with an unknown gold label, outside the dataset; runs expected, recorded and
    missing.
    """

    reader = "stability"
    graders = ("stability_label",)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        found = summary.graders["stability_label"].aggregates.get("stability")
        if found is None:
            return {}
        # the suite has one experiment per file, that of its first usable record
        first: Mapping[str, Any] = next(
            (raw.value for raw in read_records(summary.input) if uuid_of(raw.value) is not None), {}
        )
        document = heading(first, summary.input.path.stem)
        if asked := [int(k) for k in found["tasks_by_k"]]:
            document["n_runs"] = max(asked)
        document["metrics"] = metrics_block(found)
        if summary.profile == "documented":
            document["gradestack"] = {name: found[name] for name in _ADDED}
        return {"stability.json": json.dumps(document, indent=2)}
