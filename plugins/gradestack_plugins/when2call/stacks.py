"""The default metric stack."""

from __future__ import annotations

from typing import Any


def when2call() -> dict[str, Any]:
    """Return the stack; the grader brings its aggregators: mean, classification, hallucination, when2call_counts."""
    return {"graders": {"label": {"kind": "when2call"}}}
