"""The original's result file, ``native/orchestrationbench.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import override

from gradestack import JSON, Exporter, ExportSummary
from gradestack_plugins.orchestrationbench.aggregators import (
    CALL_SCORES,
    COMPARED_PLANS,
    FAILED_PLANS,
    PLAN_COUNTS,
    PLAN_SCORES,
    WITH_FAILURE,
    WITHOUT_FAILURE,
    Figures,
    pick,
    total_figures,
)
from gradestack_plugins.orchestrationbench.decisions import FAILURES, MATRIX, MISMATCHES, short

FILE_NAME = "orchestrationbench.json"
FAMILY = "orchestrationbench"
KEY_METRICS = {
    "average": "Average",
    "call_rejection_accuracy": "Call Rejection Classification Accuracy",
    "fc": "FC",
    "plan": "Plan",
}
"""Figure -> what the original calls it."""
_REJECTION_FIGURES = (
    "reject_decision_performance",
    "fc_decision_performance",
    "error_patterns",
    "rejection_type_accuracy",
)
Tree = dict[str, Any]


def _totals(figures: Figures, *names: str) -> Tree:
    """Return counts under the original's names."""
    return {f"total_{name}": figures[name] for name in names}


def _rounded(figures: Figures, names: Iterable[str]) -> Tree:
    return {name: short(figures[name]) for name in names}


def overall_statistics(totals: Figures, files: int) -> Tree:
    """Return ``overall_statistics`` in the original's key order.

    Args:
        totals: Figures of all files that could be read.
        files: How many files there are.
    """
    successful = totals["files"]
    calls = _rounded(totals, CALL_SCORES)
    calls |= pick(totals, ["overall_function_call_failed_rate"])
    calls["total_fc_successful_calls"] = totals["true_negative_reject"]
    calls |= _totals(totals, "function_call_cases")
    rejections = _totals(totals, "rejection_cases")
    rejections |= pick(totals, _REJECTION_FIGURES)
    rejections |= _totals(totals, MISMATCHES, FAILURES)
    rounded = _rounded(totals, PLAN_SCORES)
    raw_confusion_matrix = _totals(totals, *MATRIX)
    details = {
        "workflow_scores": rounded,
        "function_call_scores": calls,
        "call_rejection_scores": rejections,
        "raw_confusion_matrix": raw_confusion_matrix,
    }
    key_metrics = {label: totals[name] for name, label in KEY_METRICS.items()}
    failed_evaluations = files - successful
    return {
        "total_files": files,
        "successful_evaluations": successful,
        "failed_evaluations": failed_evaluations,
        **_totals(totals, FAILED_PLANS),
        **pick(totals, [COMPARED_PLANS]),
        "key_metrics": key_metrics,
        "score_details": details,
    }


def detailed_result(figures: Figures) -> Tree:
    """Return one entry of ``detailed_results``, of a file that could be read."""
    plans = pick(figures, (*PLAN_SCORES, *PLAN_COUNTS))
    name, key, value = pick(figures, CALL_SCORES).values()
    successful = {"total_fc_successful_calls": figures["true_negative_reject"]}
    counts = _totals(figures, "rejection_cases", *MATRIX)
    cases = _totals(figures, "function_call_cases")
    totals = _totals(figures, MISMATCHES, FAILURES)
    judge_failed_trials = figures.get("judge_failed_trials", [])
    perfect_calls = figures["perfect_calls"]
    arguments = {
        "total_perfect_function_calls": perfect_calls,
        **successful,
        "key_score": {"avg_f1": key},
        "value_score_not_count_rejection": {"avg_f1": value},
        "function_name_score": {"f1-score": name},
        **counts,
        **totals,
        "llm_failed_trials": judge_failed_trials,
        **cases,
    }
    names = [*plans][2:]
    total_score_with_failure = figures[WITH_FAILURE]
    workflows = {
        "total_score_with_failure": total_score_with_failure,
        "total_score_without_failure": figures[WITHOUT_FAILURE],
        **pick(plans, names),
    }
    file = figures["file"]
    return {
        "file_path": file,
        **plans,
        "arguments_key_score": key,
        "arguments_value_score_not_count_rejection": value,
        **successful,
        **counts,
        **cases,
        "function_name_accuracy": name,
        "detail": {"workflow_detail": workflows, "arguments_detail": arguments},
    }


def result_text(tree: JSON) -> str:
    """Return the text of a result file."""
    text = json.dumps(tree, indent=2, ensure_ascii=False)
    # a lone surrogate in a path or message, which UTF-8 cannot carry, is escaped as JSON does
    return text.encode(errors="backslashreplace").decode()


class OrchestrationBenchExporter(Exporter):
    """Writes ``directory``, ``overall_statistics`` and ``detailed_results`` with every field of the
    original.

    Entries are sorted by path. Undefined figures are null.
    """

    reader = FAMILY
    graders = (FAMILY,)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        grader = summary.graders[FAMILY]
        figures = grader.aggregates.get(FAMILY)
        if figures is None:
            return {}
        scenarios = figures["scenarios"]
        results = []
        for row in sorted(scenarios, key=lambda row: str(row["file"])):
            if row["error"] is None:
                results.append(detailed_result(row))
            else:
                results.append({"error": row["error"], "file_path": row["file"]})
        totals = total_figures(scenarios)
        directory = str(summary.input.path)
        tree = {
            "directory": directory,
            "overall_statistics": overall_statistics(totals, len(results)),
            "detailed_results": results,
        }
        return {FILE_NAME: result_text(tree)}
