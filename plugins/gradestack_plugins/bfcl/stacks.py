"""The default metric stack of BFCL files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradestack import DataError, Inputs
from gradestack_plugins.bfcl.reader import Bfcl, Index
from gradestack_plugins.bfcl.side_files import category_of

_VERDICTS = {"valid": {"kind": "bfcl_valid"}}
_PARTIAL = {"partial": {"kind": "tau_partial"}}
_FREE = {name: {"kind": name} for name in ("tool_schema", "tool_success", "repeats", "usage")}
"""What needs no reference."""
_FIGURES = {
    "Accuracy": "valid.mean",
    "Partial credit": "partial.mean",
    "Tool selection accuracy": "partial.partial_statistics.tool_selection_accuracy",
    "Argument precision": "partial.partial_statistics.argument_precision",
    "Calls that keep their schema": "tool_schema.call_validity.valid_share",
    "Successful calls": "tool_success.tool_outcomes.success_rate",
    "Runs in a loop": "repeats.loops.loop_rate",
}
"""Of all graders; those in use have at most five."""
_WORDS = {
    "valid": ("valid", "not valid"),
    "partial": ("all calls right", "not all calls right"),
    "tool_schema": ("without invalid calls", "with invalid calls"),
}


def bfcl(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack: recorded verdicts where there are score files, partial credit where a file has none.

    Results with neither scores nor possible answers get what needs no reference.

    Args:
        inputs: The files.
    """
    graders = _graders(inputs)
    outcome = next(iter(graders))
    passed, failed = _WORDS[outcome]
    return {
        "graders": graders,
        "outcome": outcome,
        "headline": {
            "figures": {label: path for label, path in _FIGURES.items() if path.partition(".")[0] in graders},
            "passed": passed,
            "failed": failed,
        },
    }


def _graders(inputs: Inputs | None) -> dict[str, dict[str, str]]:
    try:
        index = Bfcl().index(inputs) if inputs is not None else None
    except DataError:  # the reader will say so
        index = None
    if index is None:
        return {**_VERDICTS, **_PARTIAL}
    scored, files = len(index.side.scores), sum(map(len, index.files.values()))
    if index.form == "result" and not scored and not index.side.answers and not _irrelevance(inputs, index):
        return dict(_FREE)
    return {**(_VERDICTS if scored else {}), **(_PARTIAL if scored < files else {})}


def _irrelevance(inputs: Inputs | None, index: Index) -> bool:
    """Return whether a file is of a category in which calling nothing is right, which is a reference."""
    paths = {given.name: given.path for given in inputs.data} if inputs is not None else {}
    files = (Path(paths[given], name) for given, names in index.files.items() for name in names)
    return any("irrelevance" in (category_of(path) or "") for path in files)
