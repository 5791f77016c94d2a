"""What pages draw: shapes with their geometry in percent of the plot, graphs, and how blocks of panels become these."""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from gradestack.jsonio import as_number
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.index import ScoreBins, shade
from gradestack_plugins.pages.tallies import SEPARATOR
from gradestack_plugins.pages.text import UNDEFINED, brief, end, number, percent

_MOST_NODES, _MOST_LINES, _LONGEST_LINE = 30, 6, 25
_WIDTH, _GAP, _LINE, _HEAD, _BETWEEN = 176, 34, 15, 24, 12
_SIGNS = {"same": "", "differs": "≠ ", "missing": "✗ ", "extra": "+ "}


Shape = SimpleNamespace
"""What a template draws: places in percent of the plot or in pixels, texts as they are shown; of a block, its kind."""


Nodes = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Node -> what it holds, and what it depends on."""


def _graph(title: str, nodes: Nodes, other: Nodes, alone: str) -> Shape:
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
    return Shape(
        title=title,
        about=_about(shown, found),
        width=width,
        height=height,
        nodes=found,
        edges=edges,
        left_out=len(nodes) - len(shown),
    )


def _node(
    name: str, held: tuple[tuple[str, ...], tuple[str, ...]], other: Nodes, place: tuple[int, int, int], alone: str
) -> Shape:
    """Return a node whose status is ``same``, ``differs``, ``missing`` (expected only) or ``extra`` (made only)."""
    status = alone if name not in other else "same" if other[name][0] == held[0] else "differs"
    lines = [brief(line, _LONGEST_LINE) for line in held[0][:_MOST_LINES]]
    if len(held[0]) > _MOST_LINES:
        lines[-1] = f"… {len(held[0]) - _MOST_LINES + 1} more"
    x, y, height = place
    shown = _SIGNS[status] + brief(name, _LONGEST_LINE - 3)
    return Shape(name=shown, lines=lines, x=x, y=y, height=height, status=status)


def _edges(nodes: Nodes, other: Nodes, places: Mapping[str, tuple[int, int, int]], alone: str) -> Iterator[Shape]:
    for name, (_, before) in nodes.items():
        for source in before:
            if source in places:
                (x, y, height), (to_x, to_y, to_height) = places[source], places[name]
                x, y, to_y = x + _WIDTH, y + height // 2, to_y + to_height // 2
                bend = _GAP // 2 if to_x >= x else _GAP
                curve = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
                yield Shape(curve=curve, status="same" if name in other and source in other[name][1] else alone)


def _layers(nodes: Nodes) -> list[list[str]]:
    """Return nodes in layers, each one layer after the last one it depends on; edges that lead back do not count."""
    depth: dict[str, int] = {}
    above = set[str]()

    def deep(name: str) -> int:
        if name not in depth:
            above.add(name)
            depth[name] = max(
                (deep(each) + 1 for each in nodes[name][1] if each in nodes and each not in above), default=0
            )
            above.remove(name)
        return depth[name]

    layers: list[list[str]] = [[] for _ in range(max(map(deep, nodes)) + 1)]
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


def _about(nodes: Nodes, shown: Sequence[Shape]) -> str:
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


_Point = tuple[int, Shape, float | None, float | None, float | None]


def scale_of(value: float | None, scale: float = 1.0) -> float | None:
    """Return a value in percent of a scale that begins at 0, None off the scale."""
    return round(100 * value / scale, 2) if value is not None and 0 <= value <= scale else None


def labels_of(edges: Sequence[float]) -> list[str]:
    """Return bins as people write them, ``[0.2, 0.4)``, and what is exactly the last edge."""
    return [f"[{low:g},\u00a0{high:g})" for low, high in itertools.pairwise(edges)] + [f"{edges[-1]:g}"]


def bars(heading: str, labels: Sequence[str], counts: Sequence[int], lows: Sequence[float | None]) -> Shape:
    """Return a histogram from labels, counts and lower edges, by which bars are shaded where they are fractions."""
    top, total = max(counts, default=0), sum(counts)
    found = [
        Shape(
            label=label,
            count=count,
            share=percent(count, total),
            height=round(100 * count / top, 2) if top else 0.0,
            shade=shade(low) if low is not None and 0 <= low <= 1 else "none",
        )
        for label, count, low in zip(labels, counts, lows, strict=True)
    ]
    return Shape(kind="histogram", title=heading, bars=found)


def distribution(heading: str, scores: ScoreBins) -> Shape:
    """Return the histogram of a grader's scores: five bins of width 0.2 and exactly 1, plus what lies outside."""
    labels, counts, lows = labels_of(scores.edges), list(scores.counts), list(scores.edges)
    if scores.below:
        labels, counts, lows = ["< 0", *labels], [scores.below, *counts], [0.0, *lows]
    if scores.above:
        labels, counts, lows = [*labels, "> 1"], [*counts, scores.above], [*lows, 1.0]
    return bars(heading, labels, counts, lows)


