"""Tables of a run: rows of results.jsonl as columns of plain values, null where nothing
was graded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, compress, islice
from math import isfinite
from typing import Any, Literal, Self

import attrs
import msgspec

from gradestack.declared import Declarations
from gradestack.errors import library
from gradestack.grading.subset import Fields
from gradestack.jsonio.values import as_list, as_map, as_number, as_text, compact, is_number
from gradestack.rows.read import decoder_of

TableName = Literal[
    "headline", "figures", "gates", "samples", "grades", "items", "reasons", "calls"
]
Line = tuple[Any, ...]
Types = Mapping[str, str]
"""Name of a column -> the type of its values."""


def _types(columns: str) -> Types:
    """Return columns with their types: ``NAME:TYPE``, text where no type is named."""
    return {
        name: kind or "text" for name, _, kind in (each.partition(":") for each in columns.split())
    }


_KEY = "position:int id model run"
_INTERVAL = "low:float high:float confidence:float n:int clusters:int method"
COLUMNS: Mapping[TableName, Types] = {
    "headline": _types(f"label figure model value:float {_INTERVAL} reason unit better"),
    "figures": _types(
        f"grader aggregator figure model value:float {_INTERVAL} reason label unit better"
    ),
    "gates": _types(
        f"gate outcome passed:bool metric_key metric op threshold:float actual:float {_INTERVAL} "
        "reason"
    ),
    "samples": _types(
        f"{_KEY} cluster facets:texts status ended state score:float passed:bool n_calls:int "
        "requests:int "
        "input_tokens:int cached_input_tokens:int cache_write_tokens:int output_tokens:int "
        "reasoning_tokens:int "
        "cost_usd:float seconds:float first_token_seconds:float source_file source_line:int "
        "source_ordinal:int"
    ),
    "grades": _types(f"{_KEY} grader state score:float passed:bool label gold parts:floats"),
    "items": _types(f"{_KEY} grader item state score:float label gold parts:floats"),
    "reasons": _types(f"{_KEY} grader item code subject pointer"),
    "calls": _types(f"{_KEY} side index:int name matched:int score:float error seconds:float"),
}
"""The columns of each table in order, with their types; none is made from data."""
OF_FIGURES: tuple[TableName, ...] = ("headline", "figures", "gates")
OF_ROWS: tuple[TableName, ...] = ("samples", "grades", "items", "reasons", "calls")
_COUNTS, _AMOUNTS = tuple(COLUMNS["samples"])[12:18], tuple(COLUMNS["samples"])[18:21]


@attrs.frozen(eq=False, repr=False)
class Table:
    """One table of a run: ``table["score"]`` is a column, ``len(table)`` the number of rows.

    Attributes:
        columns: Name -> values, lists of one length.
        types: Name -> type of the values, which may be None: ``text``, ``int``, ``float``,
            ``bool``, ``floats`` (a map of texts to numbers) or ``texts`` (a map of texts to JSON).
    """

    columns: Mapping[str, list[Any]]
    types: Types

    @classmethod
    def of(cls, types: Types, lines: Iterable[Line]) -> Self:
        """Return the table of lines."""
        columns = [list(each) for each in zip(*lines, strict=True)] or [[] for _ in types]
        return cls(dict(zip(types, columns, strict=True)), types)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, each as a mapping of columns to values."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def failed(self) -> Table:
        """Return the rows of ``samples`` or ``grades`` that did not pass, and those that failed or
        are missing.
        """
        verdicts = zip(self["passed"], self["state"], strict=True)
        lost = [passed is False or state in ("failed", "missing") for passed, state in verdicts]
        return Table(
            {name: list(compress(values, lost)) for name, values in self.columns.items()},
            self.types,
        )

    def to_pandas(self) -> Any:
        """Return it as a pandas DataFrame; where there is no value it has NaN, NA or None."""
        frame = library("pandas").DataFrame(dict(self.columns))
        kinds = {"int": "Int64", "float": "float64", "bool": "boolean"}
        known = {name: kinds[kind] for name, kind in self.types.items() if kind in kinds}
        text = {
            name for name in known if str in map(type, self.columns[name])
        }  # a gate's conditions, as JSON
        return frame.astype({name: kind for name, kind in known.items() if name not in text})

    def to_polars(self) -> Any:
        """Return it as a polars DataFrame; mappings are lists of key and value."""
        return library("polars").from_arrow(self.to_arrow())

    def to_arrow(self) -> Any:
        """Return it as a pyarrow Table, whose columns have the same types whatever their values."""
        arrow = library("pyarrow", extra="tables")
        types = {
            "text": arrow.string(),
            "int": arrow.int64(),
            "float": arrow.float64(),
            "bool": arrow.bool_(),
        }
        types["floats"] = arrow.map_(arrow.string(), arrow.float64())
        types["texts"] = arrow.map_(arrow.string(), arrow.string())
        fields = [arrow.field(name, types[kind]) for name, kind in self.types.items()]
        arrays = []
        for field, kind in zip(fields, self.types.values(), strict=True):
            values = self.columns[field.name]
            if kind in ("floats", "texts"):
                names, parts = (
                    list(chain.from_iterable(values)),
                    chain.from_iterable(each.values() for each in values),
                )
                inner = (
                    list(parts)
                    if kind == "floats"
                    else [e if isinstance(e, str) else compact(e) for e in parts]
                )
                ends = list(accumulate(map(len, values), initial=0))
                keys, held = (
                    _array(names, "text", arrow, types),
                    _array(inner, kind[:-1], arrow, types),
                )
                arrays.append(arrow.MapArray.from_arrays(ends, keys, held))
            else:
                arrays.append(_array(values, kind, arrow, types))
        return arrow.Table.from_arrays(arrays, schema=arrow.schema(fields))


def _array(values: list[Any], kind: str, arrow: Any, types: Mapping[str, Any]) -> Any:
    try:
        return arrow.array(values, types[kind])
    except (UnicodeError, OverflowError, TypeError, ValueError):  # Arrow's errors are of these
        return arrow.array([_fitting(each, kind) for each in values], types[kind])


def _fitting(value: Any, kind: str) -> Any:
    """Return a value as its column can hold it.

    Half of a surrogate pair as "?", another type as None.
    """
    if kind == "text":
        return value.encode(errors="replace").decode() if isinstance(value, str) else None
    if kind == "int":
        return value if type(value) is int and -(2**63) <= value < 2**63 else None
    return as_number(value) if kind == "float" else None


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
_decode = decoder_of(_Row)


def row_of(number: int, line: bytes, loads: Callable[[int, bytes], Any]) -> Any:
    """Return what tables need of a row.

    ``loads`` returns the value of a line that is not decoded at once.
    """
    return _decode(number, line, lambda *of: _conform(loads(*of), _ROW))


def fields_of_row(row: Any) -> Fields:
    """Return what a filter may name of a row."""
    sample = row.sample
    return Fields(
        _name(sample and sample.id) or "",
        row.model_name,
        row.run,
        row.cluster,
        as_text(row.status),
        row.ended,
        sample and sample.input,
        row.source and row.source.file,
        as_map(row.facets),
    )


_BLOCK = 4096
"""Rows of which tables are made at once."""


def table_of(name: TableName, rows: Iterable[Any]) -> Table:
    """Return one table of rows."""
    blocks = [table for _, table in blocks_of((name,), rows)]
    columns = {
        column: list(chain.from_iterable(each[column] for each in blocks))
        for column in COLUMNS[name]
    }
    return Table(columns, COLUMNS[name])


def blocks_of(names: Sequence[TableName], rows: Iterable[Any]) -> Iterator[tuple[TableName, Table]]:
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


_COLUMNS: Mapping[TableName, Callable[[_Block], _Columns]] = {
    "samples": _samples,
    "grades": _grades,
    "items": _items,
    "reasons": _reasons,
    "calls": _calls,
}


_MEANT = ("label", "unit", "better")
_ENDS = ("low", "high", "confidence", "n", "clusters", "method")
_NO_INTERVAL = (None,) * (len(_ENDS) + 1)
_BESIDE = ("_interval", "_reason")


def figure_tables(
    summary: Mapping[str, Any], header: Mapping[str, Any]
) -> Iterator[tuple[TableName, Table]]:
    """Yield the tables of a run's figures, each with its name."""
    lines: dict[TableName, list[Line]] = {name: [] for name in OF_FIGURES}
    for name, line in _figure_lines(summary, header):
        lines[name].append(line)
    yield from ((name, Table.of(COLUMNS[name], found)) for name, found in lines.items())


