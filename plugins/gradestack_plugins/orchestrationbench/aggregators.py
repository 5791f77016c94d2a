"""Figures of files and of the whole input, from the grades of trials.

Names follow the original's result file. All rates are fractions in [0, 1]; an undefined one is None
and so is what is composed of it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
from typing_extensions import override

from gradestack import JSON, Figure, Grade, Grades, Outcome, ratio
from gradestack_plugins.orchestrationbench.decisions import (
    MISMATCHES,
    STEP_COUNTS,
    harmonic,
    mean,
    short,
)
from gradestack_plugins.orchestrationbench.graders import PLANS
from gradestack_plugins.orchestrationbench.records import EMPTY, UNREADABLE
from gradestack_plugins.statistics.mean import IntervalAggregator, no_intervals

NAME, KEY, VALUE = CALL_SCORES = (
    "function_name_accuracy",
    "arguments_key_score",
    "arguments_value_score_not_count_rejection",
)
UPPER_BOUND = "arguments_value_score_upper_bound"
SCORES = {"name": NAME, "key": KEY, "value": VALUE, "value_upper_bound": UPPER_BOUND}
"""Part of a grade -> its mean."""
WITH_FAILURE, WITHOUT_FAILURE, STRUCTURAL, COMPONENT = PLAN_SCORES = (
    "workflow_evaluation_with_failure",
    "workflow_evaluation_without_failure",
    "average_structural_GED",
    "average_component_GED",
)
PLAN_MEANS = {
    WITH_FAILURE: "scores",
    WITHOUT_FAILURE: "scores",
    STRUCTURAL: "structural",
    COMPONENT: "component",
}
"""Mean of plans -> what it is the mean of."""
MEANS = (*PLAN_MEANS, *SCORES.values())
"""Figures that are averaged over files."""
FAILED_PLANS, COMPARED_PLANS = PLAN_COUNTS = (
    "failed_workflow_generation",
    "total_comparison_steps_evaluated",
)
COUNTS = (*STEP_COUNTS, "perfect_calls", *PLAN_COUNTS, "trials")
VIEWS = ("reject", "fc")
COMPOSITES = ("call_rejection_accuracy", "fc", "plan")
ROUNDED = (
    *(*COMPOSITES, "fc_upper_bound"),
    *("rejection_type_accuracy", "overall_function_call_failed_rate"),
)
"""Figures that are printed with four digits."""
ERRORS = {
    "overaction": "false_negative_reject",
    "underaction": "false_positive_reject",
    "type_mismatch": MISMATCHES,
}
Figures = Mapping[str, Any]


def pick(figures: Figures, names: Iterable[str]) -> dict[str, Any]:
    """Return some of the figures, in the order of the names."""
    return {name: figures[name] for name in names}


def trial_sums(grade: Grade) -> dict[str, float] | None:
    """Return the numbers a trial adds to the sums of its file; None where there is no trial."""
    is_lost = grade.fault is not None and grade.fault.code in (UNREADABLE, EMPTY)
    if is_lost or grade.outcome is Outcome.MISSING:
        return None
    counts = Counter(grade.counts)
    sums: dict[str, float] = {"trials": 1, **pick(counts, (*STEP_COUNTS, "perfect_calls"))}
    sums |= {FAILED_PLANS: counts["plans_failed"], COMPARED_PLANS: counts["plans"]}
    sums["plans_parsed"] = counts["plans_parsed"]
    for name in SCORES:
        value = grade.parts.get(name)
        number = int(value is not None)
        sums |= {name: value or 0.0, f"trials with {name}": number}
    for name in PLANS:
        sums[name] = math.fsum(grade.metadata.get(f"plan_{name}") or ())
    return sums


def file_figures(sums: Mapping[str, float], *, exact: bool = False) -> dict[str, Any]:
    """Return every figure of one file, its plans pooled over trials.

    With ``exact`` nothing is rounded.
    """
    figures = pick(sums, COUNTS)
    for part, figure in SCORES.items():
        value = ratio(sums[part], sums[f"trials with {part}"])
        figures[figure] = value if exact else short(value)
    for figure, part in PLAN_MEANS.items():
        plans = "plans_parsed" if figure == WITHOUT_FAILURE else COMPARED_PLANS
        figures[figure] = ratio(sums[part], sums[plans])
    return figures


def files_with(name: str) -> str:
    """Return the name of the sum that counts the files that have a figure."""
    return f"files of {name}"


def file_sums(figures: Figures) -> dict[str, Any]:
    """Return the numbers a file adds to sums: counts, exact figures, one for each it has."""
    sums = {**pick(figures, COUNTS), **decision_divisors(figures)}
    for name in MEANS:
        value = figures[name]
        fraction = Fraction(value or 0)
        sums |= {name: fraction, files_with(name): int(value is not None)}
    files = files_with(NAME)
    decided = sums["decided"]
    sums["averaged"] = decided + sums[files] + sums[files_with(WITH_FAILURE)]
    return sums


DIVISORS = {
    "precision": ("true_positive", "false_positive"),
    "recall": ("true_positive", "false_negative"),
    "f1": ("true_positive", "false_positive", "false_negative"),
    "accuracy": ("true_positive", "false_positive", "false_negative", "true_negative"),
}
"""Figure of decisions -> cells it is divided by."""


def decision_divisors(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the divisors of the figures of decisions."""
    names = ERRORS.values()
    errors = sum(counts[name] for name in names)
    sums = {"errors": errors}
    for view in VIEWS:
        for figure, cells in DIVISORS.items():
            sums[f"{view} {figure}"] = sum(counts[f"{cell}_{view}"] for cell in cells)
    decided = sums["reject f1"] + sums["fc f1"]
    return sums | {"decided": decided}


