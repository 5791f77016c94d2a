"""Figures of files and of the whole input, from the grades of trials, with their intervals.

Names follow the original's result file. All rates are fractions in [0, 1]; in ``documented`` an undefined one is None
and so is what is composed of it, in ``upstream`` it is 0.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from gradestack import JSON, Grade, Grades, Interval, Key, Outcome, Profile, estimate, interval
from gradestack_plugins.orchestrationbench.decisions import CELLS, EMPTY, MATRIX, UNREADABLE, harmonic

SCORES = ("name", "key", "value", "value_upper_bound")
PLANS = ("scores", "structural", "component", "highest")


class File(msgspec.Struct):
    """The trials of one file in order, since the original adds floats from left to right before it rounds."""

    scenario: str
    trials: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    scores: dict[str, list[float | None]] = msgspec.field(default_factory=lambda: {name: [] for name in SCORES})
    """Of each trial that has one."""
    plans: dict[str, list[float]] = msgspec.field(default_factory=lambda: {name: [] for name in PLANS})
    """Of each gold plan of all trials."""
    judge_failed: list[str] = msgspec.field(default_factory=list)
    faults: list[list[str]] = msgspec.field(default_factory=list)
    unreadable: str | None = None
    empty: str | None = None

    def add(self, key: Key, grade: Grade) -> None:
        """Add a trial; of a failed one its fault, and what its grade still carries (its plans)."""
        fault = grade.fault
        if fault is not None and fault.code == UNREADABLE:
            self.unreadable = fault.message or self.unreadable
            return
        if fault is not None and fault.code == EMPTY:
            self.empty = fault.message or self.empty
            return
        self.trials += 1
        run = key.facets.get("trial")
        trial = run if isinstance(run, str) else str(key.run)
        if grade.outcome is Outcome.FAILED:
            message = fault.message or fault.code if fault is not None else "failed"
            self.faults.append([trial, f"{fault.type}: {message}" if fault is not None and fault.type else message])
        self.counts.update(grade.counts)
        for name, scores in self.scores.items():
            if name in grade.parts:
                scores.append(grade.parts[name])
        if grade.metadata.get("judge_failed") is True:
            self.judge_failed.append(trial)
        for name, plans in self.plans.items():
            found = grade.metadata.get(f"plan_{name}")
            plans.extend(found if isinstance(found, list | tuple) else ())


def files_of(grades: Grades) -> dict[str, dict[str, File]]:
    """Return model ("" without a name) -> file (facet ``file``, else the task's id) -> its trials.

    A dataset row without a run (``missing``) is no trial.
    """
    found: dict[str, dict[str, File]] = defaultdict(dict)
    for key, grade in grades:
        if grade.outcome is not Outcome.MISSING:
            file = key.facets.get("file")
            name = file if isinstance(file, str) else key.id
            found[key.model or ""].setdefault(name, File(key.id)).add(key, grade)
    return found


Figures = dict[str, JSON]
Number = float | int | None

_OUTCOMES = ("true_positive", "false_positive", "false_negative", "true_negative")
FC_PARTS = ("function_name_accuracy", "arguments_key_score", "arguments_value_score_not_count_rejection")
_CALL_SCORES = (*FC_PARTS, "arguments_value_score_upper_bound")
MEANS = (
    *("workflow_evaluation_with_failure", "workflow_evaluation_without_failure", "workflow_evaluation_upper_bound"),
    *("average_structural_GED", "average_component_GED", *_CALL_SCORES),
)
"""File figures that are averaged over files."""
AVERAGE_PARTS = ("call_rejection_accuracy", "fc", "plan")
_DECISIONS = (
    *(*MATRIX, "rejection_type_mismatch", "failed_generation", "rejection_cases", "function_call_cases", *CELLS),
    *("perfect_calls", "steps_missing", "steps_faulty"),
)
_COUNTS = (*_DECISIONS, "failed_workflow_generation", "total_comparison_steps_evaluated", "trials")
"""File figures that are added up over files."""


def file_figures(name: str, file: File, profile: Profile, *, exact: bool = False) -> Figures:
    """Return every figure of one file; with ``exact`` nothing is rounded.

    Name, key and value: mean over trials, rounded to 4 digits; ``documented`` leaves out trials without a graded pair.
    Plans are pooled over trials. In ``upstream`` one trial whose argument part cannot be graded zeroes that part.
    """
    upstream = profile == "upstream"
    broken = upstream and bool(file.faults or file.empty)
    figures: Figures = {
        "file": name,
        "scenario": file.scenario,
        "trials": file.trials,
        "error": file.unreadable or (None if upstream else file.empty),
        "arguments_error": (file.empty or file.faults[0][1]) if broken else None,
        "faults": file.faults,
        "judge_failed_trials": [] if broken else file.judge_failed,
    }
    for each in _DECISIONS:
        figures[each] = 0 if broken else file.counts[each]
    for each, scores in zip(_CALL_SCORES, file.scores.values(), strict=True):
        defined = [] if broken else [score for score in scores if score is not None]
        trials = max(file.trials, 1) if upstream else len(defined)
        figures[each] = _short(sum_up(defined) / trials if trials else None, exact=exact)
    compared, failed, parsed = (file.counts[each] for each in ("plans", "plans_failed", "plans_parsed"))
    punished = compared + failed if upstream else compared

    def share(plans: str, divisor: int) -> Number:
        return math.fsum(file.plans[plans]) / divisor if divisor else 0.0 if upstream else None

    return {
        **figures,
        "workflow_evaluation_with_failure": share("scores", punished),
        "workflow_evaluation_without_failure": share("scores", compared if upstream else parsed),
        "workflow_evaluation_upper_bound": share("highest", punished),
        "average_structural_GED": share("structural", compared),
        "average_component_GED": share("component", compared),
        "failed_workflow_generation": failed,
        "total_comparison_steps_evaluated": compared,
    }


def sum_up(values: Iterable[float]) -> float:
    """Return a sum, added from left to right."""
    total = 0.0
    for value in values:
        total += value
    return total


def _short(value: float | None, *, exact: bool) -> float | None:
    return value if exact or value is None else round(value, 4)


_OF = "files of "
Sums = Counter[str]
"""Counts, exact sums of what is averaged over files, and (``files of NAME``) the number of files that have it."""


def sums_of(figures: Figures, profile: Profile) -> Sums:
    """Return what a file adds to the sums: nothing, if it could not be read."""
    sums: dict[str, Any] = {}
    if figures["error"] is None:
        sums = {name: figures[name] for name in _COUNTS} | {"successful_files": 1}
        if profile == "upstream":  # the original's file record lacks these two, so its sums are always 0
            sums |= {"rejection_type_mismatch": 0, "failed_generation": 0}
        for name in MEANS:
            if figures[name] is not None:
                sums |= {name: Fraction(figures[name]), f"{_OF}{name}": 1}
    return Counter(sums)


def added(sums: Iterable[Sums]) -> Sums:
    """Return the sums of several files together."""
    total: Sums = Counter()
    for each in sums:
        total.update(each)
    return total


def performance(cells: Sequence[int], profile: Profile) -> dict[str, Number]:
    """Return precision, recall, F1 and accuracy of (TP, FP, FN, TN).

    F1 is undefined only when nothing was found and nothing should have been.
    """
    tp, fp, fn, tn = cells
    undefined: Number = 0 if profile == "upstream" else None
    precision = tp / (tp + fp) if tp + fp else undefined
    recall = tp / (tp + fn) if tp + fn else undefined
    total = tp + fp + fn + tn
    return {
        "precision": precision,
        "recall": recall,
        "f1": harmonic(precision or 0, recall or 0) if tp + fp + fn else undefined,
        "accuracy": (tp + tn) / total if total else undefined,
    }


def overall(sums: Sums, profile: Profile, *, exact: bool = False, absent: Number = None) -> Figures:
    """Return the figures of the whole input: sums of counts, plain means over the files that have a figure.

    The key metrics are rounded to 4 digits unless ``exact``. ``absent`` is what the F1 of a class that does not occur
    counts as in the composites of ``documented``.
    """
    undefined: Number = 0 if profile == "upstream" else None
    zero = 0.0 if profile == "upstream" else None
    totals: Figures = {name: sums[name] for name in (*_COUNTS, "successful_files")}
    for name in MEANS:
        files = sums[f"{_OF}{name}"]
        totals[name] = float(sums[name] / files) if files else zero
    reject, call = (performance([totals[f"{cell}_{view}"] for cell in _OUTCOMES], profile) for view in ("reject", "fc"))
    mismatch, rejected = totals["rejection_type_mismatch"], totals["true_positive_reject"]
    over, under = totals["false_negative_reject"], totals["false_positive_reject"]
    errors = under + over + mismatch
    cases, successful = totals["function_call_cases"], totals["true_negative_reject"]

    def composite(*parts: Number) -> float | None:
        """Return the mean of parts, added from left to right; None when one is undefined."""
        defined = [part for part in parts if part is not None]
        return None if len(defined) < len(parts) else _short(sum_up(defined) / len(parts), exact=exact)

    name, key, value = (totals[part] for part in FC_PARTS)
    decision = composite(*(absent if view["f1"] is None else view["f1"] for view in (reject, call)))
    calls, plan = composite(name, key, value), composite(totals["workflow_evaluation_with_failure"])
    return {
        **totals,
        "reject_decision_performance": reject,
        "fc_decision_performance": call,
        "error_patterns": {
            "overaction_rate": over / errors if errors else undefined,
            "underaction_rate": under / errors if errors else undefined,
            "type_mismatch_rate": mismatch / errors if errors else undefined,
        },
        "rejection_type_accuracy": _short((rejected - mismatch) / rejected, exact=exact) if rejected else zero,
        "overall_function_call_failed_rate": _short((cases - successful) / cases, exact=exact) if cases else zero,
        "average": composite(decision, calls, plan),
        "call_rejection_accuracy": decision,
        "fc": calls,
        "plan": plan,
        "fc_upper_bound": composite(name, key, totals["arguments_value_score_upper_bound"]),
        "plan_upper_bound": composite(totals["workflow_evaluation_upper_bound"]),
    }


def decision_matrix(totals: Mapping[str, JSON]) -> dict[str, dict[str, int]]:
    """Return actual (FC, Reject) against predicted (FC, Reject, FAILED)."""
    return {
        gold: {predicted: totals[f"{gold.lower()}_{predicted.lower()}"] for predicted in ("FC", "Reject", "FAILED")}
        for gold in ("FC", "Reject")
    }


_VIEWS = ("reject", "fc")
_DECIDED = tuple(f"{cell}_{view}" for view in _VIEWS for cell in _OUTCOMES[:3])
_CALLS = tuple(f"{_OF}{name}" for name in FC_PARTS)
_PLANS = (f"{_OF}workflow_evaluation_with_failure",)
_CELLS_OF = {
    "precision": _OUTCOMES[:2],
    "recall": ("true_positive", "false_negative"),
    "f1": _OUTCOMES[:3],
    "accuracy": _OUTCOMES,
}
_DIVISORS: Mapping[str, tuple[str, ...]] = {
    **{name: (f"{_OF}{name}",) for name in MEANS},
    **{
        f"{view}_decision_performance.{figure}": tuple(f"{cell}_{view}" for cell in cells)
        for view in _VIEWS
        for figure, cells in _CELLS_OF.items()
    },
    **{
        f"error_patterns.{name}": ("false_positive_reject", "false_negative_reject", "rejection_type_mismatch")
        for name in ("overaction_rate", "underaction_rate", "type_mismatch_rate")
    },
    "rejection_type_accuracy": ("true_positive_reject",),
    "overall_function_call_failed_rate": ("function_call_cases",),
    "call_rejection_accuracy": _DECIDED,
    "fc": _CALLS,
    "fc_upper_bound": (*_CALLS[:2], f"{_OF}arguments_value_score_upper_bound"),
    "plan": _PLANS,
    "plan_upper_bound": (f"{_OF}workflow_evaluation_upper_bound",),
    "average": (*_DECIDED, *_CALLS, *_PLANS),
}
"""Figure -> sums that make up its divisors: a task that adds to none of them has no part in it."""


class Intervals:
    """Intervals of one model's figures, before any rounding: a task, left out whole, is a scenario."""

    def __init__(self, files: Mapping[str, File], profile: Profile, confidence: float) -> None:
        self._confidence = confidence
        tasks: dict[str, list[Sums]] = defaultdict(list)
        for name, file in sorted(files.items()):
            tasks[file.scenario].append(sums_of(file_figures(name, file, profile, exact=True), profile))
        self._tasks = {task: added(sums) for task, sums in tasks.items() if any(sums)}
        total = added(self._tasks.values())
        self._whole = _flat(overall(total, profile, exact=True))
        # A class that occurs in one task only has the F1 0 without it.
        self._left = {}
        for task, sums in self._tasks.items():
            others = total.copy()
            others.subtract(sums)
            self._left[task] = _flat(overall(others, profile, exact=True, absent=0))

    def beside(self, figures: Iterable[str], undefined: Mapping[str, str]) -> dict[str, JSON]:
        """Return intervals by ``NAME_interval``, of a map of figures a map of them; or why a figure is undefined."""
        found: dict[str, JSON] = {}
        for name in figures:
            below = [path.removeprefix(f"{name}.") for path in _DIVISORS if path.startswith(f"{name}.")]
            if below:
                found[f"{name}_interval"] = {each: {**self._interval(f"{name}.{each}")} for each in below}
            elif name in _DIVISORS:
                why = undefined.get(name)
                found[f"{name}_interval"] = {**self._interval(name)} if why is None else {"reason": why}
        return found

    def _interval(self, name: str) -> Interval:
        tasks = [task for task, sums in self._tasks.items() if any(sums[each] for each in _DIVISORS[name])]
        value = self._whole.get(name) if tasks else None
        found = estimate(value, [(self._left[task].get(name), 1) for task in tasks], len(tasks))
        return interval(found, sum(self._tasks[task]["trials"] for task in tasks), confidence=self._confidence)


def _flat(figures: Figures) -> Figures:
    """Return figures by path."""
    found = dict(figures)
    for name, value in figures.items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": each for key, each in value.items()}
    return found