def series(heading: str, points: Sequence[_Point]) -> Shape | None:
    """Return figures over a number as a series: place, figure, value and both ends; None where there are too many."""
    if not points or len(points) > _MOST_POINTS:
        return None
    known = [end for *_, value, low, high in points for end in (value, low, high) if end is not None]
    bottom, top = min([0.0, *known]), max(known, default=1.0)
    top = 1.0 if bottom == 0 and 0.5 < top <= 1 else _round_up(top, bottom)
    first, last = points[0][0], points[-1][0]

    def height(value: float | None) -> float | None:
        return None if value is None else round(100 * (top - value) / (top - bottom), 2)

    shown = [
        Shape(
            label=str(place),
            value=item.value,
            interval=item.interval,
            x=round(100 * (place - first) / (last - first), 2) if last > first else 50.0,
            y=height(value),
            low=height(low),
            high=height(high),
        )
        for place, item, value, low, high in points
    ]
    ticks = [(float(at), number(top - (top - bottom) * at / 100)) for at in (0, 50, 100)]
    return Shape(kind="series", title=heading, axis=heading, points=shown, ticks=ticks)


def _round_up(top: float, bottom: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten, so that the axis ends on a round number."""
    if top <= bottom:
        return bottom + 1.0
    power = 10.0 ** math.floor(math.log10(max(top, -bottom)))
    steps = (power * step for step in (1, 2, 3, 4, 5, 6, 8, 10))
    return next((step for step in steps if step >= top), power * 10) if top > 0 else 0.0


def drawn(block: object) -> Iterable[Shape]:
    """Yield a block of a panel as it is drawn; a distribution over several groups is several."""
    match block:
        case blocks.Figures():
            yield Shape(kind="figures", title=_title(block), items=[*map(_figure, block.figures)])
        case blocks.Interval():
            yield _estimates(block)
        case blocks.Matrix():
            yield _matrix(block)
        case blocks.Graph():
            yield _graphs(block)
        case blocks.Distribution():
            yield from _distribution(block)
        case blocks.Counts():
            names = [brief(name, _NAME) for name in block.counts][:_MOST_BARS]
            counts = list(block.counts.values())[:_MOST_BARS]
            yield bars(_title(block), names, counts, [None] * len(counts))
        case blocks.Series():
            points = sorted(block.points.items())
            known = [(at, _figure(each), as_number(each.value), *(_ends(each) or (None, None))) for at, each in points]
            yield series(_title(block), known) or _words(_title(block), "none")
        case blocks.Table():
            yield _table(_title(block), block.corner, block.columns, block.rows)
        case blocks.Words():
            yield _words(_title(block), brief(block.text, _LONGEST))
        case blocks.Link():
            yield Shape(kind="samples", title="", text=brief(block.text, _LONGEST), address=_address(block))
        case blocks.Section():
            inside = [each for inner in block.blocks for each in drawn(inner)]
            yield Shape(kind="section", title=_title(block), blocks=inside, folded=bool(block.folded))
        case _:
            raise TypeError(f"{type(block).__name__} is no block; see gradestack.blocks")


def _words(title: str, text: str) -> Shape:
    return Shape(kind="words", title=title, text=text)


def _title(block: Any) -> str:
    return brief(block.title, _NAME)


def _shown(value: blocks.Value) -> str:
    """Return a value in short; what is not a finite number is undefined."""
    return number(None if isinstance(value, float) and not math.isfinite(value) else value)


def _ends(figure: blocks.Figure) -> tuple[float, float] | None:
    if figure.interval is None:
        return None
    low, high = figure.interval
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _interval(figure: blocks.Figure) -> str:
    ends = _ends(figure)
    return "" if ends is None else f"{end(ends[0])} – {end(ends[1])}"


def _figure(figure: blocks.Figure) -> Shape:
    """Return one number with its name; a value that is a word is ``plain``."""
    return Shape(
        label=brief(figure.label, _NAME),
        value=_shown(figure.value),
        interval=_interval(figure),
        note=brief(figure.note, 300),
        defined=figure.value is not None,
        plain=isinstance(figure.value, str),
    )


def _estimates(block: blocks.Interval) -> Shape:
    if not block.low < block.high:
        raise ValueError(f"the axis of an interval block must grow, got {block.low} to {block.high}")

    def place(value: float | None) -> float | None:
        found = None if value is None else round(100 * (value - block.low) / (block.high - block.low), 2)
        return found if found is not None and 0 <= found <= 100 else None

    rows = []
    for each in block.figures[:_MOST_ROWS]:
        value, ends = as_number(each.value), _ends(each) or (None, None)
        low, high = (None if end is None else min(max(end, block.low), block.high) for end in ends)
        texts = {"title": brief(each.label, _NAME), "note": brief(each.note, 300), "value": _shown(each.value)}
        rows.append(
            Shape(**texts, interval=_interval(each), at=place(value), low=place(low), high=place(high), unit="")
        )
    steps = (block.low + (block.high - block.low) * step / 4 for step in range(5))
    return Shape(kind="estimates", title=_title(block), rows=rows, ticks=[f"{step:g}" for step in steps])


def _matrix(block: blocks.Matrix) -> Shape:
    whole = all(value is None or isinstance(value, int) for row in block.values for value in row)
    top = max((value for row in block.values for value in row if isinstance(value, int)), default=0) if whole else 1
    if any(len(row) != len(block.columns) for row in block.values):
        raise ValueError("a row of a matrix must have as many values as there are columns")
    rows = []
    for name, values in zip(block.rows, block.values, strict=True):
        named = zip(values, block.columns, strict=True)
        cells = (_shaded(value, top, block.search.format(row=name, column=column)) for value, column in named)
        rows.append((brief(name, _NAME), tuple(cells)))
    return _cut(_title(block), brief(block.corner, _NAME), block.columns, rows)


def _shaded(value: blocks.Value, top: float, search: str) -> Shape:
    if value is None:
        return _text("")
    size = as_number(value)
    shade = f"h{math.ceil(8 * size / (top or 1))}" if size is not None and 0 <= size <= top else ""
    return _text(_shown(value), shade=shade, address=_address(blocks.Link("", search)) if value else "")


def _table(title: str, corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[blocks.Cell]]) -> Shape:
    if any(len(row) != len(columns) for row in rows.values()):
        raise ValueError("a row of a table must have as many values as there are columns")
    cells = [(brief(name, _NAME), tuple(map(_cell, row))) for name, row in rows.items()]
    return _cut(title, brief(corner, _NAME), columns, cells)


def _text(text: str, *, shade: str = "", interval: str = "", dot: Shape | None = None, address: str = "") -> Shape:
    return Shape(text=text, shade=shade, interval=interval, dot=dot, address=address)


def _cell(value: blocks.Cell) -> Shape:
    """Return a cell of a table; of a figure it is the value alone that words stand for."""
    match value:
        case blocks.Figure():
            at, low, high = map(scale_of, (as_number(value.value), *(_ends(value) or (None, None))))
            on_axis = at is not None or value.value is None
            dot = Shape(at=at, low=low, high=high) if on_axis else None
            return _text(_shown(value.value), interval=_interval(value), dot=dot)
        case blocks.Link():
            return _text(brief(value.text, _NAME), address=_address(value))
        case str():
            return _text(brief(value, _LONGEST))
        case _:
            return _text(_shown(value))


def _cut(title: str, corner: str, columns: Sequence[str], rows: Sequence[tuple[str, tuple[Shape, ...]]]) -> Shape:
    names = tuple(brief(name, _NAME) for name in columns[:_MOST_COLUMNS])
    kept = [(name, cells[:_MOST_COLUMNS]) for name, cells in rows[:_MOST_ROWS]]
    every = [cell for _, cells in kept for cell in cells]
    return Shape(
        kind="table",
        title=title,
        corner=corner,
        columns=names,
        rows=kept,
        left_out=len(rows) - len(kept),
        wide=any(cell.dot or (cell.address and not cell.shade) for cell in every),  # takes the whole width
        wordy=[  # columns of words, or figures on an axis, stand on the left
            any(cells[place].dot or _WORD.search(cells[place].text) for _, cells in kept) for place in range(len(names))
        ],
    )


def _distribution(block: blocks.Distribution) -> Iterable[Shape]:
    if len(block.edges) < 2 or any(low >= high for low, high in itertools.pairwise(block.edges)):
        raise ValueError("edges of a distribution must grow, and there must be two at least")
    counts = [_counts(values, block.edges) for values in block.groups.values()]
    names = [brief(name, _NAME) for name in block.groups]
    below, above = any(each[0] for each in counts), any(each[-1] for each in counts)
    labels = labels_of(block.edges)
    labels = [*([f"< {block.edges[0]:g}"] * below), *labels, *([f"> {labels[-1]}"] * above)]
    kept = [each[1 - below : len(each) - 1 + above] for each in counts]
    if len(kept) == 2:
        chart = opposed(_title(block) or "value", names, labels, kept)
        yield Shape(kind="opposite", title=_title(block), chart=chart)
        return
    for name, each in zip(names, kept, strict=True):
        yield bars(f"{_title(block)}: {name}" if block.title else name, labels, each, [None] * len(each))


def _counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Return how many values lie below the first edge, in each bin, and above the last edge."""
    found = [0] * (len(edges) + 2)
    for value in filter(math.isfinite, values):
        found[len(edges) + (value > edges[-1]) if value >= edges[-1] else bisect_right(edges, value)] += 1
    return found


def opposed(name: str, sides: Sequence[str], labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Shape:
    """Return two distributions back to back."""
    left, right = counts
    top = max(*left, *right, 1)
    lines = [
        Shape(label=label, left=a, right=b, left_width=round(100 * a / top, 2), right_width=round(100 * b / top, 2))
        for label, a, b in zip(labels, left, right, strict=True)
    ]
    return Shape(name=name, left=sides[0], right=sides[1], bars=lines)


def _graphs(block: blocks.Graph) -> Shape:
    nodes, made = _nodes(block.nodes), None if block.made is None else _nodes(block.made)
    if not nodes:
        return _words(_title(block), "none")
    expected = _graph("Graph", nodes, nodes, "missing") if made is None else _graph("Expected", nodes, made, "missing")
    pair = Shape(expected=expected, actual=_graph("Made", made, nodes, "extra") if made else None)
    return Shape(kind="graphs", title=_title(block), pair=pair, alone=made is None)


def _nodes(nodes: Sequence[blocks.Node]) -> Nodes:
    names = {node.name for node in nodes}
    if len(names) < len(nodes):
        raise ValueError("two nodes of a graph have one name")
    return {
        node.name: (tuple(map(str, node.lines)), tuple(dict.fromkeys(each for each in node.after if each in names)))
        for node in nodes
    }


def _address(link: blocks.Link) -> str:
    if link.position is not None:
        return f"#s{link.position + 1}"
    terms = [link.search] if link.search else []
    terms += [f'model:"{link.model}"'] if link.model else []
    terms += [f'reason:"{SEPARATOR.join(filter(None, link.reason[1:]))}"'] if link.reason else []
    held = {"sample": link.sample, "q": " ".join(terms)}
    return f"#{urlencode({key: value for key, value in held.items() if value})}" if any(held.values()) else ""
