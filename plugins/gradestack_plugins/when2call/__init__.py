"""When2Call: does a model call a tool, ask for what is missing, answer itself, or say that it cannot."""

from __future__ import annotations

from typing import Any

from gradestack import Component, Kind, hookimpl

_HERE = "gradestack_plugins.when2call"
_COMPONENTS: tuple[tuple[Kind, str, str, str], ...] = (
    (
        "reader",
        "when2call",
        f"{_HERE}.reader:When2CallReader",
        "When2Call predictions (judge, MCQ, MCQ logprob, NVIDIA judge, lm-eval) joined with the dataset",
    ),
    (
        "grader",
        "when2call",
        f"{_HERE}.grader:When2Call",
        "Predicted behaviour against gold: direct, tool_call, request_for_info or cannot_answer",
    ),
    (
        "aggregator",
        "classification",
        "gradestack_plugins.statistics.classification:Classification",
        "Accuracy, precision, recall, F1, macro-F1 and confusion matrix over any label set",
    ),
    (
        "aggregator",
        "hallucination",
        f"{_HERE}.aggregators:Hallucination",
        "Tool, answer and parameter hallucination rates with numerators and denominators",
    ),
    (
        "aggregator",
        "when2call_counts",
        f"{_HERE}.aggregators:When2CallCounts",
        "What the prediction files say about themselves: fall-backs, parse failures, labels read again",
    ),
    (
        "exporter",
        "when2call",
        f"{_HERE}.exporter:When2CallExporter",
        "native/when2call.json: the evaluation suite's metrics file",
    ),
    ("panel", "classes", f"{_HERE}.panels:Classes", "Confusion matrix, and the F1 of each class"),
    ("stack", "when2call", f"{_HERE}:stack", "Behaviour labels with classification metrics and hallucination rates"),
)


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of the When2Call family, and the general classification aggregator it relies on."""
    return tuple(Component(kind=k, name=name, target=path, summary=text) for k, name, path, text in _COMPONENTS)


def stack() -> dict[str, Any]:
    """Return the stack; the grader brings its aggregators: mean, classification, hallucination, when2call_counts."""
    return {
        "graders": {"label": {"kind": "when2call"}},
        "outcome": "label",
        "headline": {
            "figures": {
                "Accuracy": "label.classification.accuracy",
                "Macro-F1": "label.classification.macro_f1",
                "Tool hallucination": "label.hallucination.tool_hallucination_rate",
                "Answer hallucination": "label.hallucination.answer_hallucination_rate",
                "Parameter hallucination": "label.hallucination.parameter_hallucination_rate",
            },
        },
    }
