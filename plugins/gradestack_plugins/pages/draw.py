"""Blocks drawn as shapes, with places in percent of a plot and texts as shown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote_plus

import msgspec

from gradestack import compile_later, with_unit
from gradestack.jsonio import as_number
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.bins import Bin, bin_values
from gradestack_plugins.pages.tallies import SEPARATOR
from gradestack_plugins.pages.text import UNDEFINED, brief, end, number, percent

_MOST_ROWS, _MOST_COLUMNS, _MOST_BARS, _MOST_POINTS = 200, 60, 60, 200
_LONGEST, _NAME, _NOTE = 4000, 120, 300
_SHADES = 8
_WORD = compile_later(rf"^(?!{UNDEFINED}|NaN|-?Infinity).*[^\W\d]{{2}}", re.DOTALL)

Shape = SimpleNamespace
"""What a template draws: places in percent, texts as they are shown; of a block, its kind."""


def draw_block(block: object) -> Iterable[Shape]:
    """Return the shapes that draw a block.

    That is one for most, and for a distribution over several groups one a group.

    Raises:
        TypeError: It is no block.
    """
    if type(block) in _DRAWN_AS_THEY_ARE:
        return [_draw_as_it_is(block)]
    draw = _DRAWERS.get(type(block))
    if draw is None:
        raise TypeError(f"{type(block).__name__} is no block; see gradestack.blocks")
    shape = draw(block)
    return [shape] if isinstance(shape, Shape) else shape


def _draw_as_it_is(block: Any) -> Shape:
    """Return a block with its fields as templates read them."""
    shape: Shape = _draw_field(block)
    shape.kind = _DRAWN_AS_THEY_ARE[type(block)]
    shape.title = getattr(shape, "title", "")
    return shape


def _draw_field(value: Any) -> Any:
    """Return a field of a block: texts on one line, links with addresses, figures as drawn."""
    if isinstance(value, str):
        return _brief_inside(value, _LONGEST)
    if isinstance(value, blocks.Figure):
        return draw_figure(value)
    if isinstance(value, blocks.Link | blocks.Part):
        return _draw_part(value, _LONGEST)
    if isinstance(value, msgspec.Struct):
        fields = value.__struct_fields__
        fields_by_name = {name: _draw_field(getattr(value, name)) for name in fields}
        return Shape(**fields_by_name)
    if isinstance(value, list | tuple):
        return [
            _draw_part(part, _LONGEST) if _is_text(value) else _draw_field(part) for part in value
        ]
    return value


def _is_text(value: Sequence[Any]) -> bool:
    """Return whether a sequence is a text in parts: one with a part or a link beside strings."""
    kinds = {type(part) for part in value}
    return str in kinds and bool(kinds & {blocks.Part, blocks.Link})


def draw_all(blocks_shown: Iterable[object]) -> list[Shape]:
    """Return blocks as they are drawn."""
    return [shape for block in blocks_shown for shape in draw_block(block)]


def make_shape(block: Any, kind: str, **more: Any) -> Shape:
    """Return a shape with the title of its block."""
    title = brief(block.title, _NAME)
    return Shape(kind=kind, title=title, **more)


# Texts, numbers, links


def draw_text(text: blocks.Text, longest: int = _LONGEST) -> list[Shape]:
    """Return the parts of a text, each with its tone and, where it is a link, its address."""
    parts = [text] if isinstance(text, str) else text
    return [_draw_part(part, longest) for part in parts]


def plain_text(text: blocks.Text) -> str:
    """Return a text without what stands out in it."""
    parts = [text] if isinstance(text, str) else text
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def _draw_part(part: str | blocks.Part | blocks.Link, longest: int) -> Shape:
    if isinstance(part, str):
        brief_inside = _brief_inside(part, longest)
        return Shape(text=brief_inside, tone="", address="")
    shown = _brief_inside(part.text, longest)
    if isinstance(part, blocks.Link):
        address = address_of(part)
        return Shape(text=shown, tone="", address=address)
    return Shape(text=shown, tone=part.tone, address="")


def _brief_inside(text: str, longest: int) -> str:
    """Return a part of a sentence on one line, with one space where it has some at its ends."""
    before = " " if text[:1].isspace() else ""
    after = ""
    if text[-1:].isspace():
        after = " "
    line = brief(text, longest)
    return f"{before}{line}{after}" if line else before


def value_text(value: blocks.Value, unit: str = "") -> str:
    """Return a value with its unit: shares in percent; what is not finite is undefined."""
    if isinstance(value, str):
        return brief(value)
    if value is None or not math.isfinite(value):
        return UNDEFINED
    if unit == "share":
        return f"{100 * value:.1f}%"
    if unit == "points":
        return points_text(value)
    return with_unit(number(value), unit)


def ends_text(ends: Sequence[float] | None, unit: str = "") -> str:
    """Return both ends of an interval; "" without one."""
    if ends is None:
        return ""
    low, high = ends
    if unit == "share":
        return f"{100 * low:.1f} to {100 * high:.1f}%"
    if unit == "points":
        return f"{points_text(low)} to {points_text(high)}"
    return with_unit(f"{end(low)} to {end(high)}", unit)


def points_text(value: float | None) -> str:
    """Return a difference of shares in points, with its sign."""
    if value is None:
        return UNDEFINED
    points = f"{100 * value:+.1f}"
    return "0.0" if float(points) == 0 else points


def address_of(link: blocks.Link) -> str:
    """Return the address within a page that a link leads to; "" where it leads nowhere."""
    if link.href:
        return link.href
    if link.position is not None:
        return f"#s{link.position + 1}"
    terms = [link.search] if link.search else []
    if link.model:
        terms.append(f"model:{quoted(link.model)}")
    if link.reason:
        reason = link.reason[1:]
        path = SEPARATOR.join(filter(None, reason))
        terms.append(f"reason:{quoted(path)}")
    state = {"sample": link.sample, "q": " ".join(terms), "without": link.without}
    pairs = []
    for key, value in state.items():
        if value:
            pairs.append(f"{key}={quote_plus(value, errors='replace')}")
    return f"#{'&'.join(pairs)}" if pairs else ""


def quoted(text: str) -> str:
    r"""Return a value of a term of the search in quotes.

    >>> quoted('say "hi"')
    '"say \\"hi\\""'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def place_on(value: float | None, high: float = 1.0, low: float = 0.0) -> float | None:
    """Return the place of a value on an axis, in percent; None off the axis."""
    if value is None or not low <= value <= high:
        return None
    return round(100 * (value - low) / (high - low), 2)


