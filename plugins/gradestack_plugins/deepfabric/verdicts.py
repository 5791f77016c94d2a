"""Verdicts on one sample: their score, parts and counts, and the words for what is wrong."""

from __future__ import annotations

from typing import Final

from gradestack import Fault, Reason, ToolCall
from gradestack_plugins.deepfabric.upstream import PROCESSING_ERROR
from gradestack_plugins.deepfabric.weights import METRICS, Weights, weighted

Verdict = tuple[bool, bool, bool]
"""(tool selection, parameters, execution) right or wrong."""
Figures = tuple[float, dict[str, float | None], dict[str, int]]
"""Score, parts and counts."""

WRONG: Final = (False, False, False)
RIGHT: Final = (True, True, True)
TIPS: Final = {
    "data": "the record cannot be used as it is: mend it, or read the dataset with validation: lenient",
    "target": "see whether the model answered at all, and in the output format its calls are read from",
}
"""What may help against a processing error, by the category of its fault."""


def figures(verdict: Verdict, weights: Weights, *, processed: bool, quality: float = 0.0) -> Figures:
    """Return score, parts and counts of a verdict under these weights."""
    selection, parameters, execution = verdict
    values = (float(selection), float(parameters), float(execution), quality)
    counts = {
        "tool_selection": int(selection),
        "parameter_accuracy": int(parameters),
        "execution_success": int(execution),
        "processed": int(processed),
        "errors": int(not processed),
    }
    parts: dict[str, float | None] = dict(zip(METRICS, values, strict=True))
    return weighted(values, weights), parts, counts


def unknown_tool(made: ToolCall) -> Reason:
    """Return that no schema is known of the tool that was called."""
    message = "the called tool is not in the snapshot"
    return Reason(code="unknown_tool", subject=made.name, actual=made.name, message=message)


def undecoded(made: ToolCall) -> Fault:
    """Return that the arguments of a call are no object."""
    text = (made.raw_arguments or "")[:80]
    message = f"the arguments of the call to {made.name!r} are not a JSON object: {text}"
    return Fault(category="target", code=PROCESSING_ERROR, message=message)
