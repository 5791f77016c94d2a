"""Gates as pages show them: rule, verdict, and the figure compared beside its threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.exact import visible
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.reporters.estimates import interval, interval_text
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
    """Whether the verdict is not sure, what the actual value leaves out, or why there is none."""
    at: float | None
    """Actual value in percent of the scale, None off the scale."""
    threshold: float | None
    low: float | None = None
    """Ends of the interval of what it compares, in percent of the scale."""
    high: float | None = None
    interval: str = ""


def gate_of(gate: Mapping[str, Any]) -> Gate:
    """Return one gate of a summary."""
    scale = 100.0 if gate.get("metric") in _PERCENT else 1.0
    actual, value = as_number(gate.get("actual")), as_number(gate.get("value"))
    passed, of_samples = gate.get("passed") is True, isinstance(gate.get("actual"), int)
    low, high = interval(gate)
    return Gate(
        text=brief(gate.get("text") or "gate", 200),
        outcome=as_text(gate.get("outcome")) or ("passed" if passed else "failed"),
        passed=passed,
        actual=_actual(gate),
        note="; ".join(filter(None, ("not sure" if gate.get("sure") is False else "", _note(gate)))),
        at=None if of_samples else share_of(actual, scale),
        threshold=None if of_samples else share_of(value, scale),
        low=share_of(low),
        high=share_of(high),
        interval=_interval(gate, scale),
    )


_PERCENT = ("accuracy", "pass_rate")


def _interval(gate: Mapping[str, Any], scale: float) -> str:
    """Return the interval of what a gate compares, in its own unit."""
    low, high = interval(gate)
    if low is None or high is None:
        return ""
    return interval_text({"interval": {**as_map(gate.get("interval")), "low": scale * low, "high": scale * high}})


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
    if gate.get("kind") == "baseline" and gate.get("actual") is not None:
        flips = as_map(gate.get("flips"))
        return f"{as_count(flips.get('fixed'))} runs fixed, {as_count(flips.get('broken'))} broken"
    if gate.get("kind") == "max_failed":
        lost = as_count(gate.get("failed")) + as_count(gate.get("missing"))
        return brief(f"{lost} of {as_count(of)} for {as_text(gate.get('grader'))}", 200)
    if isinstance(counted, int) and isinstance(of, int) and counted < of:
        return f"{of - counted} of {of} failed or missing"
    return "nothing was graded" if gate.get("outcome") == "no_data" else ""


def share_of(value: float | None, scale: float = 1.0) -> float | None:
    """Return a value in percent of a scale that begins at 0, None off the scale."""
    return round(100 * value / scale, 2) if value is not None and 0 <= value <= scale else None
