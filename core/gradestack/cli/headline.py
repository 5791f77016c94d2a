"""The results block of the console: what a run is summed up by, then the states by grader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradestack.declared import Declarations, which_is_better, with_unit
from gradestack.report import Report

_MOST_IN_A_ROW = 8
"""Figures of a map, such as pass^k by k, that are printed; of more, the first and the last are."""
_BANDS = ((1.0, "perfect"), (0.8, "very good"), (0.6, "good"), (0.4, "acceptable"), (0.2, "poor"), (0.0, "failed"))
"""Score bands of letta-evals' guide; the lower bound belongs to the band."""


def number(value: Any) -> str:
    """Return an average with two digits; n/a for none."""
    return "n/a" if value is None else f"{value:.2f}"


def block(report: Report) -> Iterator[str]:
    """Yield the lines of the results block.

    Suites of letta-evals, and the profile ``upstream``, have the block of its guide; all others what their headline
    declares. Summaries of earlier versions have none.
    """
    found = report.summary.get("headline")
    letta = found is None or found["letta"]
    yield "Results:"
    if letta or report.header.get("profile") == "upstream":
        yield from _letta(report, bands=letta and found is not None)
    if found is not None and not letta:
        yield from _outcome(report.summary["outcome"])
        yield from _figures(found["figures"], Declarations(report.header))


def _letta(report: Report, *, bands: bool) -> Iterator[str]:
    metrics = report.metrics
    attempted, passed, average = metrics["total_attempted"], metrics["passed_attempts"], metrics["avg_score_attempted"]
    yield f"  Total samples: {metrics['total']}"
    yield f"  Attempted: {attempted}"
    yield f"  Avg score: {number(metrics['avg_score_total'])} (attempted: {number(average)})"
    yield f"  Passed: {passed}{f' ({100 * passed / attempted:.1f}%)' if attempted else ''}"
    if rule := report.summary.get("pass_rule"):
        yield f"  Passed means: {rule}, of {attempted} attempted"
    if bands and average is not None:
        word = next((name for bound, name in _BANDS if average >= bound), _BANDS[-1][1])
        yield f"  Score band: {word} (an interpretation)"


def _outcome(outcome: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield how many samples are a success, of how many, and by which rule."""
    if outcome is None:
        return
    word = outcome["words"]["passed"]
    yield f"  {word[:1].upper()}{word[1:]}: {share(outcome)}; rule: {outcome['rule']}"


def share(counts: Mapping[str, Any]) -> str:
    """Return ``31 of 52 (59.6%; 95% interval 44.7 to 73.0%)``; without a percentage of nothing.

    Args:
        counts: How many ``passed`` and ``failed``, and, except in earlier versions, the ``share_interval``.
    """
    passed = counts["passed"]
    of, interval = passed + counts["failed"], counts.get("share_interval") or {}
    if interval.get("low") is not None:
        ends = f"{100 * interval['low']:.1f} to {100 * interval['high']:.1f}%"
        sure = f"; {100 * interval['confidence']:.6g}% interval {ends}"
    else:
        sure = f"; no interval: {interval['reason']}" if interval.get("reason") else ""
    return f"{passed} of {of}{f' ({100 * passed / of:.1f}%{sure})' if of else ''}"


def _figures(figures: list[Mapping[str, Any]], declared: Declarations) -> Iterator[str]:
    for figure in figures:
        models = {name or "unnamed": each for name, each in figure.get("models", {}).items()}
        meaning = declared.at(figure["figure"])
        unit, better = ("", "") if meaning is None else (meaning.unit, which_is_better(meaning.better))
        note = f", {better}" if better else ""
        if models:
            yield f"  {figure['label']}{note}:"
            width = max(map(len, models))
            yield from (f"    {name:<{width}}  {_estimate(each, unit)}" for name, each in models.items())
        else:
            yield f"  {figure['label']}: {_estimate(figure, unit)}{note}"


def _estimate(figure: Mapping[str, Any], unit: str) -> str:
    """Return a figure with its unit, its interval and that one's confidence; n/a with the reason where undefined."""
    value, interval = figure["value"], figure.get("interval") or {}
    if value is None:
        return f"n/a ({figure['reason']})"
    if isinstance(value, Mapping):
        return _row(value, interval)
    return f"{with_unit(_figure(value), unit)}{_interval(interval, whole=True)}"


def _row(values: Mapping[str, Any], intervals: Mapping[str, Any]) -> str:
    shown = [f"{key}: {_figure(value)}{_interval(intervals.get(key) or {})}" for key, value in values.items()]
    if len(shown) > _MOST_IN_A_ROW:
        shown = [shown[0], "…", shown[-1]]
    return ", ".join(shown)


def _figure(value: Any) -> str:
    return "n/a" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"


def _interval(interval: Mapping[str, Any], *, whole: bool = False) -> str:
    """Return an interval, ``whole`` with its method and what it is of; why there is none where it says so."""
    if interval.get("low") is None or interval.get("high") is None:
        reason = interval.get("reason")
        return f" (no interval: {reason})" if whole and reason else ""
    confidence = interval.get("confidence")
    named = f"{100 * confidence:.6g}% interval " if confidence is not None else "interval of unknown confidence "
    known = f"; {_words(interval)}" if whole and "method" in interval else ""
    return f" ({named}{interval['low']:.3f} to {interval['high']:.3f}{known})"


def _words(interval: Mapping[str, Any]) -> str:
    """Return method and extent: ``logit t, 50 tasks x 4``; the number of samples where tasks have not equally many."""
    n, tasks = interval["n"], interval["clusters"]
    times = f" x {n // tasks}" if n > tasks and n % tasks == 0 else "" if n == tasks else f", n = {n}"
    return f"{interval['method'].replace('_', ' ')}, {tasks} tasks{times}"
