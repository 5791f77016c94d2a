"""What pages draw: shapes with their geometry in percent of the plot, graphs, and how blocks of panels become these."""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, ClassVar
from urllib.parse import urlencode

import attrs

from gradestack.jsonio import as_number
from gradestack_plugins.pages import blocks as given
from gradestack_plugins.pages.index import ScoreBins, shade
from gradestack_plugins.pages.text import UNDEFINED, brief, number, percent

_MOST_NODES, _MOST_LINES, _LONGEST_LINE = 30, 6, 25
_WIDTH, _GAP, _LINE, _HEAD, _BETWEEN = 176, 34, 15, 24, 12
_SIGNS = {"same": "", "differs": "≠ ", "missing": "✗ ", "extra": "+ "}


@attrs.frozen
class Node:
    """One node: its name, what it holds, its place, and how it stands to the other graph."""

    name: str
    lines: tuple[str, ...]
    x: int
    y: int
    height: int
    status: str
    """``same``, ``differs``, ``missing`` (expected only) or ``extra`` (made only)."""


@attrs.frozen
class Edge:
    """One edge, as the curve it is drawn by."""

    curve: str
    status: str


@attrs.frozen
class Graph:
    """A graph with its layout."""

    title: str
    about: str
    """The graph in words."""
    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int


@attrs.frozen
class GraphPair:
    """What was expected, and what was made of it; None where that could not be read as a graph."""

    expected: Graph
    actual: Graph | None


Nodes = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Node -> what it holds, and what it depends on."""


def pair_of(gold: Nodes, made: Nodes | None) -> GraphPair:
    """Return two graphs side by side, each node and edge with how it stands to the other one."""
    other = _graph("Made", made, gold, "extra") if made else None
    return GraphPair(_graph("Expected", gold, made or {}, "missing"), other)


def single_of(nodes: Nodes) -> GraphPair:
    """Return a graph that is compared with none."""
    return GraphPair(_graph("Graph", nodes, nodes, "missing"), None)


def _graph(title: str, nodes: Nodes, other: Nodes, alone: str) -> Graph:
    shown = {name: nodes[name] for name in list(nodes)[:_MOST_NODES]}
    layers = _ordered(_layers(shown), shown)
    places: dict[str, tuple[int, int, int]] = {}
    for column, names in enumerate(layers):
        y = 2
        for name in names:
            height = _HEAD + _LINE * min(len(shown[name][0]), _MOST_LINES) + (8 if shown[name][0] else 0)
            places[name] = (2 + column * (_WIDTH + _GAP), y, height)
            y += height + _BETWEEN
    found = tuple(_node(name, shown[name], other, places[name], alone) for name in shown)
    edges = tuple(_edges(shown, other, places, alone))
    width = 4 + len(layers) * (_WIDTH + _GAP) - _GAP
    height = 2 + max(y + tall for _, y, tall in places.values())
    return Graph(title, _about(shown, found), width, height, found, edges, len(nodes) - len(shown))


def _node(
    name: str, held: tuple[tuple[str, ...], tuple[str, ...]], other: Nodes, place: tuple[int, int, int], alone: str
) -> Node:
    status = alone if name not in other else "same" if other[name][0] == held[0] else "differs"
    lines = [brief(line, _LONGEST_LINE) for line in held[0][:_MOST_LINES]]
    if len(held[0]) > _MOST_LINES:
        lines[-1] = f"… {len(held[0]) - _MOST_LINES + 1} more"
    x, y, height = place
    return Node(_SIGNS[status] + brief(name, _LONGEST_LINE - 3), tuple(lines), x, y, height, status)


def _edges(nodes: Nodes, other: Nodes, places: Mapping[str, tuple[int, int, int]], alone: str) -> Iterator[Edge]:
    for name, (_, before) in nodes.items():
        for source in before:
            if source in places:
                (x, y, height), (to_x, to_y, to_height) = places[source], places[name]
                x, y, to_y = x + _WIDTH, y + height // 2, to_y + to_height // 2
                bend = _GAP // 2 if to_x >= x else _GAP
                curve = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
                yield Edge(curve, "same" if name in other and source in other[name][1] else alone)


def _forward(nodes: Nodes) -> dict[str, list[str]]:
    """Return what each node depends on without the edges that lead back, so that no cycle is left."""
    found: dict[str, list[str]] = {name: [] for name in nodes}
    for name, (_, before) in nodes.items():
        for source in before:
            if source in nodes and not _reaches(found, name, source):
                found[name].append(source)
    return found


def _reaches(before: Mapping[str, Sequence[str]], target: str, start: str) -> bool:
    """Return whether a node is among those that start depends on, itself included."""
    seen, waiting = {start}, [start]
    while waiting:
        name = waiting.pop()
        if name == target:
            return True
        for each in before[name]:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return False


def _layers(nodes: Nodes) -> list[list[str]]:
    """Return nodes in layers: each one layer after the last one it depends on."""
    before = _forward(nodes)
    depth: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        depth[name] = max((depth[source] + 1 for source in before[name]), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in nodes:
        layers[depth[name]].append(name)
    return layers


def _ordered(layers: list[list[str]], nodes: Nodes) -> list[list[str]]:
    """Return layers with each node at the mean height of those it depends on."""
    height: dict[str, float] = {}
    found = []
    for names in layers:
        wanted = {
            name: sum(known) / len(known)
            if (known := [height[each] for each in nodes[name][1] if each in height])
            else 0.0
            for name in names
        }
        found.append(sorted(names, key=lambda name: wanted[name]))
        height.update({name: float(place) for place, name in enumerate(found[-1])})
    return found


def _about(nodes: Nodes, shown: Sequence[Node]) -> str:
    told = []
    for node, (lines, before) in zip(shown, nodes.values(), strict=True):
        after = f" after {', '.join(before)}" if before else ""
        state = "" if node.status == "same" else f", {node.status}"
        told.append(f"{node.name.lstrip('≠✗+ ')}{after}: {', '.join(lines) or 'nothing'}{state}")
    return brief("; ".join(told), 800)


_MOST_ROWS, _MOST_COLUMNS, _MOST_BARS, _LONGEST = 200, 60, 60, 4000
_NAME = 120
_MOST_POINTS = 200
_WORD = re.compile(rf"^(?!{UNDEFINED}|NaN|-?Infinity).*[^\W\d]{{2}}", re.DOTALL)


@attrs.frozen
class Figure:
    """One number with its name."""

    label: str
    value: str
    interval: str = ""
    """``0.54 – 0.65`` where it comes with an interval."""
    note: str = ""
    """Why it is not defined, or what it is made of."""
    defined: bool = True
    plain: bool = False
    """Whether the value is a word rather than a number."""


@attrs.frozen
class Figures:
    """Numbers side by side."""

    kind: ClassVar[str] = "figures"
    title: str
    items: tuple[Figure, ...]


@attrs.frozen
class Bar:
    """One bin of a histogram."""

    label: str
    count: int
    share: str
    height: float
    """Percent of the tallest bar."""
    shade: str
    """CSS class by the bin's lower edge, "none" where the edges are no fractions."""


