"""Panels, and blocks, the shapes they show.

Blocks hold values; how these are drawn is up to the reporter.

Texts are data: reporters escape them. A value of None is undefined, which is shown as such and
never as a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import msgspec

from gradestack import PluginError, Report, suggest
from gradestack.jsonio import as_map, as_number, as_text

Place = Literal["lead", "first", "overview", "figures", "sample", "compare", "page"]


class Panel(Protocol):
    """A section of a page that a plugin contributes: a function under ``@panel``.

    It returns blocks, any iterable of them; None, or no block, leaves the panel out. It must not
    change what it gets, and the same input has to give the same output.
    """

    contract: str
    title: str
    """Its heading, and its name in the navigation."""
    place: Place
    replaces: tuple[str, ...]
    """What of the first screen it stands for."""
    __name__: str
    __code__: Any

    def __call__(self, about: Any, /) -> Iterable[Block] | None:
        """Return blocks about the run, sample or comparison of its place."""

    def __init_subclass__(cls) -> None:
        """Refuse a panel of an earlier contract, which was a class."""
        raise PluginError(
            f"panel {cls.__name__} is a class, of an earlier contract; write a function of what it "
            "shows under @blocks.panel(TITLE, place=PLACE)"
        )


def panel(
    title: str, *, place: Place = "overview", replaces: Sequence[str] = ()
) -> Callable[[Callable[[Any], Iterable[Block] | None]], Panel]:
    """Make a panel of a function that returns blocks.

    Args:
        title: Its heading.
        place: Where it stands, which decides what the function is given. ``lead``: the first card
            of a report's first screen, beside the results; a ``Head`` among its blocks has the
            page's sentence. ``first``: below the results on the first screen. ``overview``: below
            the first screen. ``figures``: beside the table of all figures. All these are given the
            ``gradestack.Report``. ``sample``: in the drill-down of each sample; the row of
            results.jsonl. ``compare``: on the page of a comparison; the content of comparison.json.
            ``page``: a page of its own beside the report page; the report.
        replaces: What is left out of the first screen where the panel shows something: ``causes``,
            or a part of the paths of figures, as ``categories`` in ``ast.categories.accuracy``.

    Raises:
        PluginError: There is no such place, or no title.

    Examples:
        >>> @panel("Length", place="sample")
        ... def length(row):
        ...     return [Words(f"{len(row['predicted']['calls'])} calls")]
    """
    if place not in get_args(Place):
        known = get_args(Place)
        hint = suggest(str(place), known)
        raise PluginError(f"panel {title!r} has unknown place {place!r}{hint}")
    if not title or not isinstance(title, str):
        raise PluginError('a panel has no title: write @panel("Length")')

    def with_place(show: Callable[[Any], Iterable[Block] | None]) -> Panel:
        as_panel: Any = show
        as_panel.contract = "panel"
        as_panel.title = title
        as_panel.place = place
        as_panel.replaces = tuple(replaces)
        return as_panel  # type: ignore[no-any-return]

    return with_place


Tone = Literal["", "good", "bad", "strong", "code"]
"""How a part of a text stands out: as success, as failure, in bold, or as a name from the data."""
Verdict = Literal["better", "worse", "not clear"]


Value = float | int | str | None
"""A number, a word, or None where it is undefined."""


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
    ``index_of(report).reasons.kinds`` has them.
    """
    position: int | None = None
    """The sample to open, by its ``position`` in ``index_of(report)``.

    It goes before the others.
    """
    without: str = ""
    """Outcomes that are not shown, as the page numbers them."""
    href: str = ""
    """An address within the page, such as ``#problems``; it goes before all others."""


class Part(msgspec.Struct, frozen=True):
    """A part of a sentence."""

    text: str
    tone: Tone = ""


Text = str | Sequence[str | Part | Link]
"""A sentence, or its parts one after the other."""


class Figure(msgspec.Struct, frozen=True):
    """One value with its name."""

    label: str
    value: Value
    interval: tuple[float, float] | None = None
    """Both ends of its interval, where there is one."""
    note: str = ""
    """What it is made of, or why it is undefined."""
    unit: str = ""
    """``share`` is written in percent, ``usd`` and ``seconds`` with their signs."""
    meaning: str = ""
    """What it means, in a line or two, for who taps or points at its name."""
    model: str = ""
    """The model it is of; figures of one label that follow each other stand together."""
    threshold: float | None = None
    """What a gate asks of it."""
    gate: str = ""
    """The gate in words."""


