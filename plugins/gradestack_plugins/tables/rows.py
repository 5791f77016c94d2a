"""The tables of a run's rows: samples, grades, items, reasons, calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from math import isfinite
from typing import Any

import msgspec

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number, as_text, check_utf8, compact
from gradestack_plugins.tables.frame import COLUMNS, Line, Table

OF_ROWS = ("samples", "grades", "items", "reasons", "calls")
_COUNTS, _AMOUNTS = tuple(COLUMNS["samples"])[12:18], tuple(COLUMNS["samples"])[18:21]

_GRADED: dict[str, Any] = dict.fromkeys(("state", "score", "passed", "label", "gold", "parts"))
_REASONS = [dict.fromkeys(("code", "subject", "pointer"))]
_ITEM = dict.fromkeys(("id", "outcome", "score", "label", "gold", "parts")) | {"reasons": _REASONS}
_PAIRED = [
    dict.fromkeys(("outcome", "score"))
    | {"counts": {"extra": None}, "metadata": {"call": msgspec.UNSET}}
]
_ROW: dict[str, Any] = dict.fromkeys(
    ("run", "model_name", "cluster", "facets", "status", "ended", "state", "passed")
) | {
    "sample": dict.fromkeys(("id", "input")),
    "source": dict.fromkeys(("file", "line", "ordinal")),
    "usage": dict.fromkeys((*_COUNTS, *_AMOUNTS)),
    "grade": {"state": None, "score": None, "items": _PAIRED},
    "grades": {"*": {**_GRADED, "reasons": _REASONS, "items": [{**_ITEM, **_PAIRED[0]}]}},
    "expected": {"calls": [dict.fromkeys(("name", "names"))]},
    "predicted": {"calls": [dict.fromkeys(("name", "error", "seconds"))]},
}
"""What tables need of a row.

