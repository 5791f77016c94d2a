"""Recognising the shape of metrics: any aggregator's JSON becomes figures, histograms, series, tables or words.

No aggregator is known by name. What a value is shown as follows from its shape alone:

* a number, or an object with a value and its standard error or interval: a figure (``0.596 ± 0.030 [0.54 – 0.65]``);
* a list of objects with ``lower``, ``upper`` and ``count``: a histogram; with a text: a table of bands;
* an object whose keys are numbers or end in one (``1``, ``pass^2``): a series over that number;
* an object of objects of numbers with common keys: a matrix; of figures: a table; of many others: the first;
* a list of flat objects: a table; null: "n/a" with its reason, never a zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack.jsonio import as_list, as_map, as_number, as_text, is_number
from gradestack_plugins.reporters import charts
from gradestack_plugins.reporters.blocks import Block, Cell, Figure, Figures, Section, Table, Words
from gradestack_plugins.reporters.estimates import REASONS, amount, figure, order, short_interval
from gradestack_plugins.reporters.grouping import by_label, with_errors
from gradestack_plugins.reporters.text import brief, number, title

_BAND_TEXTS = ("band", "label", "name", "meaning", "text", "interpretation", "description")
_NUMBERED = re.compile(r"(.*?)[\s@^_=-]*(\d{1,9})")
_EDGES = {"lower", "upper", "low", "high", "from", "to"}
_REASON_MAPS = ("undefined", "reasons", "notes", "why")
_SHORT = 40
_MOST_ROWS = 60
_MOST_COLUMNS = 30
_DEEPEST = 5


@attrs.frozen
class Scope:
    """Where in a metrics object one is, and what is known there of undefined figures."""

    path: str = ""
    """Dotted path of the object, with a dot behind; "" at the top."""
    depth: int = 0
    why: Mapping[str, str] = attrs.field(factory=dict)
    """Dotted path → why the figure there is undefined."""
    labels: tuple[str, ...] = ()
    """Label set in display order, where one is given."""

    def within(self, metrics: Mapping[str, Any]) -> Scope:
        """Return the scope with what an object says of its own figures."""
        found = dict(self.why)
        for word in _REASON_MAPS:
            for key, text in as_map(metrics.get(word)).items():
                found.setdefault(f"{self.path}{key}", as_text(text))
        given = as_list(metrics.get("labels")) or as_list(metrics.get("gold_labels"))
        labels = tuple(map(str, given)) or self.labels
        return attrs.evolve(self, why=found, labels=labels)

    def inner(self, key: str) -> Scope:
        """Return the scope of a value one level down."""
        return attrs.evolve(self, path=f"{self.path}{key}.", depth=self.depth + 1)

    def reason(self, key: str, metrics: Mapping[str, Any]) -> str:
        """Return why the figure ``key`` of ``metrics`` is undefined, "" when nothing says."""
        beside = (as_text(metrics.get(f"{key}_{word}")) for word in REASONS)
        return brief(
            next(filter(None, beside), "") or self.why.get(f"{self.path}{key}") or as_text(metrics.get("reason"))
        )

    def order(self, keys: Iterable[str]) -> list[str]:
        """Return keys in label order where they are labels, else as figures are ordered."""
        place = {label: number for number, label in enumerate(self.labels)}
        return sorted(order(keys), key=lambda key: place.get(key, len(place)))


def blocks_of(metrics: Mapping[str, Any], scope: Scope | None = None) -> tuple[Block, ...]:
    """Return the blocks of an object: its plain figures together first, then everything else in order."""
    scope = (scope or Scope()).within(metrics)
    metrics, rows = by_label(with_errors(metrics), scope.labels)
    figures: list[Figure] = []
    rest: list[Block] = [_table("By label", rows, scope)] if rows else []
    for key in scope.order(map(str, metrics)):
        if _only_explains(key, metrics) or (rows and key in {"labels", "gold_labels"}):
            continue
        value = metrics[key]
        found = _short_text(key, value) or figure(title(key), value, scope.reason(key, metrics))
        if found is not None:
            figures.append(found)
        else:
            rest.extend(_block(key, value, scope.inner(key)))
    return (*((Figures("", tuple(figures)),) if figures else ()), *rest)


def _short_text(key: str, value: Any) -> Figure | None:
    short = isinstance(value, str) and 0 < len(value) <= _SHORT
    return Figure(title(key), brief(value), plain=True) if short else None


def _only_explains(key: str, metrics: Mapping[str, Any]) -> bool:
    """Return whether a key only explains undefined figures, or only gives the order of labels."""
    if key == "labels" and isinstance(metrics[key], list):
        labels = set(map(str, metrics[key]))
        return any(labels & set(value) for value in metrics.values() if isinstance(value, Mapping))
    if key in _REASON_MAPS and isinstance(metrics[key], Mapping):
        return True
    owner = next((key.removesuffix(f"_{word}") for word in REASONS if key.endswith(f"_{word}")), None)
    return owner is not None and owner in metrics and amount(metrics[owner]) is None


def _block(key: str, value: Any, scope: Scope) -> Iterable[Block]:
    heading = title(key)
    if isinstance(value, Mapping):
        yield from _mapping(heading, value, scope)
    elif isinstance(value, list | tuple):
        yield from _list(heading, value)
    elif value != "":
        yield Words(heading, brief(value, 1000))


def _mapping(heading: str, fields: Mapping[str, Any], scope: Scope) -> Iterable[Block]:
    scope = scope.within(fields)
    fields = {key: with_errors(value) if isinstance(value, Mapping) else value for key, value in fields.items()}
    numbered = _numbered(fields, scope)
    chart: Block | None = _counts(heading, numbered) or charts.series(heading, numbered)
    values = list(fields.values())
    if chart is None and len(values) > 1 and all(isinstance(value, Mapping) and value for value in values):
        chart = _matrix(heading, fields, scope)
    if not fields:
        yield Words(heading, "none")
    elif chart is not None:
        yield chart
    elif scope.depth >= _DEEPEST and any(isinstance(value, dict | list) for value in values):
        yield Words(heading, brief(fields, 1000))
    else:
        more = len(fields) - _MOST_ROWS if all(isinstance(value, Mapping) for value in values) else 0
        if more > 0:
            fields = {key: fields[key] for key in scope.order(map(str, fields))[:_MOST_ROWS]}
        blocks = blocks_of(fields, scope)
        if more > 0:
            blocks = (*blocks, Words("", f"{number(more)} more {'is' if more == 1 else 'are'} in summary.json."))
        if len(blocks) == 1 and not isinstance(blocks[0], Section):
            inner = blocks[0].title
            yield attrs.evolve(blocks[0], title=f"{heading}: {inner[:1].lower()}{inner[1:]}" if inner else heading)
        elif blocks:
            yield Section(heading, blocks)


def _counts(heading: str, numbered: Sequence[tuple[str, int, Figure, Any]]) -> Block | None:
    """Return counts over a number: a histogram where the name says that they share something out (``… by …``)."""
    if " by " in f" {heading.lower()} ":
        return charts.counts_over(heading, numbered)
    if not numbered or not all(isinstance(value, int) for *_, value in numbered):
        return None
    labels = tuple(str(place) for _, place, *_ in numbered)
    cells = tuple(Cell(item.value) for _, _, item, _ in numbered)
    return Table(heading, "", labels[:_MOST_COLUMNS], (("", cells[:_MOST_COLUMNS]),))


def _numbered(fields: Mapping[str, Any], scope: Scope) -> Sequence[tuple[str, int, Figure, Any]]:
    """Return (common prefix, number, figure, value) per key in numeric order; empty unless all keys are numbered."""
    found = []
    for key, value in fields.items():
        match = _NUMBERED.fullmatch(str(key))
        item = figure(str(key), value, scope.reason(str(key), fields))
        if match is None or item is None:
            return ()
        found.append((match[1], int(match[2]), item, value))
    if len({prefix for prefix, *_ in found}) != 1 or len(found) < 2:
        return ()
    return sorted(found, key=lambda entry: entry[1])


def _matrix(heading: str, fields: Mapping[str, Mapping[str, Any]], scope: Scope) -> Table | None:
    columns = {str(key): None for row in fields.values() for key in row}
    cells = [value for row in fields.values() for value in row.values()]
    if len(columns) > _MOST_COLUMNS or len(cells) * 2 < len(columns) * len(fields):
        return None
    if not all(value is None or is_number(value) or figure("", value) for value in cells):
        return None
    return _table(heading, fields, scope)


def _table(heading: str, fields: Mapping[str, Mapping[str, Any]], scope: Scope) -> Table:
    cells = [value for row in fields.values() for value in row.values()]
    counts = all(isinstance(value, int) for value in cells)
    names = scope.order({str(key) for row in fields.values() for key in row})
    top = max((value for value in cells if isinstance(value, int)), default=0) if counts else 0
    shown = scope.order(map(str, fields))
    rows = tuple((row, tuple(_cell(fields[row], name, top) for name in names)) for row in shown[:_MOST_ROWS])
    headings = tuple(name if counts or name in scope.labels else title(name) for name in names)
    corner = "gold \\ predicted" if "confusion" in heading.lower() else ""
    return Table(heading, corner, headings, rows, max(0, len(shown) - _MOST_ROWS))


def _cell(row: Mapping[str, Any], name: str, top: int) -> Cell:
    if name not in row:
        return Cell("")
    value = row[name]
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(number(value), charts.heat(value, top) if top else "")
    fraction = as_number(value)
    if fraction is not None:
        return Cell(number(value), charts.heat(fraction, 1.0) if 0 <= fraction <= 1 else "")
    found = figure("", value)
    sure = short_interval(as_map(value))
    return Cell(" ".join(part for part in (found.value, found.spread, sure) if part) if found else "")


def _list(heading: str, values: Sequence[Any]) -> Iterable[Block]:
    if not values:
        yield Words(heading, "none")
        return
    histogram = charts.histogram(heading, values)
    if histogram is not None:
        yield histogram
    elif all(isinstance(value, Mapping) and value for value in values):
        yield bands(heading, values) or _records(heading, values)
    else:
        shown = ", ".join(number(value) if is_number(value) else brief(value, 80) for value in values[:_MOST_ROWS])
        more = len(values) - _MOST_ROWS
        yield Words(heading, f"{shown} … and {number(more)} more" if more > 0 else shown)


def bands(heading: str, values: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return score bands as a table of range, meaning and whatever figures come with them; None for other lists."""
    texts = [name for name in _BAND_TEXTS if all(as_text(band.get(name)) for band in values)]
    if not texts or not all(map(charts.edges_of, values)):
        return None
    texts = [name for name in texts if not _repeated(name, texts, values)]
    figures = order({str(key) for band in values for key in band if is_number(band[key])} - _EDGES)
    rows = tuple(
        (
            charts.span(*(charts.edges_of(band) or (None, None))),
            (*(Cell(brief(band[name], 300)) for name in texts), *(Cell(number(band.get(key))) for key in figures)),
        )
        for band in values
    )
    headings = ("Meaning" if name in {"text", "interpretation"} else title(name) for name in (*texts, *figures))
    return Table(heading, "Score", tuple(headings), rows, bands=True)