def find_metrics(about: Report, aggregator: str, figure: str) -> Mapping[str, Any]:
    """Return the figures of the first aggregator of a name that has a figure; {} without one."""
    for aggregators in about.aggregates.values():
        metrics = as_map(aggregators.get(aggregator))
        if figure in metrics:
            return metrics
    return {}


def figure_of(
    label: str, metrics: Mapping[str, Any], key: str, note: str = "", unit: str = ""
) -> Figure:
    """Return a figure of an aggregator's metrics with its interval, which is recorded as
    ``KEY_interval``.

    Args:
        label: Its name.
        metrics: The metrics.
        key: Its key; one that is not there is undefined.
        note: What it is made of; default: why it has no value or no interval, where the metrics say
            so.
        unit: Its unit, as a figure has it.
    """
    interval = as_map(metrics.get(f"{key}_interval"))
    low = as_number(interval.get("low"))
    high = as_number(interval.get("high"))
    undefined = metrics.get("undefined")
    why = as_text(as_map(undefined).get(key)) or as_text(interval.get("reason"))
    if low is None or high is None:
        ends = None
    else:
        ends = (low, high)
    return Figure(label, as_number(metrics.get(key)), ends, note or why, unit)


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
    has_axis: bool = True
    """Whether they are drawn; figures of different units are not."""


