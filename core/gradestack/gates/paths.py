"""Figures by dotted path: ``reward.pass_hat_k.4`` among what the aggregators of a run computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gradestack.errors import ConfigError, suggest
from gradestack.model import JSON

Aggregates = Mapping[str, Mapping[str, JSON]]
"""Grader key -> metric key -> what that aggregator computed."""


class NoFigure(ConfigError):
    """There is no figure at a path; the text says where it ends and what is nearest."""


class Located(NamedTuple):
    """A figure among those of an aggregator."""

    value: Any
    path: str
    """The whole path below the aggregator."""
    reason: Any = None
    interval: Any = None
    """What stands beside it under ``NAME_interval``, or for it in that of the map it is in; for a mean in ``ci95``."""


def _first_key(text: str, keys: Iterable[str]) -> tuple[str, str]:
    """Return the longest key that a path begins with, and what is left of the path; keys may hold dots."""
    key = max((key for key in keys if text == key or text.startswith(f"{key}.")), key=len, default="")
    return key, text[len(key) + 1 :] if key else ""


def split_path(path: str, metrics: Mapping[str, Iterable[str]]) -> tuple[str, str, str]:
    """Return grader, aggregator and the rest of ``GRADER.AGGREGATOR[.FIGURE]``; "" for a key there is none of."""
    grader, rest = _first_key(path, metrics)
    return grader, *_first_key(rest, metrics.get(grader, ()))


def figure_at(made: JSON, path: str, own: Iterable[str], at: str) -> Located:
    """Return the figure at a path below the aggregator at ``at``, given what that computed and what it is called.

    A figure of such a name need not be named: ``pass_hat_k.4`` is ``pass_hat_k.pass_hat_k.4``.
    """
    if isinstance(made, Mapping) and not (path and _first_key(path, made)[0]):
        inner = next((name for name in own if name in made), "")
        path = f"{inner}.{path}" if inner and path else inner or path
    value, beside, rest, reason, interval = made, made, path, None, None
    while rest:
        if not isinstance(value, Mapping):
            raise NoFigure(f"no figure {rest.partition('.')[0]!r} in {at}, which has none")
        beside = value
        name, left = _first_key(rest, value)
        if not name:
            step = rest.partition(".")[0]
            hint = suggest(step, value) or f"; there are: {', '.join(map(str, value)) or 'none'}"
            raise NoFigure(f"no figure {step!r} in {at}{hint}")
        within: Any = interval.get(name) if isinstance(interval, Mapping) else None
        interval = beside.get(f"{name}_interval", within)
        if interval is None and name == "mean" and isinstance(ends := beside.get("ci95"), list | tuple):
            interval = {"low": ends[0], "high": ends[1], "confidence": 0.95}
        value, rest, at, reason = beside[name], left, f"{at}.{name}", beside.get(f"{name}_reason")
    return Located(value, path, reason, interval)


def number_at(made: JSON, path: str, own: Iterable[str], at: str) -> tuple[float | None, Any]:
    """Return the number at such a path, None where it is not defined, and its interval."""
    found = figure_at(made, path, own, at)
    value, interval = found.value, found.interval
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        what = f"holds {', '.join(map(str, value))}: name one of them" if isinstance(value, Mapping) else "is no number"
        raise NoFigure(f"{at}{'.' * bool(found.path)}{found.path} {what}")
    known = isinstance(interval, Mapping) and ("reason" in interval or {"low", "clusters", "method"} <= interval.keys())
    return value, interval if known else None
