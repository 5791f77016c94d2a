"""Default stacks of the general readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from gradestack import DataError, Expectation, Inputs, Sample, read_records

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
    },
}
_TEXTS = {
    "graders": {"text": {"kind": "exact_match"}},
    "outcome": "text",
    "headline": {"figures": {"Exact matches": "text.mean"}},
}


def jsonl(inputs: Inputs | None = None, samples: Sequence[Sample] = ()) -> dict[str, Any]:
    """Return the stack of gradestack's own form: partial credit for calls, equality where only texts are expected."""
    in_memory = (_is_text(each.expected) for each in islice(samples, _LOOKED_AT))
    found = [each for each in (in_memory if inputs is None else _in_files(inputs)) if each is not None]
    return dict(_TEXTS if found and all(found) else _CALLS)


def _in_files(inputs: Inputs) -> Iterator[bool | None]:
    """Yield for the first records of each file whether a text alone is expected; None where nothing is."""
    for given in inputs.data:
        try:
            for each in islice(read_records(given, layout="lines"), _LOOKED_AT):
                record = each.value
                expected = record.get("expected") if isinstance(record, Mapping) else None
                text = expected.get("text") if isinstance(expected, Mapping) else expected
                alone = (text, {"text": text}, {"label": text, "text": text})
                yield None if expected is None else isinstance(text, str) and expected in alone
        except DataError:  # the reader will say so
            yield False


def _is_text(expected: Expectation | None) -> bool | None:
    """Return whether a text alone is expected, which may stand for a label, too; None where nothing is."""
    if expected is None or expected == Expectation():
        return None
    text = expected.text
    return isinstance(text, str) and expected in (Expectation(text=text), Expectation(text=text, label=text))
