"""Panels, and blocks, the shapes they show.

Blocks hold values; how these are drawn is up to the reporter.

Texts are data: reporters escape them. A value of None is undefined, which is shown as such and
never as a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import msgspec

from gradestack import PluginError, suggest
from gradestack.jsonio import as_map, as_number, as_text

Place = Literal["overview", "figures", "sample", "compare", "page"]


class Panel(Protocol):
    """A section of a page that a plugin contributes: a function under ``@panel``.

    It returns blocks, any iterable of them; None, or no block, leaves the panel out. It must not
    change what it gets, and the same input has to give the same output.
    """

    contract: str
    title: str
    """Its heading, and its name in the navigation."""
    place: Place
    __name__: str
    __code__: Any

    def __call__(self, about: Any, /) -> Iterable[Block] | None:
        """Return blocks of what its place is about."""

    def __init_subclass__(cls) -> None:
        """Refuse a panel of an earlier contract, which was a class."""
        raise PluginError(
            f"panel {cls.__name__} is a class, of an earlier contract; write a function of what it "
            "shows under @blocks.panel(TITLE, place=PLACE)"
        )


def panel(
    title: str, *, place: Place = "overview"
) -> Callable[[Callable[[Any], Iterable[Block] | None]], Panel]:
    """Make a panel of a function that returns blocks.

    Args:
        title: Its heading.
        place: Where it stands, which decides what the function is given. ``overview``: on the
            report page below its first screen; the ``gradestack.Report``. ``figures``: beside the
            table of all figures; the report. ``sample``: in the drill-down of each sample; the row
            of results.jsonl. ``compare``: on the page of a comparison; the content of
            comparison.json. ``page``: a page of its own beside the report page; the report.

    Raises:
        PluginError: There is no such place, or no title.

    Examples:
        >>> @panel("Length", place="sample")
        ... def length(row):
        ...     return [Words(f"{len(row['predicted']['calls'])} calls")]
    """
    if place not in get_args(Place):
        hint = suggest(str(place), get_args(Place))
        raise PluginError(f"panel {title!r} has unknown place {place!r}{hint}")
    if not title or not isinstance(title, str):
        raise PluginError('a panel has no title: write @panel("Length")')

    def with_place(show: Callable[[Any], Iterable[Block] | None]) -> Panel:
        made: Any = show
        made.contract, made.title, made.place = "panel", title, place
        return made  # type: ignore[no-any-return]

    return with_place


Value = float | int | str | None
"""A number, a word, or None where it is undefined."""


class Figure(msgspec.Struct, frozen=True):
    """One value with its name."""

    label: str
    value: Value
    interval: tuple[float, float] | None = None
    """Both ends of its interval, where there is one."""
    note: str = ""
    """What it is made of, or why it is undefined."""


def figure_of(label: str, metrics: Mapping[str, Any], key: str, note: str = "") -> Figure:
    """Return a figure of an aggregator's metrics with the interval that stands beside it as
    ``KEY_interval``.

    Args:
        label: Its name.
        metrics: The metrics.
        key: Its key; one that is not there is undefined.
        note: What it is made of; default: why it has no value or no interval, where the metrics say
            so.
    """
    held = as_map(metrics.get(f"{key}_interval"))
    low, high = as_number(held.get("low")), as_number(held.get("high"))
    why = as_text(as_map(metrics.get("undefined")).get(key)) or as_text(held.get("reason"))
    ends = None if low is None or high is None else (low, high)
    return Figure(label, as_number(metrics.get(key)), ends, note or why)


class Figures(msgspec.Struct, frozen=True):
    """Figures side by side."""

    figures: Sequence[Figure]
    title: str = ""


class Interval(msgspec.Struct, frozen=True):
    """Figures with their intervals, one below the other on one axis."""

    figures: Sequence[Figure]
    """The figures, each a number or None."""
    title: str = ""
    low: float = 0.0
    """Left end of the axis."""
    high: float = 1.0
    """Its right end."""


class Matrix(msgspec.Struct, frozen=True):
    """Numbers in rows and columns, shaded by size.

    A confusion matrix, or agreement of each with each.
    """

    rows: Sequence[str]
    """Names of the rows."""
    columns: Sequence[str]
    """Names of the columns."""
    values: Sequence[Sequence[Value]]
    """Row by row, as many as there are columns; None for an empty cell."""
    title: str = ""
    corner: str = ""
    r"""What rows and columns are, such as ``expected \ predicted``."""
    search: str = ""
    """What the search box is given by a click on a cell, with ``{row}`` and ``{column}`` for its
    names; "" for cells that are no links.
    """


class Node(msgspec.Struct, frozen=True):
    """One node of a graph."""

    name: str
    """Its name, unique in the graph."""
    after: Sequence[str] = ()
    """Names of the nodes it depends on; those that are not in the graph are left out."""
    lines: Sequence[str] = ()
    """What it holds."""


class Graph(msgspec.Struct, frozen=True):
    """A small graph in layers, or two side by side: what was expected, and what was made.

    Of two graphs each node and edge shows whether the other has it. Cycles are drawn, too.
    """

    nodes: Sequence[Node]
    """The graph, or the expected one."""
    made: Sequence[Node] | None = None
    """The other one; empty where it could not be read; None where there is only one graph."""
    title: str = ""


class Distribution(msgspec.Struct, frozen=True):
    """How often values fall into each bin, group by group.

    Two groups back to back, otherwise one histogram each.
    """

    groups: Mapping[str, Sequence[float]]
    """Name of a group -> its values."""
    title: str = ""
    edges: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """Lower edges of the bins, growing; the last bin holds what is exactly the last edge.

    What lies outside is counted in bins of its own.
    """


class Counts(msgspec.Struct, frozen=True):
    """Counts of named things as a histogram, in the order given."""

    counts: Mapping[str, int]
    title: str = ""


class Series(msgspec.Struct, frozen=True):
    """A figure over a whole number, such as pass^k over k."""

    points: Mapping[int, Figure]
    """Number -> figure."""
    title: str = ""


class Table(msgspec.Struct, frozen=True):
    """Named rows of values."""

    columns: Sequence[str]
    """Headings of the columns behind the names."""
    rows: Mapping[str, Sequence[Cell]]
    """Name of a row -> its cells, as many as there are columns.

    Values, links, or figures, which are drawn with their intervals on an axis from 0 to 1.
    """
    title: str = ""
    corner: str = ""
    """Heading of the names."""


class Words(msgspec.Struct, frozen=True):
    """A text."""

    text: str
    title: str = ""


class Link(msgspec.Struct, frozen=True):
    """A link to the samples of the run that a filter finds.

    On a page without samples its text alone.
    """

    text: str
    """What is linked."""
    search: str = ""
    """What the search box would be given.

    Part of a task's id, of a tool's or argument's name or of a reason.
    """
    model: str = ""
    """Only samples of this model."""
    sample: str = ""
    """The sample to open, as addresses name it.

    ``task.trial``, or ``task`` where it was run once.
    """
    reason: tuple[str, str, str, str] | None = None
    """Only samples with this reason.

    Grader key, code, subject and argument, the last two "" where it has none, as
    ``index_of(report).given.kinds`` has them.
    """
    position: int | None = None
    """The sample to open, by its ``position`` in ``index_of(report)``.

    It goes before the others.
    """


class Section(msgspec.Struct, frozen=True):
    """Blocks under a common heading."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False
    """Whether only the heading is shown until it is opened."""


Cell = Value | Figure | Link
Block = (
    Figures
    | Interval
    | Matrix
    | Graph
    | Distribution
    | Counts
    | Series
    | Table
    | Words
    | Link
    | Section
)
"""Any of the shapes a panel returns."""