def _place_end(value: float, low: float, high: float) -> float | None:
    """Return the place of an end of an interval; one beyond the axis is drawn at its end."""
    within = min(max(value, low), high)
    return place_on(within, high, low)


# Figures


def draw_figure(figure: blocks.Figure, low: float = 0.0, high: float = 1.0) -> Shape:
    """Return a value with its places on an axis; one that is a word is ``plain``."""
    ends = figure.interval
    if ends is not None and not all(map(math.isfinite, ends)):
        ends = None
    left = right = None
    if ends is not None:
        left, right = (_place_end(value, low, high) for value in ends)
    value = as_number(figure.value)
    title = brief(figure.label, _NAME)
    return Shape(
        title=title,
        value=value_text(figure.value, figure.unit),
        interval=ends_text(ends, figure.unit),
        note=brief(figure.note, _NOTE),
        meaning=brief(figure.meaning, _LONGEST),
        model=brief(figure.model, 40),
        gate=brief(figure.gate, _NOTE),
        defined=figure.value is not None,
        plain=isinstance(figure.value, str),
        at=place_on(value, high, low),
        low=left,
        high=right,
        threshold=place_on(figure.threshold, high, low),
        tone=_tone_of(ends) if figure.unit == "points" else "",
    )


def _tone_of(ends: Sequence[float] | None) -> str:
    """Return the tone of a difference: good or bad where its interval is beyond zero."""
    if ends is None or ends[0] <= 0 <= ends[1]:
        return ""
    return "good" if ends[0] > 0 else "bad"


def _draw_figures(block: blocks.Figures) -> Shape:
    return make_shape(block, "figures", items=[*map(draw_figure, block.figures)])


