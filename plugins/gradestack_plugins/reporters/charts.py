"""Geometry of the charts, in percent of the plot, so that pages can draw them at any width without a script."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gradestack import ScoreBins
from gradestack.jsonio import as_map, as_number
from gradestack_plugins.reporters.blocks import Bar, Figure, Histogram, Point, Series
from gradestack_plugins.reporters.estimates import amount, interval
from gradestack_plugins.reporters.index import shade
from gradestack_plugins.reporters.text import brief, number, percent

_MOST_BARS = 60
_MOST_POINTS = 200
_BIN_NAME = re.compile(r"[\[(]?\s*(\d+(?:\.\d+)?)(?:\s*[-–,]\s*(\d+(?:\.\d+)?))?\s*[\])]?")


def heat(value: float, top: float) -> str:
    """Return the CSS class of a count: ``h0`` for none, ``h1`` … ``h8`` by its share of the largest."""
    return f"h{math.ceil(8 * value / top)}" if value > 0 and top > 0 else "h0"


def edge(value: float) -> str:
    """Return a bin edge in short: ``0.2``, ``1``."""
    return f"{value:g}"


def span(lower: Any, upper: Any, *, last: bool = False) -> str:
    """Return a bin as people write it: ``0.2–0.4``, ``1`` for a bin of one value, ``≥ 0.9`` without an end."""
    low, high = as_number(lower), as_number(upper)
    if low is None:
        return "?" if high is None else f"< {edge(high)}"
    if high is None:
        return f"≥ {edge(low)}"
    return edge(low) if low == high else f"[{edge(low)},\u00a0{edge(high)}{']' if last else ')'}"


def histogram(heading: str, bins: Sequence[Any]) -> Histogram | None:
    """Return a list of ``{lower, upper, count}`` or ``{bin, count}`` as a histogram; None for other lists."""
    if not all(isinstance(item, Mapping) and ("bin" in item or edges_of(item)) for item in bins):
        return None
    counts = [count for item in bins if isinstance(count := item.get("count"), int) and count >= 0]
    if len(bins) > _MOST_BARS or len(counts) != len(bins):
        return None
    last = len(bins) - 1
    labels = [_bin_label(item, last=place == last) for place, item in enumerate(bins)]
    return bars(heading, labels, counts, [_bin_start(item) for item in bins], scores=True)


def edges_of(item: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Return the two ends of a bin or band, None when it has none; the upper one may be unknown."""
    for low, high in (("lower", "upper"), ("low", "high"), ("from", "to")):
        if high in item or as_number(item.get(low)) is not None:
            return item.get(low), item.get(high)
    return None


def _bin_edges(item: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Return the ends of a bin, read from its name where it has only that."""
    match = _BIN_NAME.fullmatch(str(item.get("bin")))
    if match is None:
        return edges_of(item)
    return float(match[1]), float(match[2] or match[1])


def _bin_label(item: Mapping[str, Any], *, last: bool) -> str:
    edges = _bin_edges(item)
    return span(*edges, last=last) if edges else brief(item["bin"], 30)


def _bin_start(item: Mapping[str, Any]) -> float | None:
    edges = _bin_edges(item)
    return as_number(edges[0]) if edges else None


def counts_over(heading: str, entries: Sequence[tuple[str, int, Figure, Any]]) -> Histogram | None:
    """Return counts over a number (how many tasks were solved 0, 1, 2 … times) as a histogram; None for others."""
    counts = [value for *_, value in entries if isinstance(value, int) and value >= 0]
    if not entries or len(counts) != len(entries) or len(entries) > _MOST_BARS:
        return None
    return bars(heading, [str(place) for _, place, *_ in entries], counts, [None] * len(counts))


def bars(
    heading: str, labels: Sequence[str], counts: Sequence[int], lows: Sequence[float | None], *, scores: bool = False
) -> Histogram:
    """Return a histogram from labels, counts and lower edges."""
    top, total = max(counts, default=0), sum(counts)
    return Histogram(
        heading,
        tuple(
            Bar(
                label,
                count,
                percent(count, total),
                round(100 * count / top, 2) if top else 0.0,
                shade(low) if low is not None and 0 <= low <= 1 else "none",
            )
            for label, count, low in zip(labels, counts, lows, strict=True)
        ),
        scores,
    )


def distribution(heading: str, scores: ScoreBins) -> Histogram:
    """Return the histogram of a grader's scores: five bins of width 0.2 and exactly 1, plus what lies outside."""
    labels = [span(low, high) for low, high in itertools.pairwise(scores.edges)] + ["1"]
    counts, lows = list(scores.counts), list(scores.edges)
    if scores.below:
        labels, counts, lows = ["< 0", *labels], [scores.below, *counts], [0.0, *lows]
    if scores.above:
        labels, counts, lows = [*labels, "> 1"], [*counts, scores.above], [*lows, 1.0]
    return bars(heading, labels, counts, lows, scores=True)


def series(heading: str, entries: Sequence[tuple[str, int, Figure, Any]]) -> Series | None:
    """Return figures over a number as a series; None when there are none or too many."""
    if not entries or len(entries) > _MOST_POINTS:
        return None
    found = []
    for _, place, item, value in entries:
        found.append((place, item, amount(value), *interval(as_map(value))))
    known = [end for _, _, *ends in found for end in ends if end is not None]
    bottom, top = min([0.0, *known]), max(known, default=1.0)
    top = 1.0 if bottom == 0 and 0.5 < top <= 1 else _round_up(top, bottom)
    first, last = found[0][0], found[-1][0]

    def height(value: float | None) -> float | None:
        return None if value is None else round(100 * (top - value) / (top - bottom), 2)

    points = tuple(
        Point(
            str(place),
            item.value,
            item.interval,
            round(100 * (place - first) / (last - first), 2) if last > first else 50.0,
            height(value),
            height(low),
            height(high),
        )
        for place, item, value, low, high in found
    )
    ticks = tuple((float(at), number(top - (top - bottom) * at / 100)) for at in (0, 50, 100))
    return Series(heading, entries[0][0] or heading, points, ticks)


def _round_up(top: float, bottom: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten, so that the axis ends on a round number."""
    if top <= bottom:
        return bottom + 1.0
    power = 10.0 ** math.floor(math.log10(max(top, -bottom)))
    steps = (power * step for step in (1, 2, 3, 4, 5, 6, 8, 10))
    return next((step for step in steps if step >= top), power * 10) if top > 0 else 0.0
