"""What pages draw: blocks of panels as shapes, with their places in percent of a plot and their
texts as shown.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from gradestack.jsonio import as_number
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.index import ScoreBins, shade
from gradestack_plugins.pages.tallies import SEPARATOR
from gradestack_plugins.pages.text import UNDEFINED, brief, end, number, percent

_MOST_NODES, _MOST_LINES, _LONGEST_LINE = 30, 6, 80
_MOST_ROWS, _MOST_COLUMNS, _MOST_BARS, _MOST_POINTS = 200, 60, 60, 200
_LONGEST, _NAME, _NOTE = 4000, 120, 300
_SIGNS = {"same": "", "differs": "≠ ", "missing": "✗ ", "extra": "+ "}
_WORD = re.compile(rf"^(?!{UNDEFINED}|NaN|-?Infinity).*[^\W\d]{{2}}", re.DOTALL)

Shape = SimpleNamespace
"""What a template draws: places in percent, texts as they are shown; of a block, its kind."""
Bin = tuple[str, float, tuple[int, ...]]
"""Label, lower edge, and the count of each group."""


def drawn(block: object) -> Iterable[Shape]:  # noqa: C901
    """Yield a block of a panel as it is drawn; a distribution over several groups is several."""
    match block:
        case blocks.Figures():
            yield _shape(block, "figures", items=[*map(_figure, block.figures)])
        case blocks.Interval():
            yield _estimates(block)
        case blocks.Matrix():
            yield _matrix(block)
        case blocks.Graph():
            yield _graphs(block)
        case blocks.Distribution():
            yield from _distribution(block)
        case blocks.Counts():
            counts = islice(block.counts.items(), _MOST_BARS)
            yield bars(
                _title(block), [(brief(name, _NAME), math.nan, (count,)) for name, count in counts]
            )
        case blocks.Series():
            yield _series(block)
        case blocks.Table():
            yield _grid(block, block.rows.items(), lambda value, _: _cell(value))
        case blocks.Words():
            yield _shape(block, "words", text=brief(block.text, _LONGEST))
        case blocks.Link():
            yield Shape(
                kind="samples", title="", text=brief(block.text, _LONGEST), address=_address(block)
            )
        case blocks.Section():
            inside = [each for inner in block.blocks for each in drawn(inner)]
            yield _shape(block, "section", blocks=inside, folded=bool(block.folded))
        case _:
            raise TypeError(f"{type(block).__name__} is no block; see gradestack.blocks")


def _shape(block: Any, kind: str, **more: Any) -> Shape:
    return Shape(kind=kind, title=_title(block), **more)


def _title(block: Any) -> str:
    return brief(block.title, _NAME)


def scale_of(value: float | None, high: float = 1.0, low: float = 0.0) -> float | None:
    """Return a value in percent of a scale, None off the scale."""
    return (
        round(100 * (value - low) / (high - low), 2)
        if value is not None and low <= value <= high
        else None
    )


def _figure(figure: blocks.Figure, low: float = 0.0, high: float = 1.0) -> Shape:
    """Return a value with its places on an axis; one that is a word is ``plain``."""
    ends = (
        figure.interval
        if figure.interval is not None and all(map(math.isfinite, figure.interval))
        else None
    )
    left, right = (
        (None, None)
        if ends is None
        else (scale_of(min(max(each, low), high), high, low) for each in ends)
    )
    return Shape(
        title=brief(figure.label, _NAME),
        value=_shown(figure.value),
        unit="",
        interval="" if ends is None else f"{end(ends[0])} – {end(ends[1])}",
        note=brief(figure.note, _NOTE),
        defined=figure.value is not None,
        plain=isinstance(figure.value, str),
        at=scale_of(as_number(figure.value), high, low),
        low=left,
        high=right,
    )


def _estimates(block: blocks.Interval) -> Shape:
    if not block.low < block.high:
        raise ValueError(
            f"the axis of an interval block must grow, got {block.low} to {block.high}"
        )
    rows = [_figure(each, block.low, block.high) for each in block.figures[:_MOST_ROWS]]
    steps = (block.low + (block.high - block.low) * step / 4 for step in range(5))
    return _shape(block, "estimates", rows=rows, ticks=[f"{step:g}" for step in steps])


def _shown(value: blocks.Value) -> str:
    """Return a value in short; what is not a finite number is undefined."""
    return number(None if isinstance(value, float) and not math.isfinite(value) else value)


def binned(edges: Sequence[float], groups: Sequence[Sequence[int]]) -> list[Bin]:
    """Return bins as people write them, ``[0.2, 0.4)``, and what is exactly the last edge.

    Each group has counts of what lies below, in each bin and above; nothing outside has no bin.
    """
    first, last = f"{edges[0]:g}", f"{edges[-1]:g}"
    labels = [
        f"< {first}",
        *(f"[{low:g},\u00a0{high:g})" for low, high in pairwise(edges)),
        last,
        f"> {last}",
    ]
    found = list(zip(labels, (edges[0], *edges, edges[-1]), zip(*groups, strict=True), strict=True))
    return [each for each in found if each not in (found[0], found[-1]) or any(each[2])]


def bars(heading: str, bins: Sequence[Bin], *, shaded: bool = False) -> Shape:
    """Return a histogram of the first group of some bins, whose bars may be shaded by their lower
    edges.
    """
    counts = [count for _, _, (count, *_) in bins]
    top, total = max(counts, default=0), sum(counts)
    found = [
        Shape(
            label=label,
            count=count,
            share=percent(count, total),
            height=round(100 * count / top, 2) if top else 0.0,
            shade=shade(low) if shaded else "none",
        )
        for (label, low, _), count in zip(bins, counts, strict=True)
    ]
    return Shape(kind="histogram", title=heading, bars=found)


def distribution(heading: str, scores: ScoreBins) -> Shape:
    """Return the histogram of a grader's scores."""
    return bars(
        heading, binned(scores.edges, [(scores.below, *scores.counts, scores.above)]), shaded=True
    )


