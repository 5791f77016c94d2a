"""The default metric stack of letta-evals results."""

from __future__ import annotations

from typing import Any

from gradestack import DataError, Inputs
from gradestack_plugins.letta.recordings import gates_of, metrics_of


def letta(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack: a grader for each recorded metric, by its name, and the gate the recording went by.

    A recording that names no metric has one grade, ``recorded``.

    Args:
        inputs: The recordings.
    """
    try:
        metrics = metrics_of(inputs) if inputs is not None else []
    except DataError:  # the reader will say so
        metrics = []
    if inputs is None or not metrics:
        return {"graders": {"recorded": {"kind": "recorded"}}}
    gates, warnings = gates_of(inputs, metrics)
    graders = {name: {"kind": "recorded", **({"metric": name} if len(metrics) > 1 else {})} for name in metrics}
    return {"graders": graders, **gates, "warnings": warnings}