def _draw_interval(block: blocks.Interval) -> Shape:
    if not block.low < block.high:
        ends = f"{block.low} to {block.high}"
        raise ValueError(f"the axis of an interval block must grow, got {ends}")
    figures = block.figures[:_MOST_ROWS]
    rows = [draw_figure(figure, block.low, block.high) for figure in figures]
    if not block.has_axis:
        for row in rows:
            row.at = None
    step = (block.high - block.low) / 4
    marks = [block.low + quarter * step for quarter in range(5)]
    is_share = any(figure.unit == "share" for figure in block.figures)
    ticks = []
    for mark in marks:
        ticks.append(f"{100 * mark:g}%" if is_share else f"{mark:g}")
    has_axis = any(row.at is not None for row in rows)
    groups = _group_rows(rows)
    return make_shape(block, "estimates", groups=groups, rows=rows, ticks=ticks * has_axis)


def _group_rows(rows: Sequence[Shape]) -> list[Shape]:
    """Return figures of one label that follow each other as one group."""
    groups: list[Shape] = []
    for row in rows:
        if groups and row.model and groups[-1].title == row.title:
            last_group = groups[-1]
            last_group.rows.append(row)
        else:
            shape = Shape(title=row.title, rows=[row])
            groups.append(shape)
    return groups


# Bars


def bars(heading: str, bins: Sequence[Bin]) -> Shape:
    """Return a histogram of the first group of some bins."""
    counts = [counts[0] for _, _, counts in bins]
    top = max(counts, default=0)
    total = sum(counts)
    shown: list[Shape] = []
    for label, _, _ in bins:
        count = counts[len(shown)]
        share = percent(count, total)
        bar = Shape(label=label, count=count, share=share)
        if top:
            bar.height = round(100 * count / top, 2)
        else:
            bar.height = 0.0
        shown.append(bar)
    return Shape(kind="histogram", title=heading, bars=shown)


def opposed(name: str, sides: Sequence[str], bins: Sequence[Bin]) -> Shape:
    """Return two distributions back to back."""
    top = max(1, *(count for *_, counts in bins for count in counts))
    lines = []
    for label, _, (left, right) in bins:
        line = Shape(label=label, left=left, right=right)
        line.left_width = round(100 * left / top, 2)
        line.right_width = round(100 * right / top, 2)
        lines.append(line)
    first_side = sides[0]
    return Shape(name=name, left=first_side, right=sides[1], bars=lines)


def _draw_counts(block: blocks.Counts) -> Shape:
    counts = islice(block.counts.items(), _MOST_BARS)
    bins = [(brief(name, _NAME), math.nan, (count,)) for name, count in counts]
    return bars(brief(block.title, _NAME), bins)


def _draw_distribution(block: blocks.Distribution) -> Iterator[Shape]:
    names = [brief(name, _NAME) for name in block.groups]
    bins = bin_values(block.groups, block.edges)
    title = brief(block.title, _NAME)
    if len(names) == 2:
        chart = opposed(title or "value", names, bins)
        yield make_shape(block, "opposite", chart=chart)
        return
    for position, name in enumerate(names):
        own_bins = [(label, low, counts[position:]) for label, low, counts in bins]
        heading = f"{title}: {name}" if title else name
        yield bars(heading, own_bins)


# Lines over a number


def _draw_point(
    x: float, first: float, last: float, figure: blocks.Figure, bottom: float, top: float
) -> Shape:
    """Return a figure over a number, with its heights from above."""
    point = draw_figure(figure, bottom, top)
    heights = (point.at, point.low, point.high)
    point.y, point.low, point.high = (
        None if height is None else round(100 - height, 2) for height in heights
    )
    point.label = f"{x:g}"
    if last > first:
        point.x = place_on(x, last, first)
    else:
        point.x = 50.0
    return point


def _range_of(figures: Sequence[blocks.Figure]) -> tuple[float, float]:
    """Return an axis for figures that ends on round numbers; shares have that from 0 to 1."""
    ends = [end for figure in figures for end in (figure.value, *(figure.interval or ()))]
    values = [value for end in ends if (value := as_number(end)) is not None]
    finite = [value for value in values if math.isfinite(value)]
    bottom = min([0.0, *finite])
    top = max(finite, default=1.0)
    is_share = bottom == 0 and 0.5 < top <= 1
    return bottom, 1.0 if is_share else _round_up(top, bottom)


