"""The tables of a run's rows: samples, grades, items, reasons, calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, islice
from math import isfinite
from typing import Any

import msgspec

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number, as_text, check_utf8, compact
from gradestack_plugins.tables.frame import COLUMNS, Line, Table

OF_ROWS = ("samples", "grades", "items", "reasons", "calls")
_BLOCK = 4096
"""Number of rows of which tables are made at once."""
_COUNTS, _AMOUNTS = tuple(COLUMNS["samples"])[12:18], tuple(COLUMNS["samples"])[18:21]
_SOURCE = ("file", "line", "ordinal")
_GRADED: dict[str, Any] = dict.fromkeys(("state", "score", "passed", "label", "gold", "parts"))
_REASONS = [dict.fromkeys(("code", "subject", "pointer"))]
_ITEM = dict.fromkeys(("id", "outcome", "score", "label", "gold", "parts")) | {"reasons": _REASONS}
_PAIRED = dict.fromkeys(("outcome", "score")) | {
    "counts": {"extra": None},
    "metadata": {"call": msgspec.UNSET},
}
_ROW: dict[str, Any] = dict.fromkeys(
    ("run", "model_name", "cluster", "facets", "status", "ended", "state", "passed")
) | {
    "sample": dict.fromkeys(("id", "input")),
    "source": dict.fromkeys(_SOURCE),
    "usage": dict.fromkeys((*_COUNTS, *_AMOUNTS)),
    "grade": {"state": None, "score": None, "items": [_PAIRED]},
    "grades": {"*": {**_GRADED, "reasons": _REASONS, "items": [{**_ITEM, **_PAIRED}]}},
    "expected": {"calls": [dict.fromkeys(("name", "names"))]},
    "predicted": {"calls": [dict.fromkeys(("name", "error", "seconds"))]},
}
"""The keys of a row that tables need.

