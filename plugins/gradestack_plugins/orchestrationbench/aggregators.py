"""Figures over all trials, file by file and as a whole."""

from __future__ import annotations

import abc
from collections.abc import Container, Mapping
from typing import ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Figure, Grades, Profile, valid_confidence
from gradestack_plugins.orchestrationbench.exporter import overall_statistics
from gradestack_plugins.orchestrationbench.figures import (
    AVERAGE_PARTS,
    FC_PARTS,
    PLANS,
    Figures,
    File,
    Intervals,
    decision_matrix,
    file_figures,
    files_of,
    overall,
)

_FILE = ("file", "scenario", "trials", "error")
DECISIONS = Figure("call_rejection_accuracy", "Call or rejection", about="mean of the F1s of calls and of rejections")
CALLS = Figure("fc", "Calls", about="(name F1 + key F1 + value F1) / 3")
PLAN = Figure("plan", "Plans", about="mean similarity of plans, failed ones included")


def _part(name: str, label: str, about: str, better: Literal["higher", "lower"] = "higher") -> Figure:
    """Return a figure that is not there beside those of several models."""
    return Figure(name, label, better=better, about=about, optional=True)


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
        found = self._figures([file_figures(name, file, self.profile) for name, file in sorted(files.items())])
        intervals = Intervals(files, self.profile, self.confidence)
        return {**found, **intervals.beside(found, found["undefined"])}

    @abc.abstractmethod
    def _figures(self, files: list[Figures]) -> dict[str, JSON]:
        """Return the figures of one model's files."""


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

    @override
    def _figures(self, files: list[Figures]) -> dict[str, JSON]:
        totals = overall(files, self.profile)
        names = (
            "call_rejection_accuracy",
            "reject_decision_performance",
            "fc_decision_performance",
            "error_patterns",
            "rejection_type_accuracy",
            "overall_function_call_failed_rate",
            "rejection_type_mismatch",
            "failed_generation",
            "rejection_cases",
            "function_call_cases",
            "steps_missing",
            "steps_faulty",
        )
        rows = (*_FILE, *_COLUMNS, "rejection_type_mismatch", "failed_generation", "steps_missing", "steps_faulty")
        return {
            **{name: totals[name] for name in names},
            "decision_matrix": decision_matrix(totals),
            "scenarios": [{name: figures[name] for name in rows} for figures in files],
            "undefined": _undefined(totals, names),
        }


_COLUMNS = tuple(f"{gold}_{predicted}" for gold in ("fc", "reject") for predicted in ("fc", "reject", "failed"))


@attrs.frozen(kw_only=True)
class OrchestrationCalls(_PerFile):
    """Function name, key and value F1: trial -> file (rounded to 4 digits) -> plain mean over files.

    ``fc`` = (name + key + value) / 3, rounded to 4 digits, undefined when one of them is (upstream: 0);
    ``fc_upper_bound`` with the best a judge could make of undecided values. documented averages over the files that
    have a graded pair, upstream over all.
    """

    figures: ClassVar = (
        CALLS,
        _part("fc_upper_bound", "Calls, at best", "with the best a judge could make of undecided values"),
        _part("function_name_accuracy", "Function names, F1", "mean over files"),
        _part("arguments_key_score", "Names of arguments, F1", "mean over files"),
        _part("arguments_value_score_not_count_rejection", "Values of arguments, F1", "mean over files"),
        _part("arguments_value_score_upper_bound", "Values of arguments, F1 at best", "mean over files"),
    )

    @override
    def _figures(self, files: list[Figures]) -> dict[str, JSON]:
        totals = overall(files, self.profile)
        names = (
            "function_name_accuracy",
            "arguments_key_score",
            "arguments_value_score_not_count_rejection",
            "arguments_value_score_upper_bound",
        )
        with_pairs = sum(
            1 for figures in files if figures["error"] is None and figures["function_name_accuracy"] is not None
        )
        return {
            **{name: totals[name] for name in ("fc", "fc_upper_bound", *names, "perfect_calls")},
            "files": totals["successful_files"],
            "files_with_pairs": with_pairs,
            "scenarios": [{name: figures[name] for name in (*_FILE, *names, "perfect_calls")} for figures in files],
            "undefined": _undefined(totals, ("fc", *names)),
        }


@attrs.frozen(kw_only=True)
class OrchestrationPlans(_PerFile):
    """Plan similarity: pooled over the trials of a file, then the plain mean over files (spec sections 2.7 and 2.8).

    documented: with failure = sum of scores / gold plans, without = sum / plans that were read; upstream: sum / (gold
    plans + failures) and sum / gold plans. ``plan`` is the mean with failures rounded to 4 digits.
    """

    figures: ClassVar = (
        PLAN,
        _part("plan_upper_bound", "Plans, at best", "with the lower bounds of edit distances that are not exact"),
        _part("workflow_evaluation_with_failure", "Similarity of plans", "mean over files"),
        _part("workflow_evaluation_without_failure", "Similarity of plans that could be read", "mean over files"),
        _part("workflow_evaluation_upper_bound", "Similarity of plans, at best", "mean over files"),
        _part("average_structural_GED", "Structural similarity of plans", "1 - edit distance / greatest distance"),
        _part("average_component_GED", "Similarity of the parts of plans", "1 - edit distance / greatest distance"),
    )

    @override
    def _figures(self, files: list[Figures]) -> dict[str, JSON]:
        totals = overall(files, self.profile)
        names = (
            "workflow_evaluation_with_failure",
            "workflow_evaluation_without_failure",
            "workflow_evaluation_upper_bound",
            "average_structural_GED",
            "average_component_GED",
            "failed_workflow_generation",
            "total_comparison_steps_evaluated",
        )
        return {
            **{name: totals[name] for name in ("plan", "plan_upper_bound", *names)},
            "scenarios": [{name: figures[name] for name in (*_FILE, *names)} for figures in files],
            "undefined": _undefined(totals, ("plan", *names)),
        }


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
        PLAN,
        _part("fc_upper_bound", "Calls, at best", "with the best a judge could make of undecided values"),
        _part("plan_upper_bound", "Plans, at best", "with the lower bounds of edit distances that are not exact"),
    )

    @override
    def _figures(self, files: list[Figures]) -> dict[str, JSON]:
        totals = overall(files, self.profile)
        names = ("average", "call_rejection_accuracy", "fc", "plan", "fc_upper_bound", "plan_upper_bound", "trials")
        return {
            **{name: totals[name] for name in names},
            "profile": self.profile,
            "decision_matrix": decision_matrix(totals),
            "overall_statistics": overall_statistics(files, self.profile),
            "scenarios": files,
            "undefined": _undefined(totals, totals),
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
