"""Figures of aggregators, found by their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gradestack.errors import ConfigError, hint_of
from gradestack.jsonio.values import as_map
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
    """Why it has no value: the entry ``NAME_reason`` beside it."""
    interval: Any = None
    """The entry ``NAME_interval`` beside it, or its own in that of the map it is in."""


def split_key(path: str, keys: Iterable[str]) -> tuple[str, str]:
    """Return the longest key that a path begins with, and the rest; keys may hold dots."""
    fitting = [key for key in keys if f"{path}.".startswith(f"{key}.")]
    key = max(fitting, key=len, default="")
    return key, path[len(key) + 1 :] if key else ""


def split_path(path: str, metrics: Mapping[str, Iterable[str]]) -> tuple[str, str, str]:
    """Return grader, aggregator and the rest of ``GRADER.AGGREGATOR[.FIGURE]``.

    "" for a key there is none of.
    """
    grader, below = split_key(path, metrics)
    keys = metrics.get(grader, ())
    return grader, *split_key(below, keys)


def figure_at(made: JSON, path: str, names: Iterable[str], at: str) -> Located:
    """Find the figure at a path below an aggregator.

    Args:
        made: What the aggregator computed.
        path: The path below it.
        names: Names of the aggregator. A figure of such a name may be left out of the path:
            ``pass_hat_k.4`` is ``pass_hat_k.pass_hat_k.4``.
        at: The path of the aggregator, for messages.

    Raises:
        NoFigure: There is none.
    """
    computed = as_map(made)
    if computed and not split_key(path, computed)[0]:
        inner = next((name for name in names if name in computed), "")
        path = ".".join(filter(None, (inner, path)))
    value, rest, reason, interval = made, path, None, None
    while rest:
        step, _, _ = rest.partition(".")
        if isinstance(value, list):
            value = {str(position): item for position, item in enumerate(value)}
        if not isinstance(value, Mapping):
            raise NoFigure(f"no figure {step!r} in {at}, which has none")
        name, rest = split_key(rest, value)
        if not name:
            raise NoFigure(f"no figure {step!r} in {at}{hint_of(step, map(str, value))}")
        interval = value.get(f"{name}_interval", as_map(interval).get(name))
        reason = value.get(f"{name}_reason")
        value = value[name]
        at = f"{at}.{name}"
    return Located(value, path, reason, interval)


def number_at(made: JSON, path: str, names: Iterable[str], at: str) -> Located:
    """Find the number at a path as ``figure_at`` does; its value is None where it is not defined.

    An interval of another form than ours is left out.
    """
    figure = figure_at(made, path, names, at)
    value = figure.value
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        problem = "is no number"
        if isinstance(value, Mapping):
            problem = f"holds {', '.join(map(str, value))}: name one of them"
        shown = ".".join(filter(None, (at, figure.path)))
        raise NoFigure(f"{shown} {problem}")
    keys = as_map(figure.interval).keys()
    is_ours = "reason" in keys or {"low", "clusters", "method"} <= keys
    if is_ours:
        return figure
    return figure._replace(interval=None)