None stands for any value, "*" for any name, UNSET for what may be null.
"""


def _type(form: Any) -> Any:
    """Return the type of which a form is the sketch.

    A struct for each object, what is null or not there as None.
    """
    if form is None or form is msgspec.UNSET:
        return Any
    if isinstance(form, list):
        return list[_type(form[0])]  # type: ignore[misc]
    if "*" in form:
        return dict[str, _type(form["*"])]  # type: ignore[misc]
    fields: list[Any] = [
        (
            name,
            _type(each) if not each else _type(each) | None,
            each if each is msgspec.UNSET else None,
        )
        for name, each in form.items()
    ]
    return msgspec.defstruct("Part", fields, gc=False)


def _conform(value: Any, form: Any) -> Any:
    """Return what of a value is of a form.

    What is not is left out, a number that is not finite, too.
    """
    if form is None or form is msgspec.UNSET:
        return None if isinstance(value, float) and not isfinite(value) else value
    if isinstance(form, list):
        return (
            [_conform(each, form[0]) or {} for each in value] if isinstance(value, list) else None
        )
    if "*" in form:
        return {name: _conform(each, form["*"]) or {} for name, each in as_map(value).items()}
    found = as_map(value)
    return {name: _conform(found[name], each) for name, each in form.items() if name in found}


_Row: Any = _type(_ROW)
_decode = msgspec.json.Decoder(_Row).decode


def rows_of(report: Report) -> Iterator[Any]:
    """Yield what tables need of each row of a run."""
    for number, _, line in report.lines():
        try:
            check_utf8(line)  # what is left out is not looked at
            yield _decode(line)
        except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
            yield msgspec.convert(_conform(report.row(number, line), _ROW), _Row)


_BLOCK = 4096
"""Rows of which tables are made at once."""


def row_table(report: Report, name: str) -> Table:
    """Return one table of the rows of a run."""
    blocks = [table for _, table in blocks_of((name,), rows_of(report))]
    columns = {
        column: list(chain.from_iterable(each[column] for each in blocks))
        for column in COLUMNS[name]
    }
    return Table(columns, COLUMNS[name])


def blocks_of(names: Sequence[str], rows: Iterable[Any]) -> Iterator[tuple[str, Table]]:
    """Yield tables of blocks of rows in one pass, each with its name.

    First of each an empty one.
    """
    yield from ((name, Table.of(COLUMNS[name], ())) for name in names)
    rest = enumerate(rows)
    while block := list(islice(rest, _BLOCK)):
        found = _Block(block)
        for name in names:
            types, columns = COLUMNS[name], _COLUMNS[name](found)
            yield (
                name,
                Table(
                    {each: _typed(c, types[each]) for each, c in zip(types, columns, strict=True)},
                    types,
                ),
            )


_PLAIN = {"text": str, "int": int, "float": float, "bool": bool}
_NONE = type(None)


def _typed(values: Iterable[Any], kind: str) -> list[Any]:
    """Return a column; what is not of its type is as if it were not there, and a whole number is a
    float among them.
    """
    found = list(values)
    if kind == "floats":
        if not {dict}.issuperset(map(type, found)):
            found = [as_map(each) for each in found]
        if {float, _NONE}.issuperset(
            map(type, chain.from_iterable(each.values() for each in found))
        ):
            return found
        return [{name: as_number(part) for name, part in each.items()} for each in found]
    if kind == "texts":
        return [as_map(each) for each in found]
    if {_PLAIN[kind], _NONE}.issuperset(map(type, found)):
        return found
    if kind == "float":
        return [as_number(each) for each in found]
    return [each if type(each) is _PLAIN[kind] else None for each in found]


def _name(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else compact(value)


_Columns = Iterable[Iterable[Any]]


class _Block:
    """Rows of which tables are made at once, what several tables are of being found once.

    Each with its key.
    """

    def __init__(self, rows: Sequence[tuple[int, Any]]) -> None:
        self.rows = [
            (
                (
                    position,
                    _name(row.sample and row.sample.id),
                    _name(row.model_name),
                    _name(row.run),
                ),
                row,
            )
            for position, row in rows
        ]

    @cached_property
    def grades(self) -> list[tuple[Line, Any]]:
        return [
            ((*key, name), grade)
            for key, row in self.rows
            for name, grade in (row.grades or {}).items()
        ]

    @cached_property
    def items(self) -> list[list[tuple[Line, Any]]]:
        """Of each grade its items."""
        return [
            [((*key, _name(item.id)), item) for item in grade.items or ()]
            for key, grade in self.grades
        ]


def _columns(width: int, lines: Sequence[Line]) -> _Columns:
    return zip(*lines, strict=True) if lines else [()] * width


def _graded(state: Any, score: Any) -> Line:
    if state == "graded" and type(score) is float:
        return state, score
    score = as_number(score)
    state = as_text(state) or ("skipped" if score is None else "graded")
    return state, score if state == "graded" else None


def _samples(block: _Block) -> _Columns:
    rows = [row for _, row in block.rows]
    yield from _columns(4, [key for key, _ in block.rows])
    yield [_name(row.cluster) or key[1] for key, row in block.rows]
    yield from ([getattr(row, name) for row in rows] for name in ("facets", "status", "ended"))
    yield from _columns(2, [_graded(row.state, row.grade and row.grade.score) for row in rows])
    yield [row.passed for row in rows]
    yield [
        None if (made := row.predicted and row.predicted.calls) is None else len(made)
        for row in rows
    ]
    for part, names in (("usage", (*_COUNTS, *_AMOUNTS)), ("source", ("file", "line", "ordinal"))):
        held = [getattr(row, part) for row in rows]
        yield from ([each and getattr(each, name) for each in held] for name in names)


def _grades(block: _Block) -> _Columns:
    yield from _columns(5, [key for key, _ in block.grades])
    yield from _columns(2, [_graded(grade.state, grade.score) for _, grade in block.grades])
    yield from (
        [getattr(grade, name) for _, grade in block.grades]
        for name in ("passed", "label", "gold", "parts")
    )


def _items(block: _Block) -> _Columns:
    items = list(chain.from_iterable(block.items))
    yield from _columns(6, [key for key, _ in items])
    yield from _columns(2, [_graded(item.outcome or "graded", item.score) for _, item in items])
    yield from ([getattr(item, name) for _, item in items] for name in ("label", "gold", "parts"))


def _reasons(block: _Block) -> _Columns:
    owned = (
        [((*key, None), grade), *items]
        for (key, grade), items in zip(block.grades, block.items, strict=True)
    )
    lines = [
        (key, reason) for key, each in chain.from_iterable(owned) for reason in each.reasons or ()
    ]
    yield from _columns(6, [key for key, _ in lines])
    for name in ("code", "subject", "pointer"):
        yield [value if type(value := getattr(each, name)) is str else "" for _, each in lines]


def _calls(block: _Block) -> _Columns:
    lines: list[Line] = []
    for key, row in block.rows:
        expected = (row.expected and row.expected.calls) or ()
        made = (row.predicted and row.predicted.calls) or ()
        items = _paired_items(row, len(expected))
        answers = [item.metadata.call for item in items] or [None] * len(expected)
        scores = [_graded(item.outcome or "graded", item.score)[1] for item in items] or [
            None
        ] * len(expected)
        for index, call in enumerate(expected):
            name = as_text(call.name) or "|".join(map(as_text, as_list(call.names)))
            lines.append((*key, "expected", index, name, answers[index], scores[index], None, None))
        answered: dict[int, int] = {}
        for at, made_at in enumerate(answers):
            if isinstance(made_at, int):
                answered.setdefault(made_at, at)
        for index, call in enumerate(made):
            wanted = answered.get(index)
            score = None if wanted is None else scores[wanted]
            lines.append((*key, "made", index, call.name, wanted, score, call.error, call.seconds))
    return _columns(11, lines)


def _paired_items(row: Any, count: int) -> list[Any]:
    """Return the items, one per expected call, of the first grader that says which call answers
    which.
    """
    if count:
        others = (found[name] for found in (row.grades or {},) for name in sorted(found))
        for grade in chain((row.grade,), others):
            items = [
                each
                for each in (grade and grade.items) or ()
                if not (each.counts and each.counts.extra)
            ]
            if len(items) == count and all(
                item.metadata is not None and item.metadata.call is not msgspec.UNSET
                for item in items
            ):
                return items
    return []


_COLUMNS: Mapping[str, Callable[[_Block], _Columns]] = {
    "samples": _samples,
    "grades": _grades,
    "items": _items,
    "reasons": _reasons,
    "calls": _calls,
}