None stands for any value, "*" for any name, UNSET for a value that may be null.
"""


def _type(form: Any) -> Any:
    """Return the type that a form sketches: a struct for each object, null as a missing key."""
    if form is None or form is msgspec.UNSET:
        return Any
    if isinstance(form, list):
        return list[_type(form[0])]  # type: ignore[misc]
    if "*" in form:
        return dict[str, _type(form["*"])]  # type: ignore[misc]
    fields = [_field(name, inner) for name, inner in form.items()]
    return msgspec.defstruct("Part", fields, gc=False)


def _field(name: str, form: Any) -> Any:
    default = form if form is msgspec.UNSET else None
    return (name, _type(form) | None if form else _type(form), default)


def _conform(value: Any, form: Any) -> Any:
    """Return the parts of a value that are of a form; numbers that are not finite are left out."""
    if form is None or form is msgspec.UNSET:
        if isinstance(value, float) and not isfinite(value):
            return None
        return value
    if isinstance(form, list):
        if not isinstance(value, list):
            return None
        return [_conform(entry, form[0]) or {} for entry in value]
    entries = as_map(value)
    if "*" in form:
        return {name: _conform(entry, form["*"]) or {} for name, entry in entries.items()}
    conforms_by_name = {}
    for name, inner in form.items():
        if name in entries:
            conforms_by_name[name] = _conform(entries[name], inner)
    return conforms_by_name


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    """Return the decoder of rows, which most runs never need."""
    return msgspec.json.Decoder(_type(_ROW))


def rows_of(report: Report) -> Iterator[Any]:
    """Yield the parts of each row of a run that tables need."""
    decoder = _decoder()
    for number, _, line in report.lines():
        try:
            check_utf8(line)  # other keys are not decoded
            yield decoder.decode(line)
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            row = report.row(number, line)
            conform = _conform(row, _ROW)
            yield msgspec.convert(conform, decoder.type)


def row_table(report: Report, name: str) -> Table:
    """Return one table of the rows of a run."""
    rows = rows_of(report)
    blocks = [table for _, table in blocks_of((name,), rows)]
    columns = {
        column: list(chain.from_iterable(block[column] for block in blocks))
        for column in COLUMNS[name]
    }
    return Table(columns, COLUMNS[name])


def blocks_of(names: Sequence[str], rows: Iterable[Any]) -> Iterator[tuple[str, Table]]:
    """Yield tables of blocks of rows in one pass, each with its name, an empty one first."""
    for name in names:
        table = Table.of(COLUMNS[name], ())
        yield name, table
    numbered = enumerate(rows)
    while first := list(islice(numbered, _BLOCK)):
        block = _Block(first)
        for name in names:
            yield name, _table_of(name, block)


def _table_of(name: str, block: _Block) -> Table:
    types = COLUMNS[name]
    columns = zip(types, _COLUMNS[name](block), strict=True)
    typeds_by_column = {column: _typed(values, types[column]) for column, values in columns}
    return Table(typeds_by_column, types)


_TYPES = {"text": str, "int": int, "float": float, "bool": bool}
_NONE = type(None)


def _typed(column: Iterable[Any], kind: str) -> list[Any]:
    """Return a column; values of another type are None, and whole numbers floats among them."""
    values = list(column)
    if kind == "floats":
        return _typed_maps(values)
    if kind == "texts":
        return [as_map(value) for value in values]
    if {_TYPES[kind], _NONE}.issuperset(map(type, values)):
        return values
    if kind == "float":
        return [as_number(value) for value in values]
    return [value if type(value) is _TYPES[kind] else None for value in values]


def _typed_maps(values: list[Any]) -> list[Any]:
    """Return a column of mappings to numbers."""
    if not {dict}.issuperset(map(type, values)):
        values = [as_map(value) for value in values]
    parts = chain.from_iterable(value.values() for value in values)
    if {float, _NONE}.issuperset(map(type, parts)):
        return values
    return [{name: as_number(part) for name, part in value.items()} for value in values]


def _name(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    return compact(value)


_Columns = Iterable[Iterable[Any]]


class _Block:
    """Rows of which tables are made at once, with their grades and items."""

    def __init__(self, rows: Sequence[tuple[int, Any]]) -> None:
        self.rows = [(_key(position, row), row) for position, row in rows]

    @cached_property
    def grades(self) -> list[tuple[Line, Any]]:
        """The grades of the rows with their keys."""
        grades: list[tuple[Line, Any]] = []
        for key, row in self.rows:
            grades += (((*key, name), grade) for name, grade in (row.grades or {}).items())
        return grades

    @cached_property
    def items(self) -> list[list[tuple[Line, Any]]]:
        """The items of each grade with their keys."""
        return [
            [((*key, _name(item.id)), item) for item in grade.items or ()]
            for key, grade in self.grades
        ]


def _key(position: int, row: Any) -> Line:
    """Return the columns that name a row: position, id, model and run."""
    identifier = _name(row.sample and row.sample.id)
    return position, identifier, _name(row.model_name), _name(row.run)


def _columns(width: int, lines: Sequence[Line]) -> _Columns:
    if lines:
        return zip(*lines, strict=True)
    return [()] * width


def _graded(state: Any, score: Any) -> Line:
    """Return a state and its score: one without a state has that of its score."""
    if state == "graded" and type(score) is float:
        return state, score
    score = as_number(score)
    state = as_text(state) or ("skipped" if score is None else "graded")
    return state, score if state == "graded" else None


def _samples(block: _Block) -> _Columns:
    """Yield the columns of the table of samples, one list for each column, in its order."""
    rows = [row for _, row in block.rows]
    lines = [key for key, _ in block.rows]
    yield from _columns(4, lines)
    yield [_name(row.cluster) or key[1] for key, row in block.rows]
    for name in ("facets", "status", "ended"):
        yield [getattr(row, name) for row in rows]
    yield from _columns(2, [_graded(row.state, row.grade and row.grade.score) for row in rows])
    yield [row.passed for row in rows]
    calls = [row.predicted and row.predicted.calls for row in rows]
    yield [None if row_calls is None else len(row_calls) for row_calls in calls]
    for part, names in (("usage", (*_COUNTS, *_AMOUNTS)), ("source", _SOURCE)):
        parts = [getattr(row, part) for row in rows]
        for name in names:
            yield [value and getattr(value, name) for value in parts]


def _grades(block: _Block) -> _Columns:
    lines = [key for key, _ in block.grades]
    yield from _columns(5, lines)
    yield from _columns(2, [_graded(grade.state, grade.score) for _, grade in block.grades])
    for name in ("passed", "label", "gold", "parts"):
        yield [getattr(grade, name) for _, grade in block.grades]


def _items(block: _Block) -> _Columns:
    items = list(chain.from_iterable(block.items))
    lines = [key for key, _ in items]
    yield from _columns(6, lines)
    graded_items = [_graded_item(item) for _, item in items]
    yield from _columns(2, graded_items)
    for name in ("label", "gold", "parts"):
        yield [getattr(item, name) for _, item in items]


def _graded_item(item: Any) -> Line:
    state = item.outcome or "graded"
    return _graded(state, item.score)


def _reasons(block: _Block) -> _Columns:
    lines: list[tuple[Line, Any]] = []
    for (key, grade), items in zip(block.grades, block.items, strict=True):
        for owner_key, owner in [((*key, None), grade), *items]:
            reasons = owner.reasons or ()
            lines += ((owner_key, reason) for reason in reasons)
    keys = [key for key, _ in lines]
    yield from _columns(6, keys)
    for name in ("code", "subject", "pointer"):
        yield [as_text(getattr(reason, name)) for _, reason in lines]


def _calls(block: _Block) -> _Columns:
    lines: list[Line] = []
    for key, row in block.rows:
        lines += _lines_of_calls(key, row)
    return _columns(11, lines)


def _lines_of_calls(key: Line, row: Any) -> Iterator[Line]:
    """Yield the expected calls of a row, then those made, each with the index of its match."""
    expected = (row.expected and row.expected.calls) or ()
    predicted_calls = (row.predicted and row.predicted.calls) or ()
    items = _paired_items(row, len(expected))
    calls = [item.metadata.call for item in items]
    matches = calls or [None] * len(expected)
    scores = [_graded_item(item)[1] for item in items] or [None] * len(expected)
    for index, call in enumerate(expected):
        name = as_text(call.name) or "|".join(map(as_text, as_list(call.names)))
        yield *key, "expected", index, name, matches[index], scores[index], None, None
    expected_index: dict[int, int] = {}
    for index, match in enumerate(matches):
        if isinstance(match, int):
            expected_index.setdefault(match, index)
    for index, call in enumerate(predicted_calls):
        wanted = expected_index.get(index)
        score = None if wanted is None else scores[wanted]
        yield *key, "made", index, call.name, wanted, score, call.error, call.seconds


def _paired_items(row: Any, count: int) -> list[Any]:
    """Return the items, one per expected call, of the first grader that matches calls."""
    if not count:
        return []
    grades = row.grades or {}
    for grade in (row.grade, *map(grades.get, sorted(grades))):
        listed = (grade and grade.items) or ()
        items = [item for item in listed if not (item.counts and item.counts.extra)]
        if len(items) == count and all(map(_names_match, items)):
            return items
    return []


def _names_match(item: Any) -> bool:
    """Return whether an item says which call matches, or that none does."""
    return item.metadata is not None and item.metadata.call is not msgspec.UNSET


_COLUMNS: Mapping[str, Callable[[_Block], _Columns]] = {
    "samples": _samples,
    "grades": _grades,
    "items": _items,
    "reasons": _reasons,
    "calls": _calls,
}
