"""From trials to files to the whole input, under both profiles.

Names follow the original's result file. All rates are fractions in [0, 1]; in ``documented`` an undefined one is None
and so is what is composed of it, in ``upstream`` it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from gradestack import JSON, Profile
from gradestack_plugins.orchestrationbench.calls.decisions import CELLS, MATRIX
from gradestack_plugins.orchestrationbench.calls.f1 import harmonic
from gradestack_plugins.orchestrationbench.results.files import File

Figures = dict[str, JSON]
Number = float | int | None

MEANS = (
    "workflow_evaluation_with_failure",
    "workflow_evaluation_without_failure",
    "average_structural_GED",
    "average_component_GED",
    "function_name_accuracy",
    "arguments_key_score",
    "arguments_value_score_not_count_rejection",
    "arguments_value_score_upper_bound",
    "workflow_evaluation_upper_bound",
)
"""File figures that are averaged over files."""


FC_PARTS = ("function_name_accuracy", "arguments_key_score", "arguments_value_score_not_count_rejection")
AVERAGE_PARTS = ("call_rejection_accuracy", "fc", "plan")


def file_figures(name: str, file: File, profile: Profile, *, exact: bool = False) -> Figures:
    """Return every figure of one file; with ``exact`` nothing is rounded.

    Name, key and value: mean over trials, rounded to 4 digits; ``documented`` leaves out trials without a graded pair.
    Plans are pooled over trials. In ``upstream`` one trial whose argument part cannot be graded zeroes that part.
    """
    broken = profile == "upstream" and bool(file.faults or file.empty)
    figures: Figures = {
        "file": name,
        "scenario": file.scenario,
        "trials": file.trials,
        "error": file.unreadable or (file.empty if profile == "documented" else None),
        "arguments_error": (file.empty or file.faults[0][1]) if broken else None,
        "faults": file.faults,
        "judge_failed_trials": [] if broken else file.judge_failed,
    }
    counts = (*MATRIX, "rejection_type_mismatch", "failed_generation", "rejection_cases", "function_call_cases", *CELLS)
    for each in (*counts, "perfect_calls", "steps_missing", "steps_faulty"):
        figures[each] = 0 if broken else file.counts[each]
    for each, scores in zip((*FC_PARTS, "arguments_value_score_upper_bound"), file.scores.values(), strict=True):
        figures[each] = _trial_mean([] if broken else scores, file.trials, profile, exact=exact)
    return figures | _plan_figures(file, profile)


def _trial_mean(values: Sequence[float | None], trials: int, profile: Profile, *, exact: bool) -> float | None:
    total = 0.0
    defined = [value for value in values if value is not None]
    for value in defined:
        total += value
    if profile == "upstream":
        return _short(total / trials, exact=exact) if defined and trials else 0.0
    return _short(total / len(defined), exact=exact) if defined else None


def _short(value: float, *, exact: bool) -> float:
    return value if exact else round(value, 4)


def _plan_figures(file: File, profile: Profile) -> Figures:
    compared, failed, parsed = (file.counts[name] for name in ("plans", "plans_failed", "plans_parsed"))
    upstream = profile == "upstream"

    def share(name: str, divisor: int) -> Number:
        return math.fsum(file.plans[name]) / divisor if divisor else (0.0 if upstream else None)

    return {
        "workflow_evaluation_with_failure": share("scores", compared + failed if upstream else compared),
        "workflow_evaluation_without_failure": share("scores", compared if upstream else parsed),
        "workflow_evaluation_upper_bound": share("highest", compared + failed if upstream else compared),
        "average_structural_GED": share("structural", compared),
        "average_component_GED": share("component", compared),
        "failed_workflow_generation": failed,
        "total_comparison_steps_evaluated": compared,
    }


def overall(files: Iterable[Figures], profile: Profile) -> Figures:
    """Return the figures of the whole input: sums of counts, plain means over the files that could be read."""
    sound = [figures for figures in files if figures["error"] is None]
    totals: Figures = {name: _mean([figures[name] for figures in sound], profile) for name in MEANS}
    for name in (*MATRIX, *CELLS, "rejection_cases", "function_call_cases", "steps_missing", "steps_faulty"):
        totals[name] = sum(figures[name] for figures in sound)
    for name in ("failed_workflow_generation", "total_comparison_steps_evaluated", "perfect_calls", "trials"):
        totals[name] = sum(figures[name] for figures in sound)
    carried = 0 if profile == "upstream" else 1
    # The original's file record lacks these two, so its sums are always 0.
    for name in ("rejection_type_mismatch", "failed_generation"):
        totals[name] = carried * sum(figures[name] for figures in sound)
    totals["successful_files"] = len(sound)
    return totals | composed(totals, profile)


def composed(totals: Mapping[str, JSON], profile: Profile, *, exact: bool = False, absent: Number = None) -> Figures:
    """Return the figures that are composed of sums and means.

    Args:
        totals: Sums of counts, means over files.
        profile: Which definition is followed.
        exact: Round nothing.
        absent: What an F1 of a class that does not occur counts as in the composites of ``documented``.
    """
    rates = _rates(totals, profile, exact=exact)
    return rates | _keys(totals, rates, exact=exact, absent=absent)


def _mean(values: Iterable[Number], profile: Profile) -> float | None:
    defined = [value for value in values if value is not None]
    if not defined:
        return 0.0 if profile == "upstream" else None
    return float(sum(map(Fraction, defined), Fraction(0)) / len(defined))


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


def _rates(totals: Mapping[str, JSON], profile: Profile, *, exact: bool) -> Figures:
    undefined: Number = 0 if profile == "upstream" else None
    reject = [
        totals[f"{cell}_reject"] for cell in ("true_positive", "false_positive", "false_negative", "true_negative")
    ]
    call = [totals[f"{cell}_fc"] for cell in ("true_positive", "false_positive", "false_negative", "true_negative")]
    mismatch, rejected = totals["rejection_type_mismatch"], totals["true_positive_reject"]
    errors = totals["false_positive_reject"] + totals["false_negative_reject"] + mismatch
    cases, successful = totals["function_call_cases"], totals["true_negative_reject"]
    zero = 0.0 if profile == "upstream" else None
    return {
        "reject_decision_performance": performance(reject, profile),
        "fc_decision_performance": performance(call, profile),
        "error_patterns": {
            "overaction_rate": totals["false_negative_reject"] / errors if errors else undefined,
            "underaction_rate": totals["false_positive_reject"] / errors if errors else undefined,
            "type_mismatch_rate": mismatch / errors if errors else undefined,
        },
        "rejection_type_accuracy": _short((rejected - mismatch) / rejected, exact=exact) if rejected else zero,
        "overall_function_call_failed_rate": _short((cases - successful) / cases, exact=exact) if cases else zero,
    }


def _keys(totals: Mapping[str, JSON], rates: Figures, *, exact: bool, absent: Number) -> Figures:
    """Return the four key metrics, each rounded to 4 digits, and the upper bounds beside them."""

    def composite(parts: Sequence[Number]) -> float | None:
        return _composite(parts, exact=exact)

    name, key, value = (totals[part] for part in FC_PARTS)
    found = [rates[f"{view}_decision_performance"]["f1"] for view in ("reject", "fc")]
    decision = composite([absent if each is None else each for each in found])
    call, plan = composite([name, key, value]), composite([totals["workflow_evaluation_with_failure"]])
    return {
        "average": composite([decision, call, plan]),
        "call_rejection_accuracy": decision,
        "fc": call,
        "plan": plan,
        "fc_upper_bound": composite([name, key, totals["arguments_value_score_upper_bound"]]),
        "plan_upper_bound": composite([totals["workflow_evaluation_upper_bound"]]),
    }


def _composite(parts: Sequence[Number], *, exact: bool) -> float | None:
    """Return the mean of the parts, added from left to right and rounded to 4 digits; None when one is undefined."""
    total: float = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return _short(total / len(parts), exact=exact)


def decision_matrix(totals: Mapping[str, JSON]) -> dict[str, dict[str, int]]:
    """Return actual (FC, Reject) against predicted (FC, Reject, FAILED)."""
    return {
        gold: {predicted: totals[f"{gold.lower()}_{predicted.lower()}"] for predicted in ("FC", "Reject", "FAILED")}
        for gold in ("FC", "Reject")
    }
