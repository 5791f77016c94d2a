"""``native/orchestrationbench.json``: the result file of the original program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Exporter, ExportSummary, Profile
from gradestack_plugins.orchestrationbench.decisions import MATRIX
from gradestack_plugins.orchestrationbench.figures import FC_PARTS, Figures

Tree = dict[str, JSON]

_FLOATS = frozenset({*MATRIX[:4], "perfect_calls", "rejection_cases", "function_call_cases"})
"""Counters the original keeps as floats."""
_WORKFLOW = (
    "workflow_evaluation_with_failure",
    "workflow_evaluation_without_failure",
    "average_structural_GED",
    "average_component_GED",
)
_CALL_SCORES = (*FC_PARTS, "arguments_value_score_upper_bound")
_PLAN_COUNTS = ("failed_workflow_generation", "total_comparison_steps_evaluated")


def overall_statistics(totals: Figures, files: int, profile: Profile) -> Tree:
    """Return ``overall_statistics`` in the original's key order.

    Without a readable file, ``upstream`` lacks the fields the original lacks then.
    """
    sound = totals["successful_files"]
    rounded = {name: None if totals[name] is None else round(totals[name], 4) for name in (*_WORKFLOW, *_CALL_SCORES)}
    calls: Tree = {
        **{name: rounded[name] for name in _CALL_SCORES[:3]},
        "overall_function_call_failed_rate": totals["overall_function_call_failed_rate"],
        "total_fc_successful_calls": _number(totals, "true_negative_reject", profile),
        "total_function_call_cases": _number(totals, "function_call_cases", profile),
    }
    if profile == "documented":
        calls["arguments_value_score_upper_bound"] = rounded["arguments_value_score_upper_bound"]
    rejections: Tree = {
        "total_rejection_cases": _number(totals, "rejection_cases", profile),
        "reject_decision_performance": dict(totals["reject_decision_performance"]),
        "fc_decision_performance": dict(totals["fc_decision_performance"]),
        "error_patterns": dict(totals["error_patterns"]),
        "rejection_type_accuracy": totals["rejection_type_accuracy"],
        "total_rejection_type_mismatch": totals["rejection_type_mismatch"],
        "total_failed_generation": totals["failed_generation"],
    }
    if profile == "upstream" and not sound:
        for name in ("rejection_type_accuracy", "total_rejection_type_mismatch", "total_failed_generation"):
            del rejections[name]
        del rejections["reject_decision_performance"]["accuracy"]
        del rejections["error_patterns"]["type_mismatch_rate"]
    return {
        "total_files": files,
        "successful_evaluations": sound,
        "failed_evaluations": files - sound,
        "total_failed_workflow_generation": totals["failed_workflow_generation"],
        "total_comparison_steps_evaluated": totals["total_comparison_steps_evaluated"],
        "key_metrics": {
            "Average": totals["average"],
            "Call Rejection Classification Accuracy": totals["call_rejection_accuracy"],
            "FC": totals["fc"],
            "Plan": totals["plan"],
        },
        "score_details": {
            "workflow_scores": {name: rounded[name] for name in _WORKFLOW},
            "function_call_scores": calls,
            "call_rejection_scores": rejections,
            "raw_confusion_matrix": {f"total_{name}": _number(totals, name, profile) for name in MATRIX},
        },
    }


def detailed_result(figures: Figures, profile: Profile) -> Tree:
    """Return one entry of ``detailed_results``; a file that could not be read has its error only."""
    if figures["error"] is not None:
        if profile == "upstream":
            return {"error": f"Failed to load data from {figures['file']}"}
        return {"error": figures["error"], "file_path": figures["file"]}
    plans = [figures[name] for name in (*_WORKFLOW, *_PLAN_COUNTS)]
    calls = {"total_fc_successful_calls": _number(figures, "true_negative_reject", profile)}
    rejections = {"total_rejection_cases": _number(figures, "rejection_cases", profile)}
    matrix = {f"total_{name}": _number(figures, name, profile) for name in MATRIX}
    cases = {"total_function_call_cases": _number(figures, "function_call_cases", profile)}
    arguments: Tree = {
        "key_score": {"avg_f1": figures["arguments_key_score"]},
        "value_score_not_count_rejection": {"avg_f1": figures["arguments_value_score_not_count_rejection"]},
        "function_name_score": {"f1-score": figures["function_name_accuracy"]},
        **rejections,
        **matrix,
    }
    if figures["arguments_error"] is not None:
        arguments = {**arguments, "llm_failed_trials": [], **cases, "error": figures["arguments_error"]}
    else:
        arguments = {
            "total_perfect_function_calls": _number(figures, "perfect_calls", profile),
            **calls,
            **arguments,
            "total_rejection_type_mismatch": figures["rejection_type_mismatch"],
            "total_failed_generation": figures["failed_generation"],
            "llm_failed_trials": figures["judge_failed_trials"],
            **cases,
        }
        if profile == "documented":
            arguments["value_score_upper_bound"] = {"avg_f1": figures["arguments_value_score_upper_bound"]}
            arguments |= {"failed_trials": figures["faults"]} if figures["faults"] else {}
    detail = ("total_score_with_failure", "total_score_without_failure", *_WORKFLOW[2:], *_PLAN_COUNTS)
    return {
        "file_path": figures["file"],
        **dict(zip((*_WORKFLOW, *_PLAN_COUNTS), plans, strict=True)),
        "arguments_key_score": figures["arguments_key_score"],
        "arguments_value_score_not_count_rejection": figures["arguments_value_score_not_count_rejection"],
        **calls,
        **rejections,
        **matrix,
        **cases,
        "function_name_accuracy": figures["function_name_accuracy"],
        "detail": {"workflow_detail": dict(zip(detail, plans, strict=True)), "arguments_detail": arguments},
    }


def _number(figures: Figures, name: str, profile: Profile) -> JSON:
    return float(figures[name]) if profile == "upstream" and name in _FLOATS else figures[name]


NAME = "orchestrationbench.json"


@attrs.frozen(kw_only=True)
class OrchestrationBenchExporter(Exporter):
    """Writes ``directory``, ``overall_statistics`` and ``detailed_results`` with every field of the original.

    Entries are sorted by path, where the original follows the file system. In ``documented`` undefined figures are
    null, the value score has its upper bound beside it, and failed trials are named; ``upstream`` has the original's
    fields only.
    """

    version: ClassVar[str] = "1"
    reader: ClassVar[str] = "orchestrationbench"
    graders: ClassVar[tuple[str, ...]] = ("orchestrationbench",)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        grader = summary.graders["orchestrationbench"]
        figures = grader.aggregates.get("orchestrationbench")
        if figures is None:
            return {}
        profile = figures["profile"]
        files = sorted(figures["scenarios"], key=lambda row: str(row["file"]))
        tree = {
            "directory": summary.input.shown,
            "overall_statistics": figures["overall_statistics"],
            "detailed_results": [detailed_result(row, profile) for row in files],
        }
        return {NAME: _text(tree)}


def _text(tree: JSON) -> str:
    text = json.dumps(tree, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate in a path or message, which UTF-8 cannot carry
        return json.dumps(tree, indent=2)
    return text