def _round_up(top: float, bottom: float) -> float:
    """Return the next round number above the top of an axis."""
    if top <= bottom:
        return bottom + 1.0
    if top <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(max(top, -bottom)))
    steps = [power * step for step in (1, 2, 3, 4, 5, 6, 8, 10)]
    return next((step for step in steps if step >= top), power * 10)


def _draw_curve(block: blocks.Curve) -> Shape:
    """Return lines over a number, the numbers spread over the width."""
    xes = {x for points in block.lines.values() for x in points}
    numbers = sorted(xes)
    if not numbers:
        return make_shape(block, "words", text=draw_text("none"))
    figures = [figure for points in block.lines.values() for figure in points.values()]
    is_share = block.is_ideal or all(figure.unit == "share" for figure in figures if figure.value)
    bottom, top = (0.0, 1.0) if is_share else _range_of(figures)
    first, last = (0.0, 1.0) if block.is_ideal else (numbers[0], numbers[-1])
    lines = []
    for name, points in block.lines.items():
        shown = [
            _draw_point(x, first, last, figure, bottom, top)
            for x, figure in sorted(points.items())[:_MOST_POINTS]
        ]
        drawable = [point for point in shown if point.y is not None]
        shape = Shape(name=brief(name, _NAME), points=shown, drawable=drawable)
        lines.append(shape)
    marks = (0.0, 0.5, 1.0) if block.is_ideal else numbers[:: len(numbers) // 12 + 1]
    ticks = [_draw_tick(mark, first, last, is_share=block.is_ideal) for mark in marks]
    heights = [
        (at, _tick_text(top - (top - bottom) * at / 100, is_share=is_share))
        for at in (0, 25, 50, 75, 100)
    ]
    return make_shape(
        block,
        "curve",
        lines=lines,
        ticks=ticks,
        heights=heights,
        x=brief(block.x, _NAME),
        is_ideal=block.is_ideal,
    )


def _draw_tick(mark: float, first: float, last: float, *, is_share: bool) -> Shape:
    """Return a number on the axis below."""
    x = place_on(mark, last, first) if last > first else 50.0
    tick_text = _tick_text(mark, is_share=is_share)
    return Shape(x=x, label=tick_text)


def _tick_text(mark: float, *, is_share: bool) -> str:
    if is_share:
        return f"{100 * mark:g}%"
    return f"{mark:g}"


# Tables


def _draw_grid(
    block: blocks.Matrix | blocks.Table,
    rows: Iterable[tuple[str, Sequence[Any]]],
    draw_cell: Callable[[Any, str, str], Shape],
) -> Shape:
    """Return a table of cells, each made from its value and the names of its row and column."""
    every = list(rows)
    if any(len(values) != len(block.columns) for _, values in every):
        raise ValueError("a row of a table must have as many values as there are columns")
    shown = []
    for name, values in every[:_MOST_ROWS]:
        pairs = zip(values, block.columns, strict=True)
        cells = [draw_cell(value, name, column) for value, column in islice(pairs, _MOST_COLUMNS)]
        shown.append((brief(name, _NAME), cells))
    names = block.columns[:_MOST_COLUMNS]
    columns = [brief(name, _NAME) for name in names]
    links = block.links if isinstance(block, blocks.Table) else {}
    addresses = {brief(name, _NAME): address_of(link) for name, link in links.items()}
    corner = brief(block.corner, _NAME)
    wide = any(_needs_room(cell) for _, cells in shown for cell in cells)
    wordy = [_is_wordy(shown, at) for at in range(len(columns))]
    left_out = len(every) - len(shown)
    return make_shape(
        block,
        "table",
        corner=corner,
        columns=columns,
        rows=shown,
        links=addresses,
        left_out=left_out,
        wide=wide,
        wordy=wordy,
    )


def _needs_room(cell: Shape) -> bool:
    return bool(cell.dot or (cell.address and not cell.shade))


def _is_wordy(rows: Sequence[tuple[str, Sequence[Shape]]], at: int) -> bool:
    """Return whether a column stands on the left: one of words, or of figures on an axis."""
    return any(cells[at].dot or _WORD.search(cells[at].text) for _, cells in rows)


def _make_cell(text: str, **more: Any) -> Shape:
    defaults = {"shade": "", "interval": "", "dot": None, "address": ""}
    return Shape(**{"text": text, **defaults, **more})


def _draw_cell(value: blocks.Cell, *_: str) -> Shape:
    if isinstance(value, blocks.Figure):
        dot = draw_figure(value)
        is_drawn = dot.at is not None or not dot.defined
        return _make_cell(dot.value, interval=dot.interval, dot=dot if is_drawn else None)
    if isinstance(value, blocks.Link):
        text = brief(value.text, _NAME)
        return _make_cell(text, address=address_of(value))
    if isinstance(value, str):
        return _make_cell(brief(value, _LONGEST))
    return _make_cell(value_text(value))


def _draw_table(block: blocks.Table) -> Shape:
    return _draw_grid(block, block.rows.items(), _draw_cell)


class _MatrixCells:
    """Draws the cells of a matrix, shaded by size; of a confusion, wrong ones as failures."""

    def __init__(self, block: blocks.Matrix) -> None:
        self._block = block
        values = [_plain_value(value) for row in block.values for value in row]
        counts = [value for value in values if isinstance(value, int)]
        is_count = all(value is None or isinstance(value, int) for value in values)
        self._top = max(counts, default=0) if is_count else 1

    def draw(self, value: blocks.Value | blocks.Figure, row: str, column: str) -> Shape:
        plain = _plain_value(value)
        if plain is None:
            return _make_cell("")
        block = self._block
        search = ""
        if plain:
            search = block.search.format(row=row, column=column)
        ends = value.interval if isinstance(value, blocks.Figure) else None
        text = value_text(plain, block.unit)
        shade = self._shade_of(plain, is_right=row == column)
        interval = ends_text(ends, block.unit)
        address = address_of(blocks.Link("", search))
        return _make_cell(
            text,
            shade=shade,
            interval=interval,
            address=address,
        )

    def _shade_of(self, value: blocks.Value, *, is_right: bool) -> str:
        size = as_number(value)
        if size is None or not 0 <= size <= self._top:
            return ""
        step = math.ceil(_SHADES * size / (self._top or 1))
        if self._block.is_confusion and not is_right:
            return f"w{step}"
        if self._block.is_confusion:
            return f"h{step} right"
        return f"h{step}"


def _plain_value(value: blocks.Value | blocks.Figure) -> blocks.Value:
    return value.value if isinstance(value, blocks.Figure) else value


def _draw_matrix(block: blocks.Matrix) -> Shape:
    """Draw a matrix: its grid, the totals below it, and differences in percentage points."""
    rows = zip(block.rows, block.values, strict=True)
    draw_cell = _MatrixCells(block).draw
    shape = _draw_grid(block, rows, draw_cell)
    shape.kind = "matrix"
    shape.totals = [brief(text, _NAME) for text in block.totals]
    points = [msgspec.structs.replace(figure, unit="points") for figure in block.differences]
    shape.differences = [draw_figure(figure) for figure in points]
    return shape


def _draw_words(block: blocks.Words) -> Shape:
    text = draw_text(block.text)
    return make_shape(block, "words", text=text)


def _draw_link(block: blocks.Link) -> Shape:
    text = brief(block.text, _LONGEST)
    address = address_of(block)
    return Shape(kind="samples", title="", text=text, address=address)


def _draw_section(block: blocks.Section) -> Shape:
    inside = draw_all(block.blocks)
    text = draw_text(block.note)
    return make_shape(
        block,
        "section",
        blocks=inside,
        folded=bool(block.folded),
        id=block.id,
        note=text,
        tone=block.tone,
    )


_DIRECTIONS = {"higher": ("worse", "better"), "lower": ("better", "worse")}
"""Which values are better -> words at both ends of the axis of a difference."""


def _draw_paired(block: blocks.PairedDifference) -> Shape:
    """Return a difference on an axis that holds zero and its interval."""
    ends = block.interval or ()
    known = [value for value in (block.difference, *ends) if value]
    low = min([0.0, *known])
    high = max([0.0, *known])
    margin = 0.2 * (high - low) or 1.0
    low = low - margin
    high = high + margin
    is_share = block.unit == "share"
    unit = "points" if is_share else block.unit
    figure = blocks.Figure(block.label, block.difference, block.interval, unit=unit)
    shape = draw_figure(figure, low, high)
    ticks = _ticks_of(low, high, unit)
    shape.ticks, shape.zero = ticks, place_on(0.0, high, low)
    shape.kind = "paired"
    shape.text = shape.value
    shape.unit = "points" if is_share else ""
    shape.verdict = brief(block.verdict, 40)
    shape.p = block.p
    shape.sides = [draw_figure(side) for side in (block.a, block.b)]
    shape.notes = [brief(note, _NOTE) for note in block.notes]
    shape.confidence = f"{100 * block.confidence:.3g}%"
    shape.directions = _DIRECTIONS.get(block.better_is, ("lower", "higher"))
    return shape


def _draw_differences(block: blocks.Differences) -> Shape:
    """Return differences on one axis around zero that holds all their intervals."""
    values = [end for line in block.lines for end in (line.difference, *(line.ends or ()))]
    largest_size = max((abs(value) for value in values if value), default=1 / 1.08)
    widest = 1.08 * largest_size
    lines = []
    for line in block.lines:
        shape = _draw_field(line)
        figure = blocks.Figure(line.label, line.difference, line.ends, unit="points")
        drawn_figure = draw_figure(figure, -widest, widest)
        shape.at = drawn_figure.at
        shape.low = drawn_figure.low
        shape.high = drawn_figure.high
        lines.append(shape)
    if any(values):
        ticks = _ticks_of(-widest, widest, "points")
    else:
        ticks = []
    notes = [brief(note, _LONGEST) for note in block.notes]
    return make_shape(
        block, "differences", lines=lines, ticks=ticks, directions=block.directions, notes=notes
    )


def _ticks_of(low: float, high: float, unit: str) -> list[Shape]:
    """Return some five round numbers on an axis, zero among them where it holds that."""
    scale = 100 if unit == "points" else 1
    rough = scale * (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough)
    first = math.ceil(scale * low / step)
    last = math.floor(scale * high / step)
    ticks = []
    for number_of_steps in range(first, last + 1):
        value = number_of_steps * step
        label = f"{value:+g}" if value else "0"
        shape = Shape(at=place_on(value / scale, high, low), label=label)
        ticks.append(shape)
    return ticks


def _draw_graph(block: blocks.Graph) -> Shape:
    from gradestack_plugins.pages.graphs import draw_sides  # noqa: PLC0415 - few runs have one

    sides = draw_sides(block)
    if sides is None:
        return make_shape(block, "words", text=draw_text("none"))
    return make_shape(block, "graphs", sides=sides)


_DRAWN_AS_THEY_ARE: Mapping[type, str] = {
    blocks.Answers: "answers",
    blocks.BeforeAfter: "amounts",
    blocks.CallDiff: "calls",
    blocks.Causes: "causes",
    blocks.Caveat: "caveat",
    blocks.Dumbbells: "dumbbells",
    blocks.GateLine: "gate",
    blocks.Head: "head",
    blocks.Quotes: "quotes",
    blocks.RunStrips: "strips",
}
"""Type of a block whose fields templates read as they are -> its kind."""
_DRAWERS: Mapping[type, Callable[[Any], Shape | Iterable[Shape]]] = {
    blocks.Counts: _draw_counts,
    blocks.Curve: _draw_curve,
    blocks.Differences: _draw_differences,
    blocks.Distribution: _draw_distribution,
    blocks.Figures: _draw_figures,
    blocks.Graph: _draw_graph,
    blocks.Interval: _draw_interval,
    blocks.Link: _draw_link,
    blocks.Matrix: _draw_matrix,
    blocks.PairedDifference: _draw_paired,
    blocks.Section: _draw_section,
    blocks.Table: _draw_table,
    blocks.Words: _draw_words,
}
"""Type of another block -> what draws it."""
