"""What a run is summed up by: its successes, and the figures its headline names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gradestack.gates.paths import NoFigure, figure_at
from gradestack.gates.scores import verdict_text
from gradestack.jsonio.values import as_map, as_text, is_number
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
    place = None
    with suppress(NoFigure):
        place = figure_at(metrics, figure.name, (figure.metric,), "")
    if place is None or not place.path or not _shown(place.value):
        why = as_text(metrics.get("error")) or f"{figure.metric} has no figure {figure.name or figure.metric!r}"
        return {"value": None, "reason": why}
    interval = {"interval": dict(place.interval)} if isinstance(place.interval, Mapping) else {}
    if place.value is not None:
        return {"value": place.value, **interval}
    told = as_map(metrics.get("undefined")).get(place.path)
    return {"value": None, **interval, "reason": as_text(place.reason) or as_text(told) or "not defined"}


def _shown(value: Any) -> bool:
    """Return whether a value is a figure: a number, nothing, or a map of such figures."""
    if isinstance(value, Mapping):
        return bool(value) and all(each is None or is_number(each) for each in value.values())
    return value is None or is_number(value)