@attrs.frozen
class Histogram:
    """Counts over bins."""

    kind: ClassVar[str] = "histogram"
    title: str
    bars: tuple[Bar, ...]


@attrs.frozen
class Point:
    """One point of a series."""

    label: str
    value: str
    interval: str
    x: float
    y: float | None
    """Plot coordinates in percent, y downwards; None where undefined."""
    low: float | None
    high: float | None


@attrs.frozen
class Series:
    """A figure over a numbered parameter, such as pass^k over k."""

    kind: ClassVar[str] = "series"
    title: str
    axis: str
    points: tuple[Point, ...]
    ticks: tuple[tuple[float, str], ...]
    """Position in percent and label of the y axis."""


@attrs.frozen
class Dot:
    """A figure and its interval in percent of an axis from 0 to 1; None off the axis."""

    at: float | None
    low: float | None
    high: float | None


@attrs.frozen
class Cell:
    """One cell of a matrix or table."""

    text: str
    shade: str = ""
    interval: str = ""
    dot: Dot | None = None
    """Where a figure with an interval stands on its axis."""
    address: str = ""
    """``#…``: the samples it links to."""


@attrs.frozen
class Table:
    """Named rows of values, with or without shading."""

    kind: ClassVar[str] = "table"
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    left_out: int = 0
    place: str = " in summary.json"
    """Where the rows left out are."""

    @property
    def wide(self) -> bool:
        """Whether it holds links, or figures on an axis, and takes the whole width."""
        return any(cell.dot or cell.address for _, cells in self.rows for cell in cells)

    @property
    def wordy(self) -> tuple[bool, ...]:
        """Per column whether it holds words or figures on an axis, which stand on the left, rather than numbers."""
        return tuple(
            any(cells[place].dot or _WORD.search(cells[place].text) for _, cells in self.rows)
            for place in range(len(self.columns))
        )