class Matrix(msgspec.Struct, frozen=True):
    """Numbers in rows and columns, shaded by size.

    A confusion matrix, or the agreement of each pair.
    """

    rows: Sequence[str]
    """Names of the rows."""
    columns: Sequence[str]
    """Names of the columns."""
    values: Sequence[Sequence[Value | Figure]]
    """Row by row, as many as there are columns; None for an empty cell, a figure has its interval
    below it.
    """
    title: str = ""
    corner: str = ""
    r"""What rows and columns are, such as ``expected \ predicted``."""
    search: str = ""
    """What the search box is given by a click on a cell, with ``{row}`` and ``{column}`` for its
    names; "" for cells that are no links.
    """
    unit: str = ""
    """Of all values, as a figure has it."""
    is_confusion: bool = False
    """Whether a cell is right where its row and its column have one name."""
    totals: Sequence[str] = ()
    """What stands below the name of each row."""
    differences: Sequence[Figure] = ()
    """The difference of each row between two columns, in points."""


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
    """Counts of values in bins, group by group.

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
    links: Mapping[str, Link] = {}
    """Name of a row -> what it leads to."""


class Words(msgspec.Struct, frozen=True):
    """A text."""

    text: Text
    title: str = ""


class Answered(msgspec.Struct, frozen=True):
    """A question of a reader with its answer."""

    question: str
    text: Text


class Head(msgspec.Struct, frozen=True):
    """The head of a page: the name of what was graded, the result, and how many runs it is from.

    A panel of the place ``lead`` may begin with one; its sentence replaces the page's own.
    """

    sentence: Text
    """The outcome in one sentence."""
    about: Sequence[Part] = ()
    """Model, source file, date; what is not recorded is left out."""
    note: Text = ""
    """What the sentence counts, below it."""
    verdict: Verdict | None = None
    """Of a comparison."""
    answers: Sequence[Answered] = ()
    """What a reader wants to know first, below the sentence."""


class GateLine(msgspec.Struct, frozen=True):
    """One gate with what decided it."""

    rule: str
    """As the suite has it, such as ``reward.mean >= 0.4``."""
    value: str
    """What the rule compares, as text."""
    passed: bool | None
    """None where nothing was graded."""
    interval: tuple[float, float] | None = None
    threshold: float | None = None
    at: float | None = None
    """The value itself where it lies between 0 and 1."""
    note: str = ""
    """What is asked, and how many runs it counts."""
    unit: str = ""
    """Of the interval, as a figure has it."""
    doubt: str = ""
    """On which side of the threshold the figure may be as well; "" where the interval decides."""


class PairedDifference(msgspec.Struct, frozen=True):
    """One figure of two sides, and the difference of their tasks, with zero on its axis."""

    label: str
    a: Figure
    """The baseline with its own interval; its label is its name."""
    b: Figure
    difference: float | None
    interval: tuple[float, float] | None
    """The interval that decides the verdict."""
    verdict: str = ""
    p: float | None = None
    unit: str = "share"
    """Of both figures; the difference of shares is in points."""
    notes: Sequence[str] = ()
    """Sentences below, such as the smallest difference that would be found."""
    confidence: float = 0.95
    """Of the interval."""
    better_is: str = "higher"
    """Which values are better: ``higher``, ``lower`` or ``neither``."""


class DifferenceLine(msgspec.Struct, frozen=True):
    """One figure of two sides with its difference."""

    label: str
    values: str
    """Both values: ``65.4% → 51.7%``."""
    change: str
    interval: str
    """Both ends of the interval that decides, or why there is none."""
    verdict: str = ""
    note: str = ""
    difference: float | None = None
    """The difference of shares, which is drawn."""
    ends: tuple[float, float] | None = None
    """Both ends of its interval."""
    is_certain: bool = False


class Differences(msgspec.Struct, frozen=True):
    """Differences of figures, one below the other on one axis with zero in its middle."""

    lines: Sequence[DifferenceLine]
    directions: tuple[str, str] = ("lower", "higher")
    """Words at both ends of the axis."""
    notes: Sequence[str] = ()
    title: str = ""


class TaskChange(msgspec.Struct, frozen=True):
    """A task of two sides."""

    task: str
    text: str
    """What was to be done, in short."""
    a: int
    """How many of its trials pass on the side of the baseline."""
    b: int
    of: int
    link: Link | None = None


class TaskGroup(msgspec.Struct, frozen=True):
    """Tasks that changed in one way."""

    title: str
    tasks: Sequence[TaskChange]
    tone: Tone = ""
    """``good`` for tasks that got better, ``bad`` for those that got worse."""
    left_out: int = 0
    """Tasks of the group that are not listed."""
    more: Link | None = None
    """Where these are."""


class Dumbbells(msgspec.Struct, frozen=True):
    """Tasks that changed between two sides, group by group: a ring for A, a full dot for B."""

    groups: Sequence[TaskGroup]
    a: str
    b: str
    noun: str = "passed"
    rest: Text = ""
    """What is said of the tasks that did not change."""
    has_ids: bool = False
    """Whether addresses lead to its groups and tasks: once on a page."""
    title: str = ""


class CauseLine(msgspec.Struct, frozen=True):
    """One cause of failures."""

    name: Link
    samples: int
    often: str = ""
    """``mostly``, ``always`` or ``most often``, and what it is about."""
    about: str = ""
    about_samples: int = 0
    """How many of its samples are about that."""
    also: Link | None = None
    """Samples that passed although a grader gave the same reason."""
    parts: Sequence[CauseLine] = ()
    kinds: int = 0
    """How many parts there are, shown or not."""
    rest: int = 0
    """Samples in none of the parts shown."""
    noun: str = "tools"
    samples_b: int | None = None
    """Samples of the other side, of two."""
    difference: Figure | None = None


class Causes(msgspec.Struct, frozen=True):
    """Why samples failed: each counts once, and what is not shown is in the rest."""

    lines: Sequence[CauseLine]
    total: int
    """Samples that failed; what the lines and the rest add up to."""
    rest: int = 0
    columns: tuple[str, str] | None = None
    """Names of two sides."""
    title: str = ""
    whole: bool = False
    """Whether parts, too, are shown."""


class Change(msgspec.Struct, frozen=True):
    """One quantity before and after, or, of one run, what is known of it."""

    quantity: str
    values: Sequence[str]
    """As many as there are columns; "" for what is not recorded."""
    clear: bool = False
    """Whether the change is one that is not chance."""


class BeforeAfter(msgspec.Struct, frozen=True):
    """Quantities such as cost, tokens and seconds."""

    columns: Sequence[str]
    rows: Sequence[Change]
    title: str = ""
    corner: str = ""
    note: str = ""


class Caveat(msgspec.Struct, frozen=True):
    """A warning to read before the figures are quoted."""

    text: Text
    """A sentence; its link leads to the evidence."""
    more: Text = ""


class Curve(msgspec.Struct, frozen=True):
    """Lines of figures over a number, such as pass^k over k, each with a band for its intervals.

    Shares are drawn on an axis from 0 to 1.
    """

    lines: Mapping[str, Mapping[float, Figure]]
    """Name of a line -> its points."""
    title: str = ""
    x: str = ""
    """What the number is."""
    is_ideal: bool = False
    """Whether a line shows where both are equal."""


class RunMark(msgspec.Struct, frozen=True):
    """One run of a task, as a letter or a label."""

    letter: str
    text: str
    """What the letter stands for."""
    right: bool | None = None
    """None where there is no run."""
    link: Link | None = None


class RunStrip(msgspec.Struct, frozen=True):
    """The runs of a task side by side."""

    task: Link
    expected: str
    marks: Sequence[RunMark]
    cells: Sequence[Value] = ()
    """As many as the list has columns."""
    verdict: str = ""
    tone: Tone = ""


class RunStrips(msgspec.Struct, frozen=True):
    """Tasks, each with its runs."""

    strips: Sequence[RunStrip]
    columns: Sequence[str] = ()
    title: str = ""
    key: str = ""
    """What the letters stand for."""
    left_out: int = 0


class Quote(msgspec.Struct, frozen=True):
    """A text that runs of one group have in common, such as that of an error."""

    name: Link
    text: str
    samples: int
    note: str = ""
    examples: Sequence[Link] = ()


class Quotes(msgspec.Struct, frozen=True):
    """Groups of runs, each with a text as it was recorded."""

    quotes: Sequence[Quote]
    total: int
    """Samples of all groups, which shares are of."""
    title: str = ""


class Answer(msgspec.Struct, frozen=True):
    """A question, its expected answer, and the one that was given."""

    question: Link
    expected: str
    given: str
    right: bool | None = None


class Answers(msgspec.Struct, frozen=True):
    """Answers beside what was expected."""

    answers: Sequence[Answer]
    title: str = ""
    left_out: int = 0


class CallPair(msgspec.Struct, frozen=True):
    """An expected call, and how each side made it."""

    expected: str
    """The call as text."""
    sides: Sequence[str]
    """As many as there are sides: the call as made, "" where it was not."""
    marks: Sequence[Literal["equal", "different", "not called"]] = ()


class Message(msgspec.Struct, frozen=True):
    """A message of a conversation."""

    role: str
    text: str
    calls: Sequence[str] = ()
    """The calls it makes, as texts."""


class Conversation(msgspec.Struct, frozen=True):
    """A run's conversation from where it parts from that of another run."""

    folded: Sequence[Message]
    """Messages before."""
    note: str
    """How many these are."""
    messages: Sequence[Message]
    left_out: int = 0
    """Further messages, which are not shown."""