def opposed(name: str, sides: Sequence[str], bins: Sequence[Bin]) -> Shape:
    """Return two distributions back to back."""
    top = max(1, *(count for *_, counts in bins for count in counts))
    lines = [
        Shape(
            label=label,
            left=a,
            right=b,
            left_width=round(100 * a / top, 2),
            right_width=round(100 * b / top, 2),
        )
        for label, _, (a, b) in bins
    ]
    return Shape(name=name, left=sides[0], right=sides[1], bars=lines)


def _distribution(block: blocks.Distribution) -> Iterator[Shape]:
    if len(block.edges) < 2 or any(low >= high for low, high in pairwise(block.edges)):
        raise ValueError("edges of a distribution must grow, and there must be two at least")
    names = [brief(name, _NAME) for name in block.groups]
    bins = (
        binned(block.edges, [_counts(values, block.edges) for values in block.groups.values()])
        if names
        else []
    )
    if len(names) == 2:
        yield _shape(block, "opposite", chart=opposed(_title(block) or "value", names, bins))
        return
    for place, name in enumerate(names):
        own = [(label, low, counts[place:]) for label, low, counts in bins]
        yield bars(f"{_title(block)}: {name}" if block.title else name, own)


def _counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Return how many values lie below the first edge, in each bin, and above the last edge."""
    found = [0] * (len(edges) + 2)
    for value in filter(math.isfinite, values):
        found[
            len(edges) + (value > edges[-1]) if value >= edges[-1] else bisect_right(edges, value)
        ] += 1
    return found


def _series(block: blocks.Series) -> Shape:
    """Return figures over a number, with their heights from above.

    No picture of none, or of too many.
    """
    points = sorted(block.points.items())
    if not 0 < len(points) <= _MOST_POINTS:
        return _shape(block, "words", text="none")
    every = [
        each for _, figure in points for each in (as_number(figure.value), *(figure.interval or ()))
    ]
    known = [each for each in every if each is not None and math.isfinite(each)]
    bottom, top = min(0.0, *known, 0.0), max(known, default=1.0)
    top = 1.0 if bottom == 0 and 0.5 < top <= 1 else _round_up(top, bottom)
    first, last = points[0][0], points[-1][0]
    shown = []
    for place, figure in points:
        point = _figure(figure, bottom, top)
        point.y, point.low, point.high = (
            None if at is None else round(100 - at, 2) for at in (point.at, point.low, point.high)
        )
        point.label, point.x = str(place), scale_of(place, last, first) if last > first else 50.0
        shown.append(point)
    ticks = [(float(at), number(top - (top - bottom) * at / 100)) for at in (0, 50, 100)]
    return _shape(block, "series", points=shown, ticks=ticks)


def _round_up(top: float, bottom: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten, so that the axis ends on a round number."""
    if top <= bottom:
        return bottom + 1.0
    power = 10.0 ** math.floor(math.log10(max(top, -bottom)))
    steps = (power * step for step in (1, 2, 3, 4, 5, 6, 8, 10))
    return next((step for step in steps if step >= top), power * 10) if top > 0 else 0.0


def _grid(
    block: blocks.Matrix | blocks.Table,
    rows: Iterable[tuple[str, Sequence[Any]]],
    cell: Callable[[Any, tuple[str, str]], Shape],
) -> Shape:
    """Return a table of cells, each made from its value and the names of its row and column."""
    rows = list(rows)
    if any(len(values) != len(block.columns) for _, values in rows):
        raise ValueError("a row of a table must have as many values as there are columns")
    kept = []
    for name, values in rows[:_MOST_ROWS]:
        pairs = islice(zip(values, block.columns, strict=True), _MOST_COLUMNS)
        kept.append((brief(name, _NAME), [cell(value, (name, column)) for value, column in pairs]))
    columns = [brief(name, _NAME) for name in block.columns[:_MOST_COLUMNS]]
    every = [cell for _, cells in kept for cell in cells]
    return _shape(
        block,
        "table",
        corner=brief(block.corner, _NAME),
        columns=columns,
        rows=kept,
        left_out=len(rows) - len(kept),
        wide=any(
            each.dot or (each.address and not each.shade) for each in every
        ),  # takes the whole width
        wordy=[  # columns of words, or figures on an axis, stand on the left
            any(cells[at].dot or _WORD.search(cells[at].text) for _, cells in kept)
            for at in range(len(columns))
        ],
    )


