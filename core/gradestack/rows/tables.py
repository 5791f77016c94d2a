"""Tables of a run: rows of results.jsonl as columns of plain values, null where nothing was graded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import attrs

from gradestack.jsonio.values import as_list, as_map, as_number, as_text, compact
from gradestack.rows.read import Row

TableName = Literal["samples", "grades", "items", "reasons", "calls"]
Line = tuple[Any, ...]
_KEY = ("position", "id", "model", "run")
_GRADE = ("state", "score", "passed", "label", "gold", "parts")
_ITEM = ("state", "score", "label", "gold", "parts")
_COUNTS = ("requests", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
_AMOUNTS = ("cost_usd", "seconds", "first_token_seconds")
_SAMPLE = ("cluster", "facets", "status", "ended", "state", "score", "passed", "n_calls")
COLUMNS: Mapping[TableName, tuple[str, ...]] = {
    "samples": (*_KEY, *_SAMPLE, *_COUNTS, *_AMOUNTS, "source_file", "source_line", "source_ordinal"),
    "grades": (*_KEY, "grader", *_GRADE),
    "items": (*_KEY, "grader", "item", *_ITEM),
    "reasons": (*_KEY, "grader", "item", "code", "subject", "pointer"),
    "calls": (*_KEY, "side", "index", "name", "matched", "score", "error", "seconds"),
}
"""Names of the columns of each table, in order; none is made from data."""


@attrs.frozen(eq=False, repr=False)
class Table:
    """One table of a run: ``table["score"]`` is a column, ``len(table)`` the number of rows.

    Attributes:
        columns: Name -> values, lists of one length.
    """

    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["position"])

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, each as a mapping of columns to values."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))


def table_of(name: TableName, rows: Iterable[Row]) -> Table:
    """Return one table of rows of results.jsonl; what is not of the type it should have is as if it were not there."""
    columns: dict[str, list[Any]] = {column: [] for column in COLUMNS[name]}
    for _, line in lines_of((name,), rows):
        for values, value in zip(columns.values(), line, strict=True):
            values.append(value)
    return Table(columns)


def lines_of(names: Iterable[TableName], rows: Iterable[Row]) -> Iterator[tuple[TableName, Line]]:
    """Yield the lines of several tables in one pass over the rows, each with the table it belongs to."""
    chosen = [(name, _LINES[name]) for name in names]
    for position, row in enumerate(rows):
        ids = (as_map(row.get("sample")).get("id"), row.get("model_name"), row.get("run"))
        key = (position, *map(_name, ids))
        for name, lines in chosen:
            for line in lines(row):
                yield name, (*key, *line)


def _name(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else compact(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _graded(grade: Mapping[str, Any], state: str) -> tuple[str, float | None]:
    """Return state and score; the 0.0 that rows carry for other states is no score."""
    score = as_number(grade.get("score"))
    state = state or ("skipped" if score is None else "graded")
    return state, score if state == "graded" else None


def _classes(grade: Mapping[str, Any]) -> Line:
    parts = {name: as_number(part) for name, part in as_map(grade.get("parts")).items()}
    return _text(grade.get("label")), _text(grade.get("gold")), parts


def _grades_of(row: Row) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for grader, grade in as_map(row.get("grades")).items():
        yield grader, as_map(grade)


def _items_of(grade: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [as_map(item) for item in as_list(grade.get("items"))]


def _samples(row: Row) -> Iterator[Line]:
    usage, source = as_map(row.get("usage")), as_map(row.get("source"))
    made = as_map(row.get("predicted")).get("calls")
    passed = row.get("passed")
    yield (
        _name(row.get("cluster")) or _name(as_map(row.get("sample")).get("id")),
        as_map(row.get("facets")),
        _text(row.get("status")),
        _text(row.get("ended")),
        *_graded(as_map(row.get("grade")), as_text(row.get("state"))),
        passed if isinstance(passed, bool) else None,
        len(made) if isinstance(made, list) else None,
        *(_whole(usage.get(name)) for name in _COUNTS),
        *(as_number(usage.get(name)) for name in _AMOUNTS),
        _text(source.get("file")),
        _whole(source.get("line")),
        _whole(source.get("ordinal")),
    )


def _grades(row: Row) -> Iterator[Line]:
    for grader, grade in _grades_of(row):
        passed = grade.get("passed")
        verdict = passed if isinstance(passed, bool) else None
        yield grader, *_graded(grade, as_text(grade.get("state"))), verdict, *_classes(grade)


def _items(row: Row) -> Iterator[Line]:
    for grader, grade in _grades_of(row):
        for item in _items_of(grade):
            yield grader, _name(item.get("id")), *_graded(item, as_text(item.get("outcome", "graded"))), *_classes(item)


def _reasons(row: Row) -> Iterator[Line]:
    for grader, grade in _grades_of(row):
        owners = [(None, grade), *((_name(item.get("id")), item) for item in _items_of(grade))]
        for item, owner in owners:
            for reason in map(as_map, as_list(owner.get("reasons"))):
                yield grader, item, *(as_text(reason.get(name)) for name in ("code", "subject", "pointer"))


def _calls(row: Row) -> Iterator[Line]:
    expected = [as_map(call) for call in as_list(as_map(row.get("expected")).get("calls"))]
    made = [as_map(call) for call in as_list(as_map(row.get("predicted")).get("calls"))]
    items = _paired_items(row, len(expected))
    answers = [as_map(item.get("metadata")).get("call") for item in items] or [None] * len(expected)
    scores = [_graded(item, as_text(item.get("outcome", "graded")))[1] for item in items] or [None] * len(expected)
    for index, call in enumerate(expected):
        name = _text(call.get("name")) or "|".join(map(as_text, as_list(call.get("names"))))
        yield "expected", index, name, _whole(answers[index]), scores[index], None, None
    for index, call in enumerate(made):
        wanted = answers.index(index) if index in answers else None
        score = None if wanted is None else scores[wanted]
        fault, seconds = _text(call.get("error")), as_number(call.get("seconds"))
        yield "made", index, _text(call.get("name")), wanted, score, fault, seconds


def _paired_items(row: Row, count: int) -> list[Mapping[str, Any]]:
    """Return the items, one per expected call, of the first grader that says which call answers which."""
    for grade in (as_map(row.get("grade")), *(grade for _, grade in sorted(_grades_of(row)))):
        items = [each for each in _items_of(grade) if not as_map(each.get("counts")).get("extra")]
        if count and len(items) == count and all("call" in as_map(item.get("metadata")) for item in items):
            return items
    return []


_LINES: Mapping[TableName, Callable[[Row], Iterator[Line]]] = {
    "samples": _samples,
    "grades": _grades,
    "items": _items,
    "reasons": _reasons,
    "calls": _calls,
}