@attrs.frozen
class Words:
    """A text, or a list of values on one line."""

    kind: ClassVar[str] = "words"
    title: str
    text: str


@attrs.frozen
class Section:
    """Blocks under a common heading."""

    kind: ClassVar[str] = "section"
    title: str
    blocks: tuple[Drawn, ...]
    folded: bool = False


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
class BackBar:
    """One line of a back-to-back chart: a range of scores, and the samples there."""

    label: str
    left: int
    right: int
    left_width: float
    """Percent of the widest bar."""
    right_width: float


@attrs.frozen
class Opposed:
    """Scores of one grader, successes on the left, the others on the right."""

    name: str
    left: str
    right: str
    bars: tuple[BackBar, ...]


Drawn = Figures | Histogram | Series | Table | Words | Section | Estimates | Graphs | Opposite | Samples


_Point = tuple[int, Figure, float | None, float | None, float | None]


def scale_of(value: float | None, scale: float = 1.0) -> float | None:
    """Return a value in percent of a scale that begins at 0, None off the scale."""
    return round(100 * value / scale, 2) if value is not None and 0 <= value <= scale else None


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


def bars(heading: str, labels: Sequence[str], counts: Sequence[int], lows: Sequence[float | None]) -> Histogram:
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
    )


def distribution(heading: str, scores: ScoreBins) -> Histogram:
    """Return the histogram of a grader's scores: five bins of width 0.2 and exactly 1, plus what lies outside."""
    labels = [span(low, high) for low, high in itertools.pairwise(scores.edges)] + ["1"]
    counts, lows = list(scores.counts), list(scores.edges)
    if scores.below:
        labels, counts, lows = ["< 0", *labels], [scores.below, *counts], [0.0, *lows]
    if scores.above:
        labels, counts, lows = [*labels, "> 1"], [*counts, scores.above], [*lows, 1.0]
    return bars(heading, labels, counts, lows)


def series(heading: str, points: Sequence[_Point]) -> Series | None:
    """Return figures over a number as a series: place, figure, value and both ends; None where there are too many."""
    if not points or len(points) > _MOST_POINTS:
        return None
    known = [end for *_, value, low, high in points for end in (value, low, high) if end is not None]
    bottom, top = min([0.0, *known]), max(known, default=1.0)
    top = 1.0 if bottom == 0 and 0.5 < top <= 1 else _round_up(top, bottom)
    first, last = points[0][0], points[-1][0]

    def height(value: float | None) -> float | None:
        return None if value is None else round(100 * (top - value) / (top - bottom), 2)

    shown = tuple(
        Point(
            str(place),
            item.value,
            item.interval,
            round(100 * (place - first) / (last - first), 2) if last > first else 50.0,
            *map(height, (value, low, high)),
        )
        for place, item, value, low, high in points
    )
    ticks = tuple((float(at), number(top - (top - bottom) * at / 100)) for at in (0, 50, 100))
    return Series(heading, heading, shown, ticks)