def _figure_lines(
    summary: Mapping[str, Any], header: Mapping[str, Any]
) -> Iterator[tuple[TableName, Line]]:
    declared, metrics = Declarations(header), as_map(summary.get("metrics"))

    def meant(meaning: Any) -> Line:
        return (
            (None,) * len(_MEANT)
            if meaning is None
            else (meaning.label, meaning.unit, meaning.better)
        )

    for entry in map(as_map, as_list(as_map(summary.get("headline")).get("figures"))):
        unit_and_direction = meant(declared.at(as_text(entry.get("figure"))))[1:]
        yield from (("headline", (*line, *unit_and_direction)) for line in _headline(entry))
    for grader, averages in as_map(metrics.get("by_metric")).items():
        for path, *line in _figures(as_map(averages)):
            yield "figures", (grader, None, path, *line, *meant(declared.figure(grader, "", path)))
    for grader, aggregators in as_map(metrics.get("aggregates")).items():
        for aggregator, found in as_map(aggregators).items():
            for path, *line in _figures(as_map(found)):
                yield (
                    "figures",
                    (
                        grader,
                        aggregator,
                        path,
                        *line,
                        *meant(declared.figure(grader, aggregator, path)),
                    ),
                )
    for gate in map(as_map, as_list(summary.get("gates"))):
        names = ("text", "outcome", "passed", "metric_key", "metric", "op", "value", "actual")
        yield (
            "gates",
            (
                *map(_plain, map(gate.get, names)),
                *_interval(gate.get("interval"), gate.get("reason")),
            ),
        )


