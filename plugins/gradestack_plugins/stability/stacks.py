"""The default metric stack."""

from __future__ import annotations

from typing import Any


def stability() -> dict[str, Any]:
    """Return the stack; the grader brings its aggregators: mean and stability."""
    return {"graders": {"label": {"kind": "stability_label"}}}
