"""Default stacks of the general readers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from gradestack import DataError, Inputs, read_records

_LOOKED_AT = 100
"""Records of each file by which the stack is chosen."""
_CALLS = {
    "graders": {"partial": {"kind": "tau_partial"}},
    "outcome": "partial",
    "headline": {
        "figures": {
            "Partial credit": "partial.mean",
            "Tool selection accuracy": "partial.partial_statistics.tool_selection_accuracy",
            "Argument precision": "partial.partial_statistics.argument_precision",
        },
        "passed": "all calls right",
        "failed": "not all calls right",
    },
}
_TEXTS = {
    "graders": {"text": {"kind": "exact_match"}},
    "outcome": "text",
    "headline": {"figures": {"Exact matches": "text.mean"}, "passed": "right text", "failed": "other text"},
}


def jsonl(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack for gradestack's own form: partial credit for calls, or where only texts are expected, equality.

    Args:
        inputs: The files.
    """
    return dict(_TEXTS if inputs is not None and _expects_texts_only(inputs) else _CALLS)


def _expects_texts_only(inputs: Inputs) -> bool:
    """Return whether the first records expect texts, and none of them calls, a label or a plan alone."""
    found = False
    for given in inputs.data:
        try:
            records = [each.value for each in islice(read_records(given, layout="lines"), _LOOKED_AT)]
        except DataError:  # the reader will say so
            return False
        for record in records:
            expected = record.get("expected") if isinstance(record, Mapping) else None
            if expected is None:
                continue
            text = expected.get("text") if isinstance(expected, Mapping) else expected
            if not isinstance(text, str) or (isinstance(expected, Mapping) and len(expected) > 1):
                return False
            found = True
    return found