def _performance(sums: Figures, view: str) -> dict[str, float | None]:
    """Return precision, recall, F1 and accuracy of decisions from one view."""
    tp = sums[f"true_positive_{view}"]
    tn = sums[f"true_negative_{view}"]
    precision = ratio(tp, sums[f"{view} precision"])
    recall = ratio(tp, sums[f"{view} recall"])
    f1 = None
    if sums[f"{view} f1"]:
        f1 = harmonic(precision or 0, recall or 0)
    accuracy = ratio(tp + tn, sums[f"{view} accuracy"])
    return {"precision": precision, "recall": recall, "f1": f1, "accuracy": accuracy}


def _composite(*parts: float | None) -> float | None:
    """Return the mean of parts; None when one is undefined."""
    return None if None in parts else mean(parts)


def overall(sums: Figures) -> dict[str, Any]:
    """Return the figures of sums over files, before rounding.

    The F1 of a class that does not occur counts as 0 in what is composed of it.
    """
    figures: dict[str, Any] = {}
    for name in MEANS:
        files = sums[files_with(name)]
        figures[name] = float(sums[name] / files) if files else None
    reject, call = [_performance(sums, view) for view in VIEWS]
    rejected = sums["true_positive_reject"]
    cases = sums["function_call_cases"]
    errors = sums["errors"]
    missed = cases - sums["true_negative_reject"]
    f1s = reject["f1"] or 0.0, call["f1"] or 0.0
    decision = _composite(*f1s) if sums["decided"] else None
    fc = _composite(*pick(figures, CALL_SCORES).values())
    plan = figures[WITH_FAILURE]
    at_best = _composite(*pick(figures, (NAME, KEY, UPPER_BOUND)).values())
    patterns = {f"{name}_rate": ratio(sums[of], errors) for name, of in ERRORS.items()}
    composite = _composite(decision, fc, plan)
    rejection_type_accuracy = ratio(rejected - sums[MISMATCHES], rejected)
    return figures | {
        "average": composite,
        "call_rejection_accuracy": decision,
        "fc": fc,
        "plan": plan,
        "fc_upper_bound": at_best,
        "reject_decision_performance": reject,
        "fc_decision_performance": call,
        "error_patterns": patterns,
        "rejection_type_accuracy": rejection_type_accuracy,
        "overall_function_call_failed_rate": ratio(missed, cases),
    }


def round_figures(figures: Figures) -> dict[str, Any]:
    """Return figures as they are printed; the average is one of rounded figures."""
    shorts_by_name = {name: short(figures[name]) for name in ROUNDED}
    rounded = {**figures, **shorts_by_name}
    composite = _composite(*pick(rounded, COMPOSITES).values())
    rounded["average"] = short(composite)
    return rounded