def _headline(entry: Mapping[str, Any]) -> Iterator[Line]:
    names = (_plain(entry.get("label")), _plain(entry.get("figure")))
    models = as_map(entry.get("models"))
    for model, held in models.items() if models else [(None, entry)]:
        value, interval, reason = (
            as_map(held).get(name) for name in ("value", "interval", "reason")
        )
        if isinstance(value, Mapping):
            for key, each in value.items():
                yield (
                    names[0],
                    f"{names[1]}.{key}",
                    model,
                    each,
                    *_interval(as_map(interval).get(key)),
                )
        else:
            yield *names, model, value, *_interval(interval, reason)


def _figures(
    metrics: Mapping[str, Any], path: str = "", model: str | None = None, intervals: Any = None
) -> Iterator[Line]:
    """Yield the numbers in metrics by their dotted paths, and what is not defined with
    its reason.
    """
    undefined, intervals = as_map(metrics.get("undefined")), as_map(intervals)
    for name, value in metrics.items():
        if name == "undefined" or (name.endswith(_BESIDE) and name.rpartition("_")[0] in metrics):
            continue
        interval = metrics.get(f"{name}_interval", intervals.get(name))
        if value is None or is_number(value):
            reason = metrics.get(f"{name}_reason", undefined.get(name)) if value is None else None
            yield f"{path}{name}", model, value, *_interval(interval, reason)
        elif (
            name == "models"
            and not path
            and all(isinstance(each, Mapping) for each in as_map(value).values())
        ):
            for key, each in as_map(value).items():
                yield from _figures(as_map(each), "", key)
        elif isinstance(value, Mapping):
            yield from _figures(value, f"{path}{name}.", model, interval)


def _interval(held: Any, reason: Any = None) -> Line:
    """Return ends, confidence, size and method of an interval, and why there is no value, or no
    interval.
    """
    if held is None and reason is None:
        return _NO_INTERVAL
    fields = as_map(held)
    return (*(_plain(fields.get(name)) for name in _ENDS), _plain(reason or fields.get("reason")))


def _plain(value: Any) -> Any:
    return compact(value) if isinstance(value, Mapping | list) else value