class CallDiff(msgspec.Struct, frozen=True):
    """The calls of two runs of one task beside the expected ones."""

    sides: Sequence[Link]
    """Both runs."""
    pairs: Sequence[CallPair]
    unexpected: Sequence[Sequence[str]] = ()
    """Of each side its calls that no expected one is answered by."""
    facts: Sequence[Change] = ()
    """Messages, cost, seconds."""
    title: str = ""
    conversations: Sequence[Conversation] = ()
    """Of each side, where both are recorded."""
    id: str = ""
    """Its id on the page."""


class Section(msgspec.Struct, frozen=True):
    """Blocks under a common heading."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False
    """Whether only the heading is shown until it is opened."""
    note: Text = ""
    """What stands beside the heading."""
    id: str = ""
    """Its id on the page."""
    tone: Tone = ""
    """``bad`` for what has to be read first."""


Cell = Value | Figure | Link
Block = (
    Answers
    | BeforeAfter
    | CallDiff
    | Causes
    | Caveat
    | Counts
    | Curve
    | Differences
    | Distribution
    | Dumbbells
    | Figures
    | GateLine
    | Graph
    | Head
    | Interval
    | Link
    | Matrix
    | PairedDifference
    | Quotes
    | RunStrips
    | Section
    | Table
    | Words
)
"""Any of the shapes a panel returns."""
