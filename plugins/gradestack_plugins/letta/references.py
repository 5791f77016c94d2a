"""Inputs, references and facets as letta-evals datasets and results write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack import JSON, Expectation
from gradestack.jsonio import compact

VARIABLES = ("agent_args", "rubric_vars", "extra_vars")
"""Objects of variables, which may also stand under ``metadata``; they are no facets."""


def as_text(value: JSON) -> str:
    """Return text as it is and any other value as JSON."""
    return value if isinstance(value, str) else compact(value)


def input_of(value: JSON) -> str | tuple[str, ...] | None:
    """Return what the user asked: one text, or one per turn."""
    if isinstance(value, list):
        return tuple(map(as_text, value))
    return None if value is None else as_text(value)


def truth_of(value: JSON, *, turns: bool) -> str | tuple[str, ...] | None:
    """Return a reference: text as it is, a list of texts (of anything, with several turns) as one each, else JSON text.

    Args:
        value: ``ground_truth`` as recorded.
        turns: Whether the input is a list of user turns.
    """
    if value is None or value == []:
        return None
    if isinstance(value, list) and (turns or all(isinstance(item, str) for item in value)):
        return tuple(map(as_text, value))
    return as_text(value)


def expectation(truth: str | tuple[str, ...] | None) -> Expectation:
    """Return the reference as expected text, and as expected label where it is one text."""
    return Expectation(text=truth, label=truth if isinstance(truth, str) else None)


def facets_of(record: Mapping[str, Any]) -> dict[str, JSON]:
    """Return what samples may be grouped and chosen by: the entries of ``metadata``, and ``tags``."""
    metadata = record.get("metadata")
    found = dict(metadata) if isinstance(metadata, dict) else {}
    for name in VARIABLES:
        found.pop(name, None)
    if (tags := record.get("tags")) is not None:
        found["tags"] = tags
    return found
