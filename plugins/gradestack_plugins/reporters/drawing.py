"""Blocks of panels as they are drawn."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

import attrs

from gradestack import blocks as given
from gradestack.jsonio import as_number
from gradestack_plugins.reporters import blocks, charts
from gradestack_plugins.reporters.estimate_rows import scale_of
from gradestack_plugins.reporters.findings import Bar, Opposed
from gradestack_plugins.reporters.graphs import GraphPair, Nodes, pair_of, single_of
from gradestack_plugins.reporters.text import brief, number

_MOST_ROWS, _MOST_COLUMNS, _MOST_BARS, _LONGEST = 200, 60, 60, 4000
_NAME = 120


@attrs.frozen
class Estimate:
    """One figure on an axis.

    Attributes:
        title: Its name.
        note: What it is made of, or why it is undefined.
        value: In short; "n/a" where undefined.
        interval: Both ends, "" without any.
        at: Its place in percent of the axis; None off the axis, like both ends.
        low: The lower end.
        high: The upper end.
    """

    title: str
    note: str
    value: str
    interval: str
    at: float | None
    low: float | None
    high: float | None
    unit: ClassVar[str] = ""


@attrs.frozen
class Estimates:
    """Figures with intervals on one axis."""

    kind: ClassVar[str] = "estimates"
    title: str
    rows: tuple[Estimate, ...]
    ticks: tuple[str, ...]


@attrs.frozen
class Graphs:
    """A graph, or an expected one beside the one that was made."""

    kind: ClassVar[str] = "graphs"
    title: str
    pair: GraphPair
    alone: bool


@attrs.frozen
class Opposite:
    """Two distributions back to back."""

    kind: ClassVar[str] = "opposite"
    title: str
    chart: Opposed


@attrs.frozen
class Samples:
    """A link to the samples a filter finds."""

    kind: ClassVar[str] = "samples"
    title: ClassVar[str] = ""
    text: str
    address: str
    """``#q=…``, as the page understands it."""


@attrs.frozen
class Parts:
    """Blocks under a common heading."""

    kind: ClassVar[str] = "section"
    title: str
    blocks: tuple[Drawn, ...]
    folded: bool


Drawn = blocks.Block | Estimates | Graphs | Opposite | Samples | Parts


def drawn(block: object) -> Iterable[Drawn]:
    """Yield a block of a panel as it is drawn; a distribution over several groups is several.

    Raises:
        TypeError: It is no block.
        ValueError: Its parts do not fit together.
    """
    match block:
        case given.Figures():
            yield blocks.Figures(_title(block), tuple(map(_figure, block.figures)))
        case given.Interval():
            yield _estimates(block)
        case given.Matrix():
            yield _matrix(block)
        case given.Graph():
            yield _graphs(block)
        case given.Distribution():
            yield from _distribution(block)
        case given.Counts():
            names = [brief(name, _NAME) for name in block.counts][:_MOST_BARS]
            counts = list(block.counts.values())[:_MOST_BARS]
            yield charts.bars(_title(block), names, counts, [None] * len(counts))
        case given.Series():
            points = sorted(block.points.items())
            found = charts.series(_title(block), [("", place, _figure(each), _held(each)) for place, each in points])
            yield found or blocks.Words(_title(block), "none")
        case given.Table():
            yield _table(_title(block), block.corner, block.columns, block.rows)
        case given.Words():
            yield blocks.Words(_title(block), brief(block.text, _LONGEST))
        case given.Link():
            yield Samples(brief(block.text, _LONGEST), _address(block))
        case given.Section():
            inside = tuple(each for inner in block.blocks for each in drawn(inner))
            yield Parts(_title(block), inside, bool(block.folded))
        case _:
            msg = f"{type(block).__name__} is no block; see gradestack.blocks"
            raise TypeError(msg)


def _title(block: Any) -> str:
    return brief(block.title, _NAME)


def _shown(value: given.Value) -> str:
    """Return a value in short; what is not a finite number is undefined."""
    return number(None if isinstance(value, float) and not math.isfinite(value) else value)


def _ends(figure: given.Figure) -> tuple[float, float] | None:
    if figure.interval is None:
        return None
    low, high = figure.interval
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _interval(figure: given.Figure) -> str:
    ends = _ends(figure)
    return "" if ends is None else f"{number(ends[0])} – {number(ends[1])}"


def _figure(figure: given.Figure) -> blocks.Figure:
    text = _shown(figure.value)
    word = isinstance(figure.value, str)
    note, defined = brief(figure.note, 300), figure.value is not None
    return blocks.Figure(
        brief(figure.label, _NAME), text, interval=_interval(figure), note=note, defined=defined, plain=word
    )


def _held(figure: given.Figure) -> Mapping[str, Any]:
    """Return a figure as metrics hold it."""
    return {"value": as_number(figure.value), "interval": list(_ends(figure) or ())}


def _estimates(block: given.Interval) -> Estimates:
    if not block.low < block.high:
        msg = f"the axis of an interval block must grow, got {block.low} to {block.high}"
        raise ValueError(msg)

    def place(value: float | None) -> float | None:
        found = None if value is None else round(100 * (value - block.low) / (block.high - block.low), 2)
        return found if found is not None and 0 <= found <= 100 else None

    rows = []
    for each in block.figures[:_MOST_ROWS]:
        value, ends = as_number(each.value), _ends(each) or (None, None)
        low, high = (None if end is None else min(max(end, block.low), block.high) for end in ends)
        texts = brief(each.label, _NAME), brief(each.note, 300), _shown(each.value), _interval(each)
        rows.append(Estimate(*texts, place(value), place(low), place(high)))
    steps = (block.low + (block.high - block.low) * step / 4 for step in range(5))
    return Estimates(_title(block), tuple(rows), tuple(f"{step:g}" for step in steps))


