"""Figures over all trials, file by file and as a whole."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Figure, Grades, Profile, valid_confidence
from gradestack_plugins.orchestrationbench.decisions import CELLS
from gradestack_plugins.orchestrationbench.exporter import overall_statistics
from gradestack_plugins.orchestrationbench.figures import (
    AVERAGE_PARTS,
    FC_PARTS,
    PLANS,
    Figures,
    File,
    Intervals,
    added,
    decision_matrix,
    file_figures,
    files_of,
    overall,
    sums_of,
)

_FILE = ("file", "scenario", "trials", "error")
DECISIONS = Figure("call_rejection_accuracy", "Call or rejection", about="mean of the F1s of calls and of rejections")
CALLS = Figure("fc", "Calls", about="(name F1 + key F1 + value F1) / 3")
PLAN = Figure("plan", "Plans", about="mean similarity of plans, failed ones included")


def _part(name: str, label: str, about: str, better: Literal["higher", "lower"] = "higher") -> Figure:
    """Return a figure that is not there beside those of several models."""
    return Figure(name, label, better=better, about=about, optional=True)


CALLS_AT_BEST = _part("fc_upper_bound", "Calls, at best", "with the best a judge could make of undecided values")
PLAN_AT_BEST = _part("plan_upper_bound", "Plans, at best", "with the lower bounds of edit distances that are not exact")


@attrs.frozen(kw_only=True)
class _PerFile(Aggregator):
    """Computed from all trials, by model and file (facet ``file``, else the task id).

    Figures of several models are never pooled: they stand under ``models``, and beside it null with that reason. Every
    figure has its interval, which leaves out one scenario at a time; it is computed before anything is rounded.
    """

    version: ClassVar[str] = "3"
    keeps: ClassVar = frozenset({"fault", "metadata:judge_failed", *(f"metadata:plan_{name}" for name in PLANS)})

    profile: Profile = "documented"
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""
    _names: ClassVar[tuple[str, ...]]
    """Of the figures over all files."""
    _rows: ClassVar[tuple[str, ...]] = ()
    """Of those of each file."""

    @property
    @override
    def facets(self) -> tuple[str, ...]:
        return ("file", "trial")

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        found = {model: self._whole(files) for model, files in files_of(grades).items()}
        if len(found) > 1:
            main = [each.name for each in self.figures if not each.optional and "{" not in each.name]
            why = dict.fromkeys(main, "several models, each has its own under `models`")
            none = {f"{name}_interval": {"reason": reason} for name, reason in why.items()}
            return {**dict.fromkeys(main), **none, "undefined": why, "models": found}
        return next(iter(found.values()), self._whole({}))

    def _whole(self, files: Mapping[str, File]) -> dict[str, JSON]:
        rows = [file_figures(name, file, self.profile) for name, file in sorted(files.items())]
        totals = overall(added(sums_of(row, self.profile) for row in rows), self.profile)
        more = self._more(totals, rows)
        shown = [{name: row[name] for name in (*_FILE, *self._rows)} for row in rows]
        found = {
            **{name: totals[name] for name in self._names},
            **more,
            "scenarios": more.get("scenarios", shown),
            "undefined": _undefined(totals, totals if "scenarios" in more else self._names),
        }
        return {**found, **Intervals(files, self.profile, self.confidence).beside(found, found["undefined"])}

    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        """Return what stands beside the named figures."""
        return {}


@attrs.frozen(kw_only=True)
class OrchestrationDecisions(_PerFile):
    """Call/rejection matrix and its rates, summed over all steps of all trials (spec section 2.8).

    Precision, recall, F1 and accuracy from both perspectives; overaction = called wrongly / errors, underaction =
    rejected wrongly / errors, type mismatch rate = mismatches / errors, errors = all three together;
    ``call_rejection_accuracy`` = mean of the two F1s, rounded to 4 digits; undefined when one of them is (upstream: 0).

    In upstream mismatches and failed generations are 0 here, as the original loses them between file and directory.
    """

    figures: ClassVar = (
        DECISIONS,
        *(
            Figure(f"{view}_decision_performance.{{figure}}", f"Decisions to {word}, precision, recall and the like")
            for view, word in (("reject", "reject"), ("fc", "call"))
        ),
        Figure("error_patterns.{pattern}", "Share of a pattern among wrong decisions", better="neither"),
        _part("rejection_type_accuracy", "Rejections of the right type", "right types / rejections that were right"),
        _part(
            "overall_function_call_failed_rate",
            "Expected calls that failed",
            "(expected calls - calls made) / expected calls",
            better="lower",
        ),
    )

    _names: ClassVar = (
        *("call_rejection_accuracy", "reject_decision_performance", "fc_decision_performance", "error_patterns"),
        *("rejection_type_accuracy", "overall_function_call_failed_rate", "rejection_type_mismatch"),
        *("failed_generation", "rejection_cases", "function_call_cases", "steps_missing", "steps_faulty"),
    )
    _rows: ClassVar = (*CELLS, "rejection_type_mismatch", "failed_generation", "steps_missing", "steps_faulty")

    @override
    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        return {"decision_matrix": decision_matrix(totals)}


@attrs.frozen(kw_only=True)
class OrchestrationCalls(_PerFile):
    """Function name, key and value F1: trial -> file (rounded to 4 digits) -> plain mean over files.

    ``fc`` = (name + key + value) / 3, rounded to 4 digits, undefined when one of them is (upstream: 0);
    ``fc_upper_bound`` with the best a judge could make of undecided values. documented averages over the files that
    have a graded pair, upstream over all.
    """

    figures: ClassVar = (
        CALLS,
        CALLS_AT_BEST,
        _part("function_name_accuracy", "Function names, F1", "mean over files"),
        _part("arguments_key_score", "Names of arguments, F1", "mean over files"),
        _part("arguments_value_score_not_count_rejection", "Values of arguments, F1", "mean over files"),
        _part("arguments_value_score_upper_bound", "Values of arguments, F1 at best", "mean over files"),
    )

    _names: ClassVar = ("fc", "fc_upper_bound", *FC_PARTS, "arguments_value_score_upper_bound", "perfect_calls")
    _rows: ClassVar = _names[2:]

    @override
    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        paired = [row["error"] is None and row["function_name_accuracy"] is not None for row in rows]
        return {"files": totals["successful_files"], "files_with_pairs": sum(paired)}


@attrs.frozen(kw_only=True)
class OrchestrationPlans(_PerFile):
    """Plan similarity: pooled over the trials of a file, then the plain mean over files (spec sections 2.7 and 2.8).

    documented: with failure = sum of scores / gold plans, without = sum / plans that were read; upstream: sum / (gold
    plans + failures) and sum / gold plans. ``plan`` is the mean with failures rounded to 4 digits.
    """

    figures: ClassVar = (
        PLAN,
        PLAN_AT_BEST,
        _part("workflow_evaluation_with_failure", "Similarity of plans", "mean over files"),
        _part("workflow_evaluation_without_failure", "Similarity of plans that could be read", "mean over files"),
        _part("workflow_evaluation_upper_bound", "Similarity of plans, at best", "mean over files"),
        _part("average_structural_GED", "Structural similarity of plans", "1 - edit distance / greatest distance"),
        _part("average_component_GED", "Similarity of the parts of plans", "1 - edit distance / greatest distance"),
    )

    _rows: ClassVar = (
        *("workflow_evaluation_with_failure", "workflow_evaluation_without_failure", "workflow_evaluation_upper_bound"),
        *("average_structural_GED", "average_component_GED", "failed_workflow_generation"),
        "total_comparison_steps_evaluated",
    )
    _names: ClassVar = ("plan", "plan_upper_bound", *_rows)


@attrs.frozen(kw_only=True)
class OrchestrationBenchFigures(_PerFile):
    """The four key metrics and all ``overall_statistics`` of the original's result file (spec sections 2.8 and 2.9).

    ``average`` = mean of ``call_rejection_accuracy``, ``fc`` and ``plan`` after each was rounded to 4 digits, rounded
    again; undefined when one of them is, which ``undefined`` names. The first is computed over all steps (micro), the
    other two are means over files (macro).
    """

    figures: ClassVar = (
        Figure("average", "Average", about="mean of call_rejection_accuracy, fc and plan"),
        DECISIONS,
        CALLS,
        *(PLAN, CALLS_AT_BEST, PLAN_AT_BEST),
    )

    _names: ClassVar = ("average", *AVERAGE_PARTS, "fc_upper_bound", "plan_upper_bound", "trials")

    @override
    def _more(self, totals: Figures, rows: list[Figures]) -> dict[str, JSON]:
        return {
            "profile": self.profile,
            "decision_matrix": decision_matrix(totals),
            "overall_statistics": overall_statistics(totals, len(rows), self.profile),
            "scenarios": rows,
        }


_REASONS = {
    "function_name_accuracy": "no step where both gold and prediction call",
    "arguments_key_score": "no step where both gold and prediction call",
    "arguments_value_score_not_count_rejection": "no graded call has arguments",
    "workflow_evaluation_with_failure": "no gold plan",
    "workflow_evaluation_without_failure": "no gold plan, or no prediction of one that could be read",
    "rejection_type_accuracy": "no rejection met a rejection",
    "overall_function_call_failed_rate": "the labels expect no call",
    "plan": "no gold plan",
}


def _undefined(totals: Mapping[str, JSON], names: Container[str]) -> dict[str, str]:
    """Return why a figure is None, for every one of these that is; a composite says which part it lacks."""
    found = {name: reason for name, reason in _REASONS.items() if totals[name] is None}
    views = ("reject_decision_performance", "fc_decision_performance")
    parts = {
        "call_rejection_accuracy": {f"{view}.f1": totals[view]["f1"] for view in views},
        "fc": {name: totals[name] for name in FC_PARTS},
        "average": {name: totals[name] for name in AVERAGE_PARTS},
    }
    for name, known in parts.items():
        lacking = [part for part, value in known.items() if value is None]
        if lacking:
            found[name] = f"{', '.join(lacking)} not defined"
    return {name: reason for name, reason in found.items() if name in names}
