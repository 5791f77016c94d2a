"""What a run is summed up by: its successes, and the figures its headline names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack.gates.success import verdict_text
from gradestack.jsonio.values import as_map, as_number, as_text, is_number
from gradestack.model import JSON
from gradestack.suites.spec import Figure, Suite


def outcome(suite: Suite, successes: Mapping[str, Any] | None, models: list[str]) -> dict[str, JSON] | None:
    """Return how many samples are a success, and the interval of their share; by whose verdict, in the run's words.

    None without an outcome.
    """
    if suite.success is None or successes is None:
        return None
    words, nothing = suite.headline, {"passed": 0, "failed": 0, "share": None, "share_interval": None}
    counts = {name: successes[name] for name in nothing}
    return {
        "grader": suite.success.grader,
        "rule": verdict_text(suite.success, counts["passed"] + counts["failed"], successes["own_verdicts"]),
        "words": {"passed": words.passed, "failed": words.failed},
        **counts,
        "per_model": [{"model_name": name or None, **successes["models"].get(name, nothing)} for name in models]
        or None,
    }


def headline_figures(
    suite: Suite, aggregates: Mapping[str, Mapping[str, Any]], averages: Mapping[str, Mapping[str, JSON]]
) -> list[dict[str, JSON]]:
    """Return the figures of the headline: label, path, value, and interval or reason where there is one."""
    found = []
    for figure in suite.headline.figures:
        metrics = aggregates[figure.grader][figure.metric] if figure.metric else averages[figure.grader]
        found.append(_entry(figure, as_map(metrics)))
    return found


def _entry(figure: Figure, metrics: Mapping[str, Any]) -> dict[str, JSON]:
    found: dict[str, JSON] = {"label": figure.label, "figure": figure.path, **_estimate(figure, metrics)}
    models = {str(name): _estimate(figure, as_map(each)) for name, each in as_map(metrics.get("models")).items()}
    return {**found, "models": models} if models else found


def _estimate(figure: Figure, metrics: Mapping[str, Any]) -> dict[str, JSON]:
    """Return value, and interval or reason, of a figure of an aggregator; null where there is none of that name."""
    place = _place(metrics, figure.name, figure.metric)
    if place is None:
        why = as_text(metrics.get("error")) or f"{figure.metric} has no figure {figure.name or figure.metric!r}"
        return {"value": None, "reason": why}
    holder, name, path, interval = place
    value = holder[name]
    found: dict[str, JSON] = {"value": value}
    if interval is not None:
        found["interval"] = interval
    if value is None:
        told = as_map(metrics.get("undefined"))
        found["reason"] = as_text(holder.get(f"{name}_reason")) or as_text(told.get(path)) or "not defined"
    return found


def _place(metrics: Mapping[str, Any], rest: str, metric: str) -> tuple[Mapping[str, Any], str, str, JSON] | None:
    """Return the mapping a figure stands in, its key there, its dotted path and its interval; None for no such figure.

    Keys may have dots. What is named after its aggregator need not be named: ``pass_hat_k`` is
    ``pass_hat_k.pass_hat_k``, and ``pass_hat_k.4`` is ``pass_hat_k.pass_hat_k.4``.
    """
    for path in (rest, f"{metric}.{rest}" if rest else metric):
        holder, left, found, interval = metrics, path, None, None
        while left and isinstance(holder, Mapping):
            name = max((key for key in holder if left == key or left.startswith(f"{key}.")), key=len, default=None)
            if name is None:
                break
            found, left = (holder, name), left[len(name) + 1 :]
            beside = interval_of(holder, name)
            interval = as_map(interval).get(name) if beside is None else beside  # that of a map of figures has its own
            holder = holder[name]
        if found is not None and not left and _shown(found[0][found[1]]):
            return *found, path, interval
    return None


def _shown(value: Any) -> bool:
    """Return whether a value is a figure: a number, nothing, or a map of such figures."""
    if isinstance(value, Mapping):
        return bool(value) and all(each is None or is_number(each) for each in value.values())
    return value is None or is_number(value)


def interval_of(holder: Mapping[str, Any], name: str) -> JSON:
    """Return the interval beside a figure with its confidence, None without one.

    It stands under ``NAME_interval``, a map of figures has a map of them there; the one of ``mean`` is ``ci95``, which
    is its confidence.
    """
    given = holder.get(f"{name}_interval")
    if isinstance(given, Mapping):
        return dict(given)
    ends = holder.get("ci95") if name == "mean" else None
    if isinstance(ends, list | tuple) and len(ends) == 2 and all(as_number(end) is not None for end in ends):
        return {"low": ends[0], "high": ends[1], "confidence": 0.95}
    return None
