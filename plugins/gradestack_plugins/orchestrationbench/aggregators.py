"""Figures of files and of the whole input, from the grades of trials, with their intervals.

Names follow the original's result file. All rates are fractions in [0, 1]; an undefined one is None
and so is what is composed of it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import JSON, Figure, Grade, Grades, Key, Outcome, estimate, interval, ratio
from gradestack_plugins.orchestrationbench.decisions import (
    CELLS,
    EMPTY,
    MATRIX,
    UNREADABLE,
    harmonic,
    mean,
)
from gradestack_plugins.orchestrationbench.exporter import (
    CALL_SCORES,
    PLAN_COUNTS,
    PLAN_SCORES,
    UPPER_BOUND,
    Figures,
    overall_statistics,
    pick,
)
from gradestack_plugins.orchestrationbench.graders import PLANS
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals

SCORES = {
    "name": "function_name_accuracy",
    "key": "arguments_key_score",
    "value": "arguments_value_score_not_count_rejection",
    "value_upper_bound": UPPER_BOUND,
}
"""Part of a grade -> its mean."""
PLAN_UPPER_BOUND = "workflow_evaluation_upper_bound"
PLAN_MEANS = {
    PLAN_SCORES[0]: "scores",
    PLAN_SCORES[1]: "scores",
    PLAN_SCORES[2]: "structural",
    PLAN_SCORES[3]: "component",
    PLAN_UPPER_BOUND: "highest",
}
"""Mean of plans -> what it is the mean of."""
MEANS = (*PLAN_MEANS, *SCORES.values())
"""Figures that are averaged over files."""
TRIAL_COUNTS = (
    *MATRIX,
    "rejection_type_mismatch",
    "failed_generation",
    "rejection_cases",
    "function_call_cases",
    *CELLS,
    "perfect_calls",
    "steps_missing",
    "steps_faulty",
)
COUNTS = (*TRIAL_COUNTS, *PLAN_COUNTS, "trials")
AVERAGE_PARTS = ("call_rejection_accuracy", "fc", "plan")
VIEWS = ("reject", "fc")


class File(msgspec.Struct):
    """The trials of one file in order, as they are added from left to right before rounding."""

    scenario: str
    trials: int = 0
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    scores: dict[str, list[float | None]] = msgspec.field(default_factory=lambda: defaultdict(list))
    plans: dict[str, list[float]] = msgspec.field(default_factory=lambda: defaultdict(list))
    """Figures of each gold plan of all trials."""
    faults: list[list[str]] = msgspec.field(default_factory=list)
    """Name of a failed trial, and why it failed."""
    error: str | None = None

    def add(self, key: Key, grade: Grade) -> None:
        """Add a trial; of a failed one its fault, and what its grade still has (its plans)."""
        fault = grade.fault
        if fault is not None and fault.code in (UNREADABLE, EMPTY):
            self.error = fault.message or self.error
            return
        self.trials += 1
        if grade.outcome is Outcome.FAILED:
            trial, why = key.facets.get("trial"), "failed"
            if fault is not None:
                message = fault.message or fault.code
                why = f"{fault.type}: {message}" if fault.type else message
            self.faults.append([trial if isinstance(trial, str) else str(key.run), why])
        self.counts.update(grade.counts)
        for name in SCORES:
            self.scores[name].append(grade.parts.get(name))
        for name in PLANS:
            self.plans[name] += grade.metadata.get(f"plan_{name}") or ()


def files_of(grades: Grades) -> dict[str, dict[str, File]]:
    """Return model ("" without a name) -> file (facet ``file``, else the task's id) -> trials."""
    models: dict[str, dict[str, File]] = defaultdict(dict)
    for key, grade in grades:
        if grade.outcome is not Outcome.MISSING:
            file = key.facets.get("file")
            name = file if isinstance(file, str) else key.id
            models[key.model or ""].setdefault(name, File(key.id)).add(key, grade)
    return models


def file_figures(name: str, file: File, *, exact: bool = False) -> dict[str, Any]:
    """Return every figure of one file, its plans pooled over trials.

    With ``exact`` nothing is rounded.
    """
    compared, parsed = file.counts["plans"], file.counts["plans_parsed"]
    sums = {part: math.fsum(file.plans[part]) for part in PLANS}
    divisors = dict.fromkeys(PLAN_MEANS, compared) | {PLAN_SCORES[1]: parsed}
    figures: dict[str, Any] = {"file": name, "scenario": file.scenario, "trials": file.trials}
    figures |= {"error": file.error, "faults": file.faults, **pick(file.counts, TRIAL_COUNTS)}
    figures["failed_workflow_generation"] = file.counts["plans_failed"]
    figures["total_comparison_steps_evaluated"] = compared
    for part, figure in SCORES.items():
        figures[figure] = _short(mean(file.scores[part]), exact=exact)
    for figure, part in PLAN_MEANS.items():
        figures[figure] = ratio(sums[part], divisors[figure])
    return figures


def _short(value: float | None, *, exact: bool) -> float | None:
    return value if exact or value is None else round(value, 4)


def files_with(name: str) -> str:
    """Return the name of the sum that counts the files that have a figure."""
    return f"files of {name}"


Sums = Counter[str]
"""Counts, exact sums of what is averaged over files, and how many files have it."""


def sums_of(figures: Figures) -> Sums:
    """Return the sums of one file: none, if it could not be read."""
    sums: dict[str, Any] = {}
    if figures["error"] is None:
        sums = pick(figures, COUNTS) | {"successful_files": 1}
        for name in MEANS:
            if figures[name] is not None:
                sums |= {name: Fraction(figures[name]), files_with(name): 1}
    return Counter(sums)


def add_sums(sums: Iterable[Sums]) -> Sums:
    """Return the sums of several files together."""
    total: Sums = Counter()
    for each in sums:
        total.update(each)
    return total


def performance(totals: Figures, view: str) -> dict[str, float | None]:
    """Return precision, recall, F1 and accuracy of decisions from one view."""
    tp, fp = totals[f"true_positive_{view}"], totals[f"false_positive_{view}"]
    fn, tn = totals[f"false_negative_{view}"], totals[f"true_negative_{view}"]
    precision, recall = ratio(tp, tp + fp), ratio(tp, tp + fn)
    f1 = harmonic(precision or 0, recall or 0) if tp + fp + fn else None
    accuracy = ratio(tp + tn, tp + fp + fn + tn)
    return {"precision": precision, "recall": recall, "f1": f1, "accuracy": accuracy}


def overall(sums: Sums, *, exact: bool = False, absent: float | None = None) -> dict[str, Any]:
    """Return the figures of the whole input.

    Args:
        sums: Of all files.
        exact: Whether nothing is rounded.
        absent: What the F1 of a class that does not occur counts as in composites.
    """
    totals: dict[str, Any] = pick(sums, (*COUNTS, "successful_files"))
    for name in MEANS:
        files = sums[files_with(name)]
        totals[name] = float(sums[name] / files) if files else None
    reject, call = [performance(totals, view) for view in VIEWS]
    mismatch, rejected = totals["rejection_type_mismatch"], totals["true_positive_reject"]
    over, under = totals["false_negative_reject"], totals["false_positive_reject"]
    cases, successful = totals["function_call_cases"], totals["true_negative_reject"]
    errors = over + under + mismatch

    def composite(*parts: float | None) -> float | None:
        """Return the mean of parts; None when one is undefined."""
        return None if None in parts else _short(mean(parts), exact=exact)

    f1s = [absent if view["f1"] is None else view["f1"] for view in (reject, call)]
    decision, plan = composite(*f1s), composite(totals[PLAN_SCORES[0]])
    name, key, value, upper_bound = pick(totals, SCORES.values()).values()
    calls = composite(name, key, value)
    totals |= {"reject_decision_performance": reject, "fc_decision_performance": call}
    totals["rejection_type_accuracy"] = ratio(rejected - mismatch, rejected)
    totals["overall_function_call_failed_rate"] = ratio(cases - successful, cases)
    totals["average"] = composite(decision, calls, plan)
    totals |= {"call_rejection_accuracy": decision, "fc": calls, "plan": plan}
    for figure in ("rejection_type_accuracy", "overall_function_call_failed_rate"):
        totals[figure] = _short(totals[figure], exact=exact)
    patterns = {"overaction": over, "underaction": under, "type_mismatch": mismatch}
    rates = {f"{name}_rate": ratio(count, errors) for name, count in patterns.items()}
    return totals | {
        "error_patterns": rates,
        "fc_upper_bound": composite(name, key, upper_bound),
        "plan_upper_bound": composite(totals[PLAN_UPPER_BOUND]),
    }


def decision_matrix(totals: Figures) -> dict[str, dict[str, int]]:
    """Return actual (FC, Reject) against predicted (FC, Reject, FAILED)."""
    predicted = ("FC", "Reject", "FAILED")
    return {
        gold: {name: totals[f"{gold}_{name}".lower()] for name in predicted}
        for gold in ("FC", "Reject")
    }


def _divisors() -> dict[str, tuple[str, ...]]:
    """Return figure -> sums that make up its divisors.

    A task that adds to none of them has no part in it.
    """
    tp, fp, fn, tn = "true_positive", "false_positive", "false_negative", "true_negative"
    cells = {"precision": (tp, fp), "recall": (tp, fn), "f1": (tp, fp, fn)}
    divisors: dict[str, tuple[str, ...]] = {name: (files_with(name),) for name in MEANS}
    for view in VIEWS:
        for figure, parts in (cells | {"accuracy": (tp, fp, fn, tn)}).items():
            sums = tuple(f"{part}_{view}" for part in parts)
            divisors[f"{view}_decision_performance.{figure}"] = sums
    mistakes = ("false_positive_reject", "false_negative_reject", "rejection_type_mismatch")
    for name in ("overaction", "underaction", "type_mismatch"):
        divisors[f"error_patterns.{name}_rate"] = mistakes
    decided = [divisors[f"{view}_decision_performance.f1"] for view in VIEWS]
    name, key, value, upper_bound = [files_with(name) for name in SCORES.values()]
    divisors |= {
        "rejection_type_accuracy": ("true_positive_reject",),
        "overall_function_call_failed_rate": ("function_call_cases",),
        "call_rejection_accuracy": (*decided[0], *decided[1]),
        "plan": divisors[PLAN_SCORES[0]],
        "plan_upper_bound": divisors[PLAN_UPPER_BOUND],
    }
    divisors |= {"fc": (name, key, value), "fc_upper_bound": (name, key, upper_bound)}
    accuracy, fc, plan = [divisors[part] for part in AVERAGE_PARTS]
    return divisors | {"average": (*accuracy, *fc, *plan)}


DIVISORS = _divisors()


def _intervals(files: Mapping[str, File], confidence: float, shown: Figures) -> dict[str, Any]:
    """Return ``NAME_interval`` of one model's figures, before any rounding.

    A task, left out whole, is a scenario. Of a map of figures there is a map of intervals; of an
    undefined figure the reason.
    """
    tasks: dict[str, Sums] = defaultdict(Counter)
    for name, file in sorted(files.items()):
        tasks[file.scenario].update(sums_of(file_figures(name, file, exact=True)))
    tasks = {task: sums for task, sums in tasks.items() if sums}
    total = add_sums(tasks.values())
    whole, left = _flat(overall(total, exact=True)), {}
    for task, sums in tasks.items():
        others = total.copy()
        others.subtract(sums)
        # A class that occurs in one task only has the F1 0 without it.
        left[task] = _flat(overall(others, exact=True, absent=0))

    def interval_of(name: str) -> JSON:
        part = [task for task in tasks if any(tasks[task][each] for each in DIVISORS[name])]
        others = [(left[task][name], 1) for task in part]
        estimated = estimate(whole[name] if part else None, others, len(part))
        trials = sum(tasks[task]["trials"] for task in part)
        return {**interval(estimated, trials, confidence=confidence)}

    intervals: dict[str, Any] = {}
    for name in shown:
        below = [path for path in DIVISORS if path.startswith(f"{name}.")]
        if below:
            of_map = {path.removeprefix(f"{name}."): interval_of(path) for path in below}
            intervals[f"{name}_interval"] = of_map
        elif name in shown["undefined"]:
            intervals |= no_intervals({name: shown["undefined"][name]})
        elif name in DIVISORS:
            intervals[f"{name}_interval"] = interval_of(name)
    return intervals


def _flat(figures: Mapping[str, Any]) -> dict[str, Any]:
    flat = {**figures}
    for name, value in figures.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": figure for key, figure in value.items()}
    return flat


_FILE = ("file", "scenario", "trials", "error")
_MISTAKES = ("rejection_type_mismatch", "failed_generation", "steps_missing", "steps_faulty")
_OVER_FILES = "mean over files"
_SIMILARITY = "1 - edit distance / greatest distance"
DECISIONS = Figure(
    "call_rejection_accuracy",
    "Call or rejection",
    about="mean of the F1s of calls and of rejections",
)
CALLS = Figure("fc", "Calls", about="(name F1 + key F1 + value F1) / 3")
PLAN = Figure("plan", "Plans", about="mean similarity of plans, failed ones included")


def _part(
    name: str, label: str, about: str, better: Literal["higher", "lower"] = "higher"
) -> Figure:
    return Figure(name, label, better=better, about=about, optional=True)


CALLS_AT_BEST = _part(
    "fc_upper_bound", "Calls, at best", "with the best a judge could make of undecided values"
)
PLAN_AT_BEST = _part(
    "plan_upper_bound",
    "Plans, at best",
    "with the lower bounds of edit distances that are not exact",
)
REJECTING = Figure(
    "reject_decision_performance.{figure}", "Decisions to reject, precision, recall and the like"
)
CALLING = Figure(
    "fc_decision_performance.{figure}", "Decisions to call, precision, recall and the like"
)
PATTERNS = Figure(
    "error_patterns.{pattern}", "Share of a pattern among wrong decisions", better="neither"
)
RIGHT_TYPES = _part(
    "rejection_type_accuracy",
    "Rejections of the right type",
    "right types / rejections that were right",
)
FAILED_CALLS = Figure(
    "overall_function_call_failed_rate",
    "Expected calls that failed",
    "lower",
    about="(expected calls - calls made) / expected calls",
    least=-math.inf,  # a step predicted twice is two calls made
    optional=True,
)
CALL_LABELS = {
    "function_name_accuracy": "Function names, F1",
    "arguments_key_score": "Names of arguments, F1",
    "arguments_value_score_not_count_rejection": "Values of arguments, F1",
    UPPER_BOUND: "Values of arguments, F1 at best",
}
PLAN_LABELS = {
    "workflow_evaluation_with_failure": "Similarity of plans",
    "workflow_evaluation_without_failure": "Similarity of plans that could be read",
    PLAN_UPPER_BOUND: "Similarity of plans, at best",
}
SIMILARITY_LABELS = {
    "average_structural_GED": "Structural similarity of plans",
    "average_component_GED": "Similarity of the parts of plans",
}


@attrs.frozen(kw_only=True)
class _PerFile(IntervalAggregator):
    """Computed from all trials, by model and file (facet ``file``, else the task id).

    Figures of several models are never pooled: they stand under ``models``, and beside it null with
    that reason. Every figure has its interval, which leaves out one scenario at a time; it is
    computed before anything is rounded.
    """

    version: ClassVar[str] = "3"
    keeps: ClassVar = frozenset({"fault", *(f"metadata:plan_{name}" for name in PLANS)})

    _names: ClassVar[tuple[str, ...]]
    """Names of the figures over all files."""
    _rows: ClassVar[tuple[str, ...]] = ()
    """Names of the figures of each file."""

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return ("file", "trial")

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        models = {model: self._figures_of(files) for model, files in files_of(grades).items()}
        if len(models) < 2:
            return next(iter(models.values()), self._figures_of({}))
        declared = [figure.name for figure in self.figures if not figure.optional]
        names = [name for name in declared if "{" not in name]
        why = dict.fromkeys(names, "several models, each has its own under `models`")
        return {**dict.fromkeys(names), **no_intervals(why), "undefined": why, "models": models}

    def _figures_of(self, files: Mapping[str, File]) -> dict[str, JSON]:
        rows = [file_figures(name, file) for name, file in sorted(files.items())]
        totals = overall(add_sums(map(sums_of, rows)))
        figures: dict[str, JSON] = {
            **pick(totals, self._names),
            "scenarios": [pick(row, (*_FILE, *self._rows)) for row in rows],
            "undefined": _undefined(totals, self._names),
            **self._more(totals, rows),
        }
        return figures | _intervals(files, self.confidence, figures)

    def _more(self, totals: Figures, rows: list[dict[str, Any]]) -> dict[str, JSON]:
        return {}


@attrs.frozen(kw_only=True)
class OrchestrationDecisions(_PerFile):
    """Call/rejection matrix and its rates, summed over all steps of all trials.

    Precision, recall, F1 and accuracy from both perspectives; overaction = called wrongly / errors,
    underaction = rejected wrongly / errors, type mismatch rate = mismatches / errors, errors = all
    three together; ``call_rejection_accuracy`` = mean of the two F1s, rounded to 4 digits;
    undefined when one of them is.
    """

    figures: ClassVar = (DECISIONS, REJECTING, CALLING, PATTERNS, RIGHT_TYPES, FAILED_CALLS)

    _names: ClassVar = (
        "call_rejection_accuracy",
        "reject_decision_performance",
        "fc_decision_performance",
        "error_patterns",
        "rejection_type_accuracy",
        "overall_function_call_failed_rate",
        "rejection_cases",
        "function_call_cases",
        *_MISTAKES,
    )
    _rows: ClassVar = (*CELLS, *_MISTAKES)

    @override
    def _more(self, totals: Figures, rows: list[dict[str, Any]]) -> dict[str, JSON]:
        return {"decision_matrix": decision_matrix(totals)}


@attrs.frozen(kw_only=True)
class OrchestrationCalls(_PerFile):
    """Function name, key and value F1.

    Trial -> file (rounded to 4 digits) -> plain mean over the files that have a graded pair.

    ``fc`` = (name + key + value) / 3, rounded to 4 digits, undefined when one of them is;
    ``fc_upper_bound`` with the best a judge could make of undecided values.
    """

    figures: ClassVar = (
        *(CALLS, CALLS_AT_BEST),
        *(_part(name, label, _OVER_FILES) for name, label in CALL_LABELS.items()),
    )

    _rows: ClassVar = (*SCORES.values(), "perfect_calls")
    _names: ClassVar = ("fc", "fc_upper_bound", *_rows)

    @override
    def _more(self, totals: Figures, rows: list[dict[str, Any]]) -> dict[str, JSON]:
        paired = [row for row in rows if row["error"] is None and row[CALL_SCORES[0]] is not None]
        return {"files": totals["successful_files"], "files_with_pairs": len(paired)}


@attrs.frozen(kw_only=True)
class OrchestrationPlans(_PerFile):
    """Plan similarity: pooled over the trials of a file, then the plain mean over files.

    With failure = sum of scores / gold plans, without = sum / plans that were read. ``plan`` is the
    mean with failures rounded to 4 digits.
    """

    figures: ClassVar = (
        *(PLAN, PLAN_AT_BEST),
        *(_part(name, label, _OVER_FILES) for name, label in PLAN_LABELS.items()),
        *(_part(name, label, _SIMILARITY) for name, label in SIMILARITY_LABELS.items()),
    )

    _rows: ClassVar = (PLAN_UPPER_BOUND, *PLAN_SCORES, *PLAN_COUNTS)
    _names: ClassVar = ("plan", "plan_upper_bound", *_rows)


@attrs.frozen(kw_only=True)
class OrchestrationBenchFigures(_PerFile):
    """The four key metrics and all ``overall_statistics`` of the original's result file.

    ``average`` = mean of ``call_rejection_accuracy``, ``fc`` and ``plan`` after each was rounded to
    4 digits, rounded again; undefined when one of them is, which ``undefined`` names. The first is
    computed over all steps (micro), the other two are means over files (macro).
    """

    figures: ClassVar = (
        Figure("average", "Average", about="mean of call_rejection_accuracy, fc and plan"),
        *(DECISIONS, CALLS, PLAN, CALLS_AT_BEST, PLAN_AT_BEST),
    )

    _names: ClassVar = ("average", *AVERAGE_PARTS, "fc_upper_bound", "plan_upper_bound", "trials")

    @override
    def _more(self, totals: Figures, rows: list[dict[str, Any]]) -> dict[str, JSON]:
        return {
            "decision_matrix": decision_matrix(totals),
            "overall_statistics": overall_statistics(totals, len(rows)),
            "scenarios": rows,
            "statements": [*_statements(totals)],
            "undefined": _undefined(totals, totals),
        }


def _statements(totals: Figures) -> Iterator[str]:
    """Yield sentences: steps without an answer, and failed steps counted in TN_fc."""
    steps = totals["rejection_cases"] + totals["function_call_cases"]
    if missing := totals["steps_missing"]:
        yield f"{missing} of {steps} steps without an answer"
    if failed := totals["reject_failed"]:
        cells = f"TN_fc {totals['true_negative_fc']} = TP_reject {totals['true_positive_reject']}"
        yield f"{cells} + {failed} FAILED: neither a call nor a rejection where one was due"


_NO_PAIR = "no step where both gold and prediction call"
_REASONS = {
    **dict.fromkeys(CALL_SCORES[:2], _NO_PAIR),
    "arguments_value_score_not_count_rejection": "no graded call has arguments",
    "workflow_evaluation_with_failure": "no gold plan",
    "workflow_evaluation_without_failure": "no gold plan, or no prediction of one that could be "
    "read",
    "rejection_type_accuracy": "no rejection met a rejection",
    "overall_function_call_failed_rate": "the labels expect no call",
    "plan": "no gold plan",
}


def _undefined(totals: Figures, names: Container[str]) -> dict[str, str]:
    """Return why a figure is None, for every one of these that is.

    A composite says which part it lacks.
    """
    reasons = {name: reason for name, reason in _REASONS.items() if totals[name] is None}
    f1s = {}
    for view in VIEWS:
        performance = f"{view}_decision_performance"
        f1s[f"{performance}.f1"] = totals[performance]["f1"]
    parts = {"call_rejection_accuracy": f1s, "fc": pick(totals, CALL_SCORES)}
    parts["average"] = pick(totals, AVERAGE_PARTS)
    for name, known in parts.items():
        lacking = [part for part, value in known.items() if value is None]
        if lacking:
            reasons[name] = f"{', '.join(lacking)} not defined"
    return {name: reason for name, reason in reasons.items() if name in names}