def _matrix(block: given.Matrix) -> blocks.Table:
    whole = all(value is None or isinstance(value, int) for row in block.values for value in row)
    top = max((value for row in block.values for value in row if isinstance(value, int)), default=0) if whole else 1
    rows = [
        (brief(name, _NAME), tuple(_shaded(value, top) for value in row))
        for name, row in zip(block.rows, block.values, strict=True)
    ]
    if any(len(row) != len(block.columns) for _, row in rows):
        msg = "a row of a matrix must have as many values as there are columns"
        raise ValueError(msg)
    return _cut(_title(block), brief(block.corner, _NAME), block.columns, rows)


def _shaded(value: given.Value, top: float) -> blocks.Cell:
    if value is None:
        return blocks.Cell("")
    size = as_number(value)
    shade = charts.heat(size, top) if size is not None and 0 <= size <= top else ""
    return blocks.Cell(_shown(value), shade)


def _table(title: str, corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[given.Cell]]) -> blocks.Table:
    if any(len(row) != len(columns) for row in rows.values()):
        msg = "a row of a table must have as many values as there are columns"
        raise ValueError(msg)
    cells = [(brief(name, _NAME), tuple(map(_cell, row))) for name, row in rows.items()]
    return _cut(title, brief(corner, _NAME), columns, cells)


def _cell(value: given.Cell) -> blocks.Cell:
    """Return a cell of a table; of a figure it is the value alone that words stand for."""
    match value:
        case given.Figure():
            at, low, high = map(scale_of, (as_number(value.value), *(_ends(value) or (None, None))))
            on_axis = at is not None or value.value is None
            dot = blocks.Dot(at, low, high) if on_axis else None
            return blocks.Cell(_shown(value.value), interval=_interval(value), dot=dot)
        case given.Link():
            return blocks.Cell(brief(value.text, _NAME), address=_address(value))
        case str():
            return blocks.Cell(brief(value, _LONGEST))
        case _:
            return blocks.Cell(_shown(value))


def _cut(
    title: str, corner: str, columns: Sequence[str], rows: Sequence[tuple[str, tuple[blocks.Cell, ...]]]
) -> blocks.Table:
    names = tuple(brief(name, _NAME) for name in columns[:_MOST_COLUMNS])
    kept = tuple((name, cells[:_MOST_COLUMNS]) for name, cells in rows[:_MOST_ROWS])
    return blocks.Table(title, corner, names, kept, len(rows) - len(kept), place="")


def _distribution(block: given.Distribution) -> Iterable[Drawn]:
    if len(block.edges) < 2 or any(low >= high for low, high in itertools.pairwise(block.edges)):
        msg = "edges of a distribution must grow, and there must be two at least"
        raise ValueError(msg)
    counts = [_counts(values, block.edges) for values in block.groups.values()]
    names = [brief(name, _NAME) for name in block.groups]
    below, above = any(each[0] for each in counts), any(each[-1] for each in counts)
    labels = [charts.span(low, high) for low, high in itertools.pairwise(block.edges)] + [charts.edge(block.edges[-1])]
    labels = [*([f"< {charts.edge(block.edges[0])}"] * below), *labels, *([f"> {labels[-1]}"] * above)]
    kept = [each[1 - below : len(each) - 1 + above] for each in counts]
    if len(kept) == 2:
        yield Opposite(_title(block), _opposed(_title(block), names, labels, kept))
        return
    for name, each in zip(names, kept, strict=True):
        yield charts.bars(f"{_title(block)}: {name}" if block.title else name, labels, each, [None] * len(each))


def _counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Return how many values lie below the first edge, in each bin, and above the last edge."""
    found = [0] * (len(edges) + 2)
    for value in filter(math.isfinite, values):
        found[len(edges) + (value > edges[-1]) if value >= edges[-1] else bisect_right(edges, value)] += 1
    return found


def _opposed(title: str, names: Sequence[str], labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Opposed:
    left, right = counts
    top = max(*left, *right, 1)
    bars = (
        Bar(label, a, b, round(100 * a / top, 2), round(100 * b / top, 2))
        for label, a, b in zip(labels, left, right, strict=True)
    )
    return Opposed(title or "value", names[0], names[1], tuple(bars))


def _graphs(block: given.Graph) -> Drawn:
    nodes, made = _nodes(block.nodes), None if block.made is None else _nodes(block.made)
    if not nodes:
        return blocks.Words(_title(block), "none")
    pair = single_of(nodes) if made is None else pair_of(nodes, made or None)
    return Graphs(_title(block), pair, alone=made is None)


def _nodes(nodes: Sequence[given.Node]) -> Nodes:
    names = {node.name for node in nodes}
    if len(names) < len(nodes):
        msg = "two nodes of a graph have one name"
        raise ValueError(msg)
    return {
        node.name: (tuple(map(str, node.lines)), tuple(dict.fromkeys(each for each in node.after if each in names)))
        for node in nodes
    }


def _address(link: given.Link) -> str:
    if link.position is not None:
        return f"#s{link.position + 1}"
    held = {"sample": link.sample, "q": link.search, "model": link.model, "reason": "|".join(link.reason or ())}
    return f"#{urlencode({key: value for key, value in held.items() if value})}" if any(held.values()) else ""
