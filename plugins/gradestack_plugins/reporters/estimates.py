"""Numbers with their uncertainty, found in metrics by their shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack.jsonio import as_list, as_map, as_number, as_text, is_number
from gradestack_plugins.reporters.blocks import Figure
from gradestack_plugins.reporters.text import UNDEFINED, brief, natural, number, title

_FIRST = ("value", "mean", "average", "avg", "score", "accuracy", "rate", "total", "n", "count", "min", "max")
_VALUES = ("value", "mean", "average", "avg", "estimate", "point", "rate")
ERRORS = ("stderr", "standard_error", "se", "std_error", "error")
INTERVALS = ("ci95", "ci", "interval", "ci_95", "confidence_interval")
REASONS = ("reason", "why", "undefined", "note")


def order(keys: Iterable[str]) -> list[str]:
    """Return keys as shown: well-known figures first, the others in natural order."""
    return sorted(keys, key=lambda key: (_FIRST.index(key) if key in _FIRST else len(_FIRST), natural(key)))


def figure(label: str, value: Any, reason: str = "") -> Figure | None:
    """Return a value as a figure, None when it is not a single number."""
    if value is None:
        return Figure(label, UNDEFINED, note=reason, defined=False)
    if isinstance(value, bool) or is_number(value):
        return Figure(label, number(value))
    fields = as_map(value)
    name = _value_name(fields)
    if name is None or any(isinstance(item, Mapping) for key, item in fields.items() if key not in INTERVALS):
        return None
    shown = interval_text(fields)
    error = next((as_number(fields[key]) for key in ERRORS if as_number(fields.get(key)) is not None), None)
    why = next((as_text(fields[key]) for key in REASONS if as_text(fields.get(key))), reason)
    known = {name, *ERRORS, *INTERVALS, *REASONS, "ci_low", "ci_high", "low", "high", "lower", "upper", "confidence"}
    uncertain = bool(shown) or any(key in fields for key in (*ERRORS, *INTERVALS))
    if not uncertain and not (fields[name] is None and why):
        return None
    others = [key for key in order(fields.keys() - known) if _scalar(fields[key])]
    rest = [f"{title(key)[:1].lower()}{title(key)[1:]} {number(fields[key])}" for key in others]
    amount = as_number(fields[name])
    return Figure(
        label,
        UNDEFINED if amount is None else number(fields[name]),
        spread="" if error is None or amount is None else f"± {number(error)} (standard error)",
        interval=shown,
        note=brief(why) if amount is None else ", ".join(rest),
        defined=amount is not None,
    )


def interval(fields: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the ends of the interval an estimate comes with, (None, None) without one."""
    for key in INTERVALS:
        held = fields.get(key)
        if isinstance(held, Mapping):
            held = [held.get("low", held.get("lower")), held.get("high", held.get("upper"))]
        ends = [as_number(end) for end in as_list(held)]
        if len(ends) == 2 and None not in ends:
            return ends[0], ends[1]
    for low, high in (("ci_low", "ci_high"), ("low", "high"), ("lower", "upper")):
        ends = [as_number(fields.get(low)), as_number(fields.get(high))]
        if None not in ends:
            return ends[0], ends[1]
    return None, None


def interval_text(fields: Mapping[str, Any]) -> str:
    """Return the interval an estimate comes with: ``95% interval 0.54 – 0.65; logit t, 50 tasks × 4``.

    Where there is none, why it says so; "" where nothing is said.
    """
    low, high = interval(fields)
    held = as_map(fields.get("interval"))
    if low is None or high is None:
        reason = as_text(held.get("reason"))
        return f"no interval: {brief(reason, 120)}" if reason else ""
    return f"{_confidence(fields)} {number(low)} – {number(high)}{_extent(held)}"


def short_interval(fields: Mapping[str, Any]) -> str:
    """Return only the ends of the interval an estimate comes with, for tables: ``[0.54 – 0.65]``; "" without one."""
    low, high = interval(fields)
    return "" if low is None or high is None else f"[{number(low)} – {number(high)}]"


def _extent(held: Mapping[str, Any]) -> str:
    n, tasks, method = held.get("n"), held.get("clusters"), as_text(held.get("method"))
    if not isinstance(n, int) or not isinstance(tasks, int) or not method or not tasks:
        return ""
    times = f" × {n // tasks}" if n > tasks and n % tasks == 0 else "" if n == tasks else f", n = {number(n)}"
    return f"; {brief(method, 20).replace('_', ' ')}, {number(tasks)} tasks{times}"


def _confidence(fields: Mapping[str, Any]) -> str:
    if any(key in fields for key in ("ci95", "ci_95")):
        return "95% interval"
    held = [as_map(fields.get(key)).get("confidence") for key in INTERVALS]
    known = [found for each in (fields.get("confidence"), *held) if (found := as_number(each)) is not None]
    return f"{100 * known[0]:.6g}% interval" if known else "interval, confidence not given:"


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or is_number(value)


def _value_name(fields: Mapping[str, Any]) -> str | None:
    return next((name for name in _VALUES if name in fields and not as_map(fields[name])), None)


def amount(value: Any) -> float | None:
    """Return the number of a plain figure or of an estimate, None when it is undefined."""
    fields = as_map(value)
    name = _value_name(fields)
    return as_number(value if name is None else fields[name])