def total_figures(rows: Iterable[Figures]) -> dict[str, Any]:
    """Return counts and figures of all files that could be read, as they are printed."""
    sums = Counter[str]()
    for row in rows:
        if row["error"] is None:
            sums.update({"files": 1, **file_sums(row)})
    figures = overall(sums)
    if not (sums["reject f1"] and sums["fc f1"]):
        figures["call_rejection_accuracy"] = None
    return {**pick(sums, ("files", *COUNTS)), **round_figures(figures)}


class File(msgspec.Struct):
    """The trials of one file."""

    scenario: str
    sums: Counter[str] = msgspec.field(default_factory=Counter)
    error: str | None = None
    """Why it could not be read."""

    def add(self, grade: Grade) -> None:
        """Add a trial, or why there is none."""
        sums = trial_sums(grade)
        self.sums.update(sums or {})
        if sums is None and grade.fault is not None:
            self.error = grade.fault.message

    def row(self, name: str) -> dict[str, Any]:
        """Return the figures of the file."""
        known = {"file": name, "scenario": self.scenario, "error": self.error}
        return known | file_figures(self.sums)


def decision_matrix(totals: Figures) -> dict[str, dict[str, int]]:
    """Return actual (FC, Reject) against predicted (FC, Reject, FAILED)."""
    predicted = ("FC", "Reject", "FAILED")
    return {
        gold: {name: totals[f"{gold}_{name}".lower()] for name in predicted}
        for gold in ("FC", "Reject")
    }


def _statements(totals: Figures) -> Iterator[str]:
    """Yield sentences: steps without an answer, and failed steps counted in TN_fc."""
    steps = totals["rejection_cases"] + totals["function_call_cases"]
    if missing := totals["steps_missing"]:
        yield f"{missing} of {steps} steps without an answer"
    if failed := totals["reject_failed"]:
        cells = f"TN_fc {totals['true_negative_fc']} = TP_reject {totals['true_positive_reject']}"
        yield f"{cells} + {failed} FAILED: neither a call nor a rejection where one was due"


COMPOSED = {
    "call_rejection_accuracy": [f"{view}_decision_performance.f1" for view in VIEWS],
    "fc": CALL_SCORES,
    "average": COMPOSITES,
}


def _lacking(figures: Figures) -> dict[str, str]:
    """Return the part that a composite lacks, of every one that is undefined."""
    known = dict(figures)
    for view in VIEWS:
        performance = f"{view}_decision_performance"
        known[f"{performance}.f1"] = figures[performance]["f1"]
    lacking = {}
    for name, parts in COMPOSED.items():
        if missing := [part for part in parts if known[part] is None]:
            lacking[name] = f"{', '.join(missing)} not defined"
    return lacking


_figure = partial(Figure, samples="trials", pooled=False)
_detail = partial(_figure, optional=True)
_of_pairs = partial(
    _detail,
    about="mean over files",
    divisor=files_with(NAME),
    undefined="no step where both gold and prediction call",
)
_of_values = partial(
    _detail,
    about="mean over files",
    divisor=files_with(VALUE),
    undefined="no graded call has arguments",
)
_of_plans = partial(_detail, divisor=files_with(WITH_FAILURE), undefined="no gold plan")
_SIMILARITY = "1 - edit distance / greatest distance"
_UNREAD = "no gold plan, or no prediction of one that could be read"


