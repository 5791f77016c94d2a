"""When2Call: does a model call a tool, ask for what is missing, answer itself, or say that it cannot."""

from __future__ import annotations

from gradestack import Component, Panel, hookimpl

_HERE = "gradestack_plugins.when2call"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of the When2Call family, and the general classification aggregator it relies on."""
    return (
        Component(
            kind="reader",
            name="when2call",
            target=f"{_HERE}.reader:When2CallReader",
            summary="When2Call predictions (judge, MCQ, MCQ logprob, NVIDIA judge, lm-eval) joined with the dataset",
        ),
        Component(
            kind="grader",
            name="when2call",
            target=f"{_HERE}.grader:When2Call",
            summary="Predicted behaviour against gold: direct, tool_call, request_for_info or cannot_answer",
        ),
        Component(
            kind="aggregator",
            name="classification",
            target="gradestack_plugins.statistics.classification:Classification",
            summary="Accuracy, precision, recall, F1, macro-F1 and confusion matrix over any label set",
        ),
        Component(
            kind="aggregator",
            name="hallucination",
            target=f"{_HERE}.aggregators:Hallucination",
            summary="Tool, answer and parameter hallucination rates with numerators and denominators",
        ),
        Component(
            kind="aggregator",
            name="when2call_counts",
            target=f"{_HERE}.aggregators:When2CallCounts",
            summary="What the prediction files say about themselves: fall-backs, parse failures, labels read again",
        ),
        Component(
            kind="exporter",
            name="when2call",
            target=f"{_HERE}.exporter:When2CallExporter",
            summary="native/when2call.json: the evaluation suite's metrics file",
        ),
        Component(
            kind="stack",
            name="when2call",
            target=f"{_HERE}.stacks:when2call",
            summary="Behaviour labels with classification metrics and hallucination rates",
        ),
    )


@hookimpl
def gradestack_panels() -> tuple[Panel, ...]:
    """Return what the family shows on pages."""
    return (
        Panel(
            name="classes", place="overview", title="Which class is taken for which", target=f"{_HERE}.panels:classes"
        ),
    )