def _round_up(top: float, bottom: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten, so that the axis ends on a round number."""
    if top <= bottom:
        return bottom + 1.0
    power = 10.0 ** math.floor(math.log10(max(top, -bottom)))
    steps = (power * step for step in (1, 2, 3, 4, 5, 6, 8, 10))
    return next((step for step in steps if step >= top), power * 10) if top > 0 else 0.0


def drawn(block: object) -> Iterable[Drawn]:
    """Yield a block of a panel as it is drawn; a distribution over several groups is several."""
    match block:
        case given.Figures():
            yield Figures(_title(block), tuple(map(_figure, block.figures)))
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
            yield bars(_title(block), names, counts, [None] * len(counts))
        case given.Series():
            points = sorted(block.points.items())
            known = [(at, _figure(each), as_number(each.value), *(_ends(each) or (None, None))) for at, each in points]
            yield series(_title(block), known) or Words(_title(block), "none")
        case given.Table():
            yield _table(_title(block), block.corner, block.columns, block.rows)
        case given.Words():
            yield Words(_title(block), brief(block.text, _LONGEST))
        case given.Link():
            yield Samples(brief(block.text, _LONGEST), _address(block))
        case given.Section():
            inside = tuple(each for inner in block.blocks for each in drawn(inner))
            yield Section(_title(block), inside, bool(block.folded))
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


def _figure(figure: given.Figure) -> Figure:
    text = _shown(figure.value)
    word = isinstance(figure.value, str)
    note, defined = brief(figure.note, 300), figure.value is not None
    return Figure(brief(figure.label, _NAME), text, interval=_interval(figure), note=note, defined=defined, plain=word)


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


def _matrix(block: given.Matrix) -> Table:
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


def _shaded(value: given.Value, top: float) -> Cell:
    if value is None:
        return Cell("")
    size = as_number(value)
    shade = heat(size, top) if size is not None and 0 <= size <= top else ""
    return Cell(_shown(value), shade)


def _table(title: str, corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[given.Cell]]) -> Table:
    if any(len(row) != len(columns) for row in rows.values()):
        msg = "a row of a table must have as many values as there are columns"
        raise ValueError(msg)
    cells = [(brief(name, _NAME), tuple(map(_cell, row))) for name, row in rows.items()]
    return _cut(title, brief(corner, _NAME), columns, cells)


def _cell(value: given.Cell) -> Cell:
    """Return a cell of a table; of a figure it is the value alone that words stand for."""
    match value:
        case given.Figure():
            at, low, high = map(scale_of, (as_number(value.value), *(_ends(value) or (None, None))))
            on_axis = at is not None or value.value is None
            dot = Dot(at, low, high) if on_axis else None
            return Cell(_shown(value.value), interval=_interval(value), dot=dot)
        case given.Link():
            return Cell(brief(value.text, _NAME), address=_address(value))
        case str():
            return Cell(brief(value, _LONGEST))
        case _:
            return Cell(_shown(value))


def _cut(title: str, corner: str, columns: Sequence[str], rows: Sequence[tuple[str, tuple[Cell, ...]]]) -> Table:
    names = tuple(brief(name, _NAME) for name in columns[:_MOST_COLUMNS])
    kept = tuple((name, cells[:_MOST_COLUMNS]) for name, cells in rows[:_MOST_ROWS])
    return Table(title, corner, names, kept, len(rows) - len(kept), place="")


def _distribution(block: given.Distribution) -> Iterable[Drawn]:
    if len(block.edges) < 2 or any(low >= high for low, high in itertools.pairwise(block.edges)):
        msg = "edges of a distribution must grow, and there must be two at least"
        raise ValueError(msg)
    counts = [_counts(values, block.edges) for values in block.groups.values()]
    names = [brief(name, _NAME) for name in block.groups]
    below, above = any(each[0] for each in counts), any(each[-1] for each in counts)
    labels = [span(low, high) for low, high in itertools.pairwise(block.edges)] + [edge(block.edges[-1])]
    labels = [*([f"< {edge(block.edges[0])}"] * below), *labels, *([f"> {labels[-1]}"] * above)]
    kept = [each[1 - below : len(each) - 1 + above] for each in counts]
    if len(kept) == 2:
        yield Opposite(_title(block), _opposed(_title(block), names, labels, kept))
        return
    for name, each in zip(names, kept, strict=True):
        yield bars(f"{_title(block)}: {name}" if block.title else name, labels, each, [None] * len(each))


def _counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Return how many values lie below the first edge, in each bin, and above the last edge."""
    found = [0] * (len(edges) + 2)
    for value in filter(math.isfinite, values):
        found[len(edges) + (value > edges[-1]) if value >= edges[-1] else bisect_right(edges, value)] += 1
    return found


def _opposed(title: str, names: Sequence[str], labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Opposed:
    left, right = counts
    top = max(*left, *right, 1)
    lines = (
        BackBar(label, a, b, round(100 * a / top, 2), round(100 * b / top, 2))
        for label, a, b in zip(labels, left, right, strict=True)
    )
    return Opposed(title or "value", names[0], names[1], tuple(lines))


def _graphs(block: given.Graph) -> Drawn:
    nodes, made = _nodes(block.nodes), None if block.made is None else _nodes(block.made)
    if not nodes:
        return Words(_title(block), "none")
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