def _text(
    text: str, *, shade: str = "", interval: str = "", dot: Shape | None = None, address: str = ""
) -> Shape:
    return Shape(text=text, shade=shade, interval=interval, dot=dot, address=address)


def _cell(value: blocks.Cell) -> Shape:
    """Return a cell of a table; of a figure it is the value alone that words stand for."""
    match value:
        case blocks.Figure():
            dot = _figure(value)
            return _text(
                dot.value,
                interval=dot.interval,
                dot=dot if dot.at is not None or not dot.defined else None,
            )
        case blocks.Link():
            return _text(brief(value.text, _NAME), address=_address(value))
        case str():
            return _text(brief(value, _LONGEST))
        case _:
            return _text(_shown(value))


def _matrix(block: blocks.Matrix) -> Shape:
    every = [value for row in block.values for value in row]
    whole = all(value is None or isinstance(value, int) for value in every)
    top = max((value for value in every if isinstance(value, int)), default=0) if whole else 1

    def shaded(value: blocks.Value, names: tuple[str, str]) -> Shape:
        if value is None:
            return _text("")
        size, (row, column) = as_number(value), names
        shade = (
            f"h{math.ceil(8 * size / (top or 1))}" if size is not None and 0 <= size <= top else ""
        )
        search = block.search.format(row=row, column=column)
        return _text(
            _shown(value), shade=shade, address=_address(blocks.Link("", search)) if value else ""
        )

    return _grid(block, zip(block.rows, block.values, strict=True), shaded)


_Nodes = Mapping[str, blocks.Node]


def _graphs(block: blocks.Graph) -> Shape:
    expected, made = _named(block.nodes), None if block.made is None else _named(block.made)
    if not expected:
        return _shape(block, "words", text="none")
    if made is None:
        return _shape(block, "graphs", sides=[_graph("", expected, expected, "missing")])
    sides = [_graph("Expected", expected, made, "missing"), _graph("Made", made, expected, "extra")]
    return _shape(block, "graphs", sides=sides)


def _named(nodes: Sequence[blocks.Node]) -> _Nodes:
    found = {node.name: node for node in nodes}
    if len(found) < len(nodes):
        raise ValueError("two nodes of a graph have one name")
    return found


def _graph(title: str, nodes: _Nodes, other: _Nodes, alone: str) -> Shape:
    """Return nodes in layers, each one layer after the last one it depends on.

    Edges that lead back do not count.
    """
    shown = dict(islice(nodes.items(), _MOST_NODES))
    depth: dict[str, int] = {}

    def deep(name: str, above: frozenset[str] = frozenset()) -> int:
        if name not in depth:
            own = above | {name}
            before = (each for each in shown[name].after if each in shown and each not in own)
            depth[name] = max((deep(each, own) + 1 for each in before), default=0)
        return depth[name]

    layers: list[list[Shape]] = [[] for _ in range(max(map(deep, shown), default=-1) + 1)]
    for name, node in shown.items():
        layers[depth[name]].append(_node(node, nodes, other.get(name), alone))
    return Shape(title=title, layers=layers, left_out=len(nodes) - len(shown))


def _node(node: blocks.Node, nodes: _Nodes, twin: blocks.Node | None, alone: str) -> Shape:
    """Return a node whose status is ``same``, ``differs``, ``missing`` (expected only) or ``extra``
    (made only).
    """
    status = alone if twin is None else "same" if [*twin.lines] == [*node.lines] else "differs"
    lines = [brief(str(line), _LONGEST_LINE) for line in node.lines[:_MOST_LINES]]
    if len(node.lines) > _MOST_LINES:
        lines[-1] = f"… {len(node.lines) - _MOST_LINES + 1} more"
    known, before = (
        () if twin is None else twin.after,
        dict.fromkeys(each for each in node.after if each in nodes),
    )
    after = [
        ("" if each in known else _SIGNS[alone]) + brief(each, _LONGEST_LINE) for each in before
    ]
    return Shape(
        name=_SIGNS[status] + brief(node.name, _LONGEST_LINE),
        status=status,
        after=after,
        lines=lines,
    )


def _address(link: blocks.Link) -> str:
    if link.position is not None:
        return f"#s{link.position + 1}"
    terms = [link.search] if link.search else []
    terms += [f'model:"{link.model}"'] if link.model else []
    terms += [f'reason:"{SEPARATOR.join(filter(None, link.reason[1:]))}"'] if link.reason else []
    held = {"sample": link.sample, "q": " ".join(terms)}
    return (
        f"#{urlencode({key: value for key, value in held.items() if value})}"
        if any(held.values())
        else ""
    )