def _repeated(name: str, names: Sequence[str], values: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether another text of every band begins with this one."""
    others = [other for other in names if other != name]
    return any(all(band[other].startswith(f"{band[name]}:") for band in values) for other in others)


def _records(heading: str, values: Sequence[Mapping[str, Any]]) -> Table:
    keys = {str(key): None for value in values[:_MOST_ROWS] for key in value}
    columns = list(keys)[:_MOST_COLUMNS]
    rows = tuple(
        (str(place), tuple(Cell(_scalar(value[key]) if key in value else "") for key in columns))
        for place, value in enumerate(values[:_MOST_ROWS], start=1)
    )
    return Table(heading, "#", tuple(map(title, columns)), rows, max(0, len(values) - _MOST_ROWS))


def _scalar(value: Any) -> str:
    return number(value) if value is None or is_number(value) or isinstance(value, bool) else brief(value, 400)


def pull(blocks: Iterable[Block], wanted: Callable[[Block], bool]) -> tuple[Block | None, tuple[Block, ...]]:
    """Return the first wanted block, at any depth, and the others without it."""
    found: Block | None = None
    rest: list[Block] = []
    for it in blocks:
        block: Block | None = it
        if found is None and wanted(it):
            found, block = it, None
        elif found is None and isinstance(it, Section):
            found, inner = pull(it.blocks, wanted)
            block = attrs.evolve(it, blocks=inner) if inner else None
        if block is not None:
            rest.append(block)
    return found, tuple(rest)
