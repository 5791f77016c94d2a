"""Figures over all trials, file by file and as a whole."""

from __future__ import annotations

import abc
from collections.abc import Container, Mapping
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Aggregator, Grade, Key, Memory, Profile, valid_confidence
from gradestack_plugins.orchestrationbench.results.figures import (
    AVERAGE_PARTS,
    FC_PARTS,
    Figures,
    decision_matrix,
    file_figures,
    overall,
)
from gradestack_plugins.orchestrationbench.results.native import overall_statistics
from gradestack_plugins.orchestrationbench.results.state import FileState, State, add_grade, merge_states
from gradestack_plugins.orchestrationbench.results.sureness import Sureness

_FILE = ("file", "scenario", "trials", "error")


@attrs.frozen(kw_only=True)
class _PerFile(Aggregator[State]):
    """Keeps trials by model and file (facet ``file``, else the task id); a file's few trials are kept one by one.

    Figures of several models are never pooled: they stand under ``models``, and beside it null with that reason. Every
    figure has its interval, which leaves out one scenario at a time; it is computed before anything is rounded.
    """

    version: ClassVar[str] = "3"
    memory: ClassVar[Memory] = "per_sample"
    main: ClassVar[tuple[str, ...]] = ()
    """The figures it is about."""

    profile: Profile = "documented"
    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""

    @override
    def start(self) -> State:
        return {}

    @override
    def add(self, state: State, key: Key, grade: Grade) -> State:
        return add_grade(state, key, grade)

    @override
    def merge(self, left: State, right: State) -> State:
        return merge_states(left, right)

    @override
    def finish(self, state: State) -> Mapping[str, JSON]:
        found = {
            model: self._whole([file_figures(file, held, self.profile) for file, held in sorted(files.items())], files)
            for model, files in state.items()
        }
        if len(found) > 1:
            why = dict.fromkeys(self.main, "several models, each has its own under `models`")
            none = {f"{name}_interval": {"reason": reason} for name, reason in why.items()}
            return {**dict.fromkeys(self.main), **none, "undefined": why, "models": found}
        return next(iter(found.values()), self._whole([], {}))

    def _whole(self, files: list[Figures], held: Mapping[str, FileState]) -> dict[str, JSON]:
        found = self._figures(files)
        sure = Sureness(held, self.profile, self.confidence)
        return {**found, **sure.beside(found, found["undefined"])}

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

    main: ClassVar[tuple[str, ...]] = ("call_rejection_accuracy",)

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

    main: ClassVar[tuple[str, ...]] = ("fc",)

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

    main: ClassVar[tuple[str, ...]] = ("plan",)

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

    main: ClassVar[tuple[str, ...]] = ("average", "call_rejection_accuracy", "fc", "plan")

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
