"""The layout of the original's result file."""

from __future__ import annotations

from collections.abc import Sequence

from gradestack import JSON, Profile
from gradestack_plugins.orchestrationbench.calls.decisions import MATRIX
from gradestack_plugins.orchestrationbench.results.figures import Figures, overall

Tree = dict[str, JSON]

_FLOATS = frozenset(
    {
        "perfect_calls",
        "true_negative_reject",
        "rejection_cases",
        "function_call_cases",
        "true_positive_reject",
        "false_positive_reject",
        "false_negative_reject",
    }
)
"""Counters the original keeps as floats."""


def overall_statistics(files: Sequence[Figures], profile: Profile) -> Tree:
    """Return ``overall_statistics`` in the original's key order.

    Without a readable file, ``upstream`` lacks the fields the original lacks then.
    """
    totals = overall(files, profile)
    sound = totals["successful_files"]
    tree: Tree = {
        "total_files": len(files),
        "successful_evaluations": sound,
        "failed_evaluations": len(files) - sound,
        "total_failed_workflow_generation": totals["failed_workflow_generation"],
        "total_comparison_steps_evaluated": totals["total_comparison_steps_evaluated"],
        "key_metrics": {
            "Average": totals["average"],
            "Call Rejection Classification Accuracy": totals["call_rejection_accuracy"],
            "FC": totals["fc"],
            "Plan": totals["plan"],
        },
        "score_details": {
            "workflow_scores": {name: _round(totals[name]) for name in _WORKFLOW},
            "function_call_scores": _function_call_scores(totals, profile),
            "call_rejection_scores": _call_rejection_scores(totals, profile),
            "raw_confusion_matrix": {f"total_{name}": _number(totals, name, profile) for name in MATRIX},
        },
    }
    if profile == "upstream" and not sound:
        rejection = tree["score_details"]["call_rejection_scores"]
        for name in ("rejection_type_accuracy", "total_rejection_type_mismatch", "total_failed_generation"):
            del rejection[name]
        del rejection["reject_decision_performance"]["accuracy"]
        del rejection["error_patterns"]["type_mismatch_rate"]
    return tree


_WORKFLOW = (
    "workflow_evaluation_with_failure",
    "workflow_evaluation_without_failure",
    "average_structural_GED",
    "average_component_GED",
)


def _function_call_scores(totals: Figures, profile: Profile) -> Tree:
    tree: Tree = {
        "function_name_accuracy": _round(totals["function_name_accuracy"]),
        "arguments_key_score": _round(totals["arguments_key_score"]),
        "arguments_value_score_not_count_rejection": _round(totals["arguments_value_score_not_count_rejection"]),
        "overall_function_call_failed_rate": totals["overall_function_call_failed_rate"],
        "total_fc_successful_calls": _number(totals, "true_negative_reject", profile),
        "total_function_call_cases": _number(totals, "function_call_cases", profile),
    }
    if profile == "documented":
        tree["arguments_value_score_upper_bound"] = _round(totals["arguments_value_score_upper_bound"])
    return tree


def _call_rejection_scores(totals: Figures, profile: Profile) -> Tree:
    return {
        "total_rejection_cases": _number(totals, "rejection_cases", profile),
        "reject_decision_performance": dict(totals["reject_decision_performance"]),
        "fc_decision_performance": dict(totals["fc_decision_performance"]),
        "error_patterns": dict(totals["error_patterns"]),
        "rejection_type_accuracy": totals["rejection_type_accuracy"],
        "total_rejection_type_mismatch": totals["rejection_type_mismatch"],
        "total_failed_generation": totals["failed_generation"],
    }


def detailed_result(figures: Figures, profile: Profile) -> Tree:
    """Return one entry of ``detailed_results``; a file that could not be read has its error only."""
    if figures["error"] is not None:
        if profile == "upstream":
            return {"error": f"Failed to load data from {figures['file']}"}
        return {"error": figures["error"], "file_path": figures["file"]}
    plans = {
        name: figures[name] for name in (*_WORKFLOW, "failed_workflow_generation", "total_comparison_steps_evaluated")
    }
    return {
        "file_path": figures["file"],
        **plans,
        "arguments_key_score": figures["arguments_key_score"],
        "arguments_value_score_not_count_rejection": figures["arguments_value_score_not_count_rejection"],
        "total_fc_successful_calls": _number(figures, "true_negative_reject", profile),
        "total_rejection_cases": _number(figures, "rejection_cases", profile),
        **{f"total_{name}": _number(figures, name, profile) for name in MATRIX},
        "total_function_call_cases": _number(figures, "function_call_cases", profile),
        "function_name_accuracy": figures["function_name_accuracy"],
        "detail": {
            "workflow_detail": _workflow_detail(figures),
            "arguments_detail": _arguments_detail(figures, profile),
        },
    }


def _workflow_detail(figures: Figures) -> Tree:
    return {
        "total_score_with_failure": figures["workflow_evaluation_with_failure"],
        "total_score_without_failure": figures["workflow_evaluation_without_failure"],
        "average_structural_GED": figures["average_structural_GED"],
        "average_component_GED": figures["average_component_GED"],
        "failed_workflow_generation": figures["failed_workflow_generation"],
        "total_comparison_steps_evaluated": figures["total_comparison_steps_evaluated"],
    }


def _arguments_detail(figures: Figures, profile: Profile) -> Tree:
    scores: Tree = {
        "key_score": {"avg_f1": figures["arguments_key_score"]},
        "value_score_not_count_rejection": {"avg_f1": figures["arguments_value_score_not_count_rejection"]},
        "function_name_score": {"f1-score": figures["function_name_accuracy"]},
        "total_rejection_cases": _number(figures, "rejection_cases", profile),
        **{f"total_{name}": _number(figures, name, profile) for name in MATRIX},
    }
    cases = {"total_function_call_cases": _number(figures, "function_call_cases", profile)}
    if figures["arguments_error"] is not None:
        return {**scores, "llm_failed_trials": [], **cases, "error": figures["arguments_error"]}
    tree: Tree = {
        "total_perfect_function_calls": _number(figures, "perfect_calls", profile),
        "total_fc_successful_calls": _number(figures, "true_negative_reject", profile),
        **scores,
        "total_rejection_type_mismatch": figures["rejection_type_mismatch"],
        "total_failed_generation": figures["failed_generation"],
        "llm_failed_trials": figures["judge_failed_trials"],
        **cases,
    }
    if profile == "documented":
        tree["value_score_upper_bound"] = {"avg_f1": figures["arguments_value_score_upper_bound"]}
        if figures["faults"]:
            tree["failed_trials"] = figures["faults"]
    return tree


def _number(figures: Figures, name: str, profile: Profile) -> JSON:
    return float(figures[name]) if profile == "upstream" and name in _FLOATS else figures[name]


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
