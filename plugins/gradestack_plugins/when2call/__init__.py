"""When2Call: does a model call a tool, ask for what is missing, answer itself, or say that it
cannot.
"""

from __future__ import annotations

from typing import Any

from gradestack import Component, hookimpl

_TABLE = """
reader when2call .reader:When2CallReader When2Call predictions of five kinds, joined with the
    dataset
grader when2call .aggregators:When2Call Predicted behaviour against gold, of the four behaviours
aggregator hallucination .aggregators:Hallucination Tool, answer and parameter hallucination rates
aggregator when2call_counts .aggregators:When2CallCounts Metadata of prediction files
exporter when2call .aggregators:When2CallExporter native/when2call.json: the suite's metrics file
program when2call .program:When2CallProgram The evaluation suite's scoring of recorded
    predictions
stack when2call :stack Behaviour labels with classification metrics and hallucination rates
"""
_MATRIX = """
aggregator classification .classification:Classification Accuracy, precision, recall, F1, macro-F1
    and confusion matrix
    over any label set
panel classes .panels:classes Confusion matrix, and the F1 of each class
"""
gradestack_components = hookimpl(
    lambda: (
        Component.table(__name__, _TABLE)
        + Component.table("gradestack_plugins.statistics", _MATRIX)
    )
)


def stack() -> dict[str, Any]:
    """Return the stack.

    The grader brings its aggregators: mean, classification, hallucination, when2call_counts.
    """
    return {
        "graders": {"label": {"kind": "when2call"}},
        "outcome": "label",
        "headline": {
            "figures": {
                "Accuracy": "label.classification.accuracy",
                "Macro-F1": "label.classification.macro_f1",
                "Macro-F1 (no direct)": "label.classification.macro_f1_no_direct",
                "Tool hallucination (ToolHall)": "label.hallucination.tool_hallucination_rate",
                "Answer hallucination (AnswerHall)": (
                    "label.hallucination.answer_hallucination_rate"
                ),
                "Parameter hallucination (ParamHall)": (
                    "label.hallucination.parameter_hallucination_rate"
                ),
            },
        },
    }