class OrchestrationBenchFigures(IntervalAggregator):
    """The four key metrics, with all they are made of.

    ``average`` = mean of ``call_rejection_accuracy``, ``fc`` and ``plan`` after each was rounded to
    4 digits, rounded again; undefined when one of them is, which ``undefined`` names.

    ``call_rejection_accuracy`` = mean of the F1s of rejecting and of calling, summed over all steps
    of all trials. Precision, recall, F1 and accuracy are there from both perspectives; overaction =
    called wrongly / errors, underaction = rejected wrongly / errors, type mismatch rate =
    mismatches / errors, errors = all three together.

    ``fc`` = (name + key + value) / 3: trial -> file (rounded to 4 digits) -> plain mean over the
    files that have a graded pair. ``fc_upper_bound`` takes the best a judge could make of undecided
    values.

    ``plan`` is pooled over the trials of a file, then the plain mean over files. With failure = sum
    of scores / gold plans, without = sum / plans that were read.

    A file is the facet ``file``, else the task's id. Figures of several models are never pooled:
    they are under ``models``, and the figures beside it are null with that reason. Figures
    that are no counts have an interval, which leaves out one scenario at a time, all its files
    taken together; it is computed before anything is rounded.
    """

    version = "4"
    keeps = frozenset({"fault", *(f"metadata:plan_{name}" for name in PLANS)})
    figures = (
        _figure(
            "average",
            "Average",
            about="mean of call_rejection_accuracy, fc and plan",
            divisor="averaged",
        ),
        _figure(
            "call_rejection_accuracy",
            "Call or rejection",
            about="mean of the F1s of calls and of rejections",
            divisor="decided",
        ),
        _figure("fc", "Calls", about="(name F1 + key F1 + value F1) / 3", divisor=files_with(NAME)),
        _figure(
            "plan",
            "Plans",
            about="mean similarity of plans, failed ones included",
            divisor=files_with(WITH_FAILURE),
            undefined="no gold plan",
        ),
        _of_pairs(
            "fc_upper_bound",
            "Calls, at best",
            about="with the best a judge could make of undecided values",
        ),
        _figure(
            "reject_decision_performance.{figure}",
            "Decisions to reject, precision, recall and the like",
            divisor="reject {figure}",
        ),
        _figure(
            "fc_decision_performance.{figure}",
            "Decisions to call, precision, recall and the like",
            divisor="fc {figure}",
        ),
        _figure(
            "error_patterns.{pattern}",
            "Share of a pattern among wrong decisions",
            better="neither",
            divisor="errors",
        ),
        _detail(
            "rejection_type_accuracy",
            "Rejections of the right type",
            about="right types / rejections that were right",
            divisor="true_positive_reject",
            undefined="no rejection met a rejection",
        ),
        _detail(
            "overall_function_call_failed_rate",
            "Expected calls that failed",
            better="lower",
            about="(expected calls - calls made) / expected calls",
            divisor="function_call_cases",
            undefined="the labels expect no call",
            least=-math.inf,  # a step predicted twice is two calls made
        ),
        _of_pairs(NAME, "Function names, F1"),
        _of_pairs(KEY, "Names of arguments, F1"),
        _of_values(VALUE, "Values of arguments, F1"),
        _of_values(UPPER_BOUND, "Values of arguments, F1 at best"),
        _of_plans(WITH_FAILURE, "Similarity of plans", about="mean over files"),
        _detail(
            WITHOUT_FAILURE,
            "Similarity of plans that could be read",
            about="mean over files",
            divisor=files_with(WITHOUT_FAILURE),
            undefined=_UNREAD,
        ),
        _of_plans(STRUCTURAL, "Structural similarity of plans", about=_SIMILARITY),
        _of_plans(COMPONENT, "Similarity of the parts of plans", about=_SIMILARITY),
    )

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return ("file",)

    @override
    def contribution(self, grade: Grade) -> dict[str, float] | None:
        return trial_sums(grade)

    @override
    def task_contribution(self, sums: Mapping[str, float]) -> dict[str, Any]:
        return file_sums(file_figures(sums, exact=True))

    @override
    def figures_of(self, totals: Mapping[str, float]) -> dict[str, Any]:
        return overall(totals)

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        files: dict[str, dict[str, File]] = defaultdict(dict)
        for key, grade in grades:
            if grade.outcome is not Outcome.MISSING:
                file = key.facets.get("file")
                name = str(file or key.id)
                files[key.model or ""].setdefault(name, File(key.id)).add(grade)
        models = {model: self._document(files[model]) for model in files or {"": {}}}
        if len(models) == 1:
            return next(iter(models.values()))
        why = "several models, each has its own under `models`"
        undefined = dict.fromkeys(("average", *COMPOSITES), why)
        nothing = dict.fromkeys(undefined)
        return {**nothing, **no_intervals(undefined), "undefined": undefined, "models": models}

    def _document(self, files: Mapping[str, File]) -> dict[str, JSON]:
        """Return the figures of one model, as they are printed."""
        rows = [file.row(name) for name, file in sorted(files.items())]
        totals = total_figures(rows)
        undefined = _lacking(totals)
        shown = {figure.name.partition(".")[0]: None for figure in self.figures}
        return {
            **pick(totals, shown),
            **no_intervals(undefined),
            "trials": totals["trials"],
            "decision_matrix": decision_matrix(totals),
            "scenarios": rows,
            "statements": list(_statements(totals)),
            "undefined": undefined,
        }
