"""The shapes a metric may be shown in."""

from __future__ import annotations

import re
from typing import ClassVar

import attrs

from gradestack_plugins.reporters.text import UNDEFINED

_WORD = re.compile(rf"^(?!{UNDEFINED}|NaN|-?Infinity).*[^\W\d]{{2}}", re.DOTALL)


@attrs.frozen
class Figure:
    """One number with its name."""

    label: str
    value: str
    spread: str = ""
    """``± 0.031`` where the metric comes with a standard error."""
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
    scores: bool = False
    """Whether the bins are score ranges."""


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
    bands: bool = False
    """Whether the rows are score bands, which interpret scores and compute nothing."""

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
    folded: ClassVar[bool] = False
    title: str
    blocks: tuple[Block, ...]


Block = Figures | Histogram | Series | Table | Words | Section
