"""The default metric stack of BFCL files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradestack import DataError, Inputs
from gradestack_plugins.bfcl.reader import Bfcl, Index
from gradestack_plugins.bfcl.side_files import category_of

_VERDICTS = {"valid": {"kind": "bfcl_valid"}}
_RULES = {"ast": {"kind": "bfcl_ast"}}
_CALLS = {"calls": {"kind": "tool_calls"}}
_FREE = {name: {"kind": name} for name in ("tool_schema", "tool_success", "repeats", "usage")}
"""What needs no reference."""
_FIGURES = {
    "Accuracy": "valid.mean",
    "Valid by BFCL's rules": "ast.mean",
    "F1 over calls": "calls.call_figures.f1",
    "F1 over arguments": "calls.call_figures.argument_f1",
    "Schema-valid calls": "tool_schema.call_validity.valid_share",
    "Successful calls": "tool_success.tool_outcomes.success_rate",
    "Runs in a loop": "repeats.loops.loop_rate",
}
"""Of all graders; those in use have at most five."""


def bfcl(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack: recorded verdicts where there are score files, BFCL's rules and F1 where a file has none.

    Results of turns, which the rules would have to execute, have F1 alone; results with neither scores nor possible
    answers get what needs no reference.
    """
    graders = _graders(inputs)
    return {
        "graders": graders,
        "outcome": next(iter(graders)),
        "headline": {
            "figures": {label: path for label, path in _FIGURES.items() if path.partition(".")[0] in graders},
        },
    }


def _graders(inputs: Inputs | None) -> dict[str, dict[str, str]]:
    try:
        index = Bfcl().index(inputs) if inputs is not None else None
    except DataError:  # the reader will say so
        index = None
    if inputs is None or index is None:
        return {**_VERDICTS, **_RULES, **_CALLS}
    categories = _categories(inputs, index)
    scored, files = len(index.side.scores), len(categories)
    if index.form == "result" and not scored and not index.side.answers and not _called(categories):
        return dict(_FREE)
    if scored == files:
        return dict(_VERDICTS)
    rules = _RULES if _called(categories) or (index.side.questions and not all(map(_turns, categories))) else {}
    return {**(_VERDICTS if scored else {}), **rules, **_CALLS}


def _categories(inputs: Inputs, index: Index) -> list[str]:
    paths = {given.name: given.path for given in inputs.data}
    files = (Path(paths[given], name) for given, names in index.files.items() for name in names)
    return [category_of(path) or "" for path in files]


def _called(categories: list[str]) -> bool:
    """Return whether a category is of (ir)relevance, where the name alone says whether a call is right."""
    return any("relevance" in category for category in categories)


def _turns(category: str) -> bool:
    """Return whether a category is of several turns, or of questions answered in words."""
    return category.startswith(("multi_turn", "memory", "web_search"))
