"""Gates as pages show them: rule, verdict, and the figure compared beside its threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.exact import visible
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.reporters.grouping import uncertainty
from gradestack_plugins.reporters.text import brief, number


@attrs.frozen
class Gate:
    """One gate line."""

    text: str
    outcome: str
    """``passed``, ``failed`` or ``no_data``."""
    passed: bool
    actual: str
    note: str
    """What the actual value leaves out, or why there is none."""
    at: float | None
    """Actual value in percent of the scale, None off the scale."""
    threshold: float | None
    low: float | None = None
    """Ends of the interval of what it compares, in percent of the scale."""
    high: float | None = None
    interval: str = ""


def gate_of(gate: Mapping[str, Any], metrics: Mapping[str, Any]) -> Gate:
    """Return one gate of a summary.

    Args:
        gate: The gate.
        metrics: The summary's metrics, which may have an interval for what it compares.
    """
    scale = 100.0 if gate.get("metric") in _PERCENT else 1.0
    actual, value = as_number(gate.get("actual")), as_number(gate.get("value"))
    passed, of_samples = gate.get("passed") is True, isinstance(gate.get("actual"), int)
    aggregates = as_map(as_map(metrics.get("aggregates")).get(as_text(gate.get("metric_key"))))
    low, high, _, text = uncertainty(aggregates, actual / scale if actual is not None and not of_samples else None)
    return Gate(
        text=brief(gate.get("text") or "gate", 200),
        outcome=as_text(gate.get("outcome")) or ("passed" if passed else "failed"),
        passed=passed,
        actual=_actual(gate),
        note=_note(gate),
        at=None if of_samples else share_of(actual, scale),
        threshold=None if of_samples else share_of(value, scale),
        low=share_of(low),
        high=share_of(high),
        interval=text,
    )


_PERCENT = ("accuracy", "pass_rate")


def _actual(gate: Mapping[str, Any]) -> str:
    """Return the figure a gate compared with enough digits to see its verdict, or those of its conditions."""
    parts = [_actual(as_map(part)) for part in as_list(gate.get("conditions"))]
    if parts:
        return brief(f" {as_text(gate.get('operator'))} ".join(parts), 200)
    actual, value = as_number(gate.get("actual")), as_number(gate.get("value"))
    if actual is None or value is None or isinstance(gate.get("actual"), int):
        return number(gate.get("actual"))
    if gate.get("metric") == "failed_share":
        actual, value = 100 * actual, 100 * value
    elif gate.get("metric") not in _PERCENT:
        return visible(actual, value, 3)
    return f"{visible(actual, value, 1)}%"


def _note(gate: Mapping[str, Any]) -> str:
    counted, of = gate.get("counted"), gate.get("of")
    if gate.get("reason"):
        return brief(as_text(gate["reason"]), 300)
    if gate.get("kind") == "max_failed":
        lost = as_count(gate.get("failed")) + as_count(gate.get("missing"))
        return brief(f"{lost} of {as_count(of)} for {as_text(gate.get('grader'))}", 200)
    if isinstance(counted, int) and isinstance(of, int) and counted < of:
        return f"{of - counted} of {of} failed or missing"
    return "nothing was graded" if gate.get("outcome") == "no_data" else ""


def share_of(value: float | None, scale: float = 1.0) -> float | None:
    """Return a value in percent of a scale that begins at 0, None off the scale."""
    return round(100 * value / scale, 2) if value is not None and 0 <= value <= scale else None
