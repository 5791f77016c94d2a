"""Figures by path: ``reward.pass_hat_k.4`` among what the aggregators of a run computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gradestack.errors import suggest
from gradestack.estimates.interval import Interval
from gradestack.model import JSON

Aggregates = Mapping[str, Mapping[str, JSON]]
"""Grader key -> metric key -> what that aggregator computed."""


class NoFigure(Exception):
    """There is no number at a path; the text says where it ends and what is nearest."""


def figure_at(aggregates: Aggregates, path: Sequence[str], component: str = "") -> float | None:
    """Return the figure at a path.

    A figure named as its metric is reached without naming it twice: ``reward.mean`` is ``reward.mean.mean``.

    Returns:
        A number; None where the figure is not defined.
    """
    found: JSON = aggregates[path[0]][path[1]]
    at = list(path[:2])
    for step in _below(found, path, component):
        found = _entered(found, step, ".".join(at))
        at.append(step)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        what = f"holds {', '.join(map(str, found))}: name one of them" if isinstance(found, Mapping) else "is no number"
        msg = f"{'.'.join(at)} {what}"
        raise NoFigure(msg)
    return found


def _below(found: JSON, path: Sequence[str], component: str) -> list[str]:
    """Return the keys below a metric, with that of a figure named as the metric where it is left out."""
    _, metric, *below = path
    inner = next((name for name in (metric, component) if isinstance(found, Mapping) and name in found), None)
    if inner is not None and isinstance(found, Mapping) and (not below or below[0] not in found):
        below.insert(0, inner)
    return below


def beside(aggregates: Aggregates, path: Sequence[str], component: str = "") -> Interval | None:
    """Return the interval of the figure at a path: the one beside it, or beside the map it is in; None without one."""
    found: Any = aggregates[path[0]][path[1]]
    interval: Any = None
    for step in _below(found, path, component):
        if not isinstance(found, Mapping) or step not in found:
            return None
        within = interval.get(step) if isinstance(interval, Mapping) else None
        interval, found = found.get(f"{step}_interval", within), found[step]
    usable = isinstance(interval, Mapping) and (
        "reason" in interval or {"low", "clusters", "method"} <= interval.keys()
    )
    return cast("Interval", interval) if usable else None


def _entered(found: JSON, step: str, at: str) -> JSON:
    if isinstance(found, Mapping):
        if step in found:
            return found[step]
        hint = suggest(step, found) or f"; there are: {', '.join(map(str, found)) or 'none'}"
    else:
        hint = ", which has none"
    msg = f"no figure {step!r} in {at}{hint}"
    raise NoFigure(msg)
