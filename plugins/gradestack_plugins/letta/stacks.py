"""The default metric stack of letta-evals results."""

from __future__ import annotations

from typing import Any


def letta() -> dict[str, Any]:
    """Return the stack: the grade each result carries. Further metrics need one ``recorded`` grader each.

    The console prints the results block of letta-evals' guide.
    """
    return {
        "graders": {"recorded": {"kind": "recorded"}},
        "outcome": "recorded",
        "headline": {"letta": True},
    }
