"""A table of a run as columns of plain values, null where nothing was graded, and as frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain, compress
from typing import Any, Self

import attrs

from gradestack import library
from gradestack.jsonio import as_number, compact

Line = tuple[Any, ...]
Types = Mapping[str, str]
"""Name of a column -> the type of its values."""


def _types(columns: str) -> Types:
    """Return columns with their types: ``NAME:TYPE``, text where no type is named."""
    parts = (column.partition(":") for column in columns.split())
    return {name: kind or "text" for name, _, kind in parts}


_KEY = "position:int id model run"
_INTERVAL = "low:float high:float confidence:float n:int clusters:int method"
COLUMNS: Mapping[str, Types] = {
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
        "requests:int input_tokens:int cached_input_tokens:int cache_write_tokens:int "
        "output_tokens:int reasoning_tokens:int cost_usd:float seconds:float "
        "first_token_seconds:float source_file source_line:int source_ordinal:int"
    ),
    "grades": _types(f"{_KEY} grader state score:float passed:bool label gold parts:floats"),
    "items": _types(f"{_KEY} grader item state score:float label gold parts:floats"),
    "reasons": _types(f"{_KEY} grader item code subject pointer"),
    "tasks": _types("id model trials:int passed:int not_passed:int ungraded:int mean_score:float"),
    "failures": _types("grader code subject argument samples:int"),
    "calls": _types(f"{_KEY} side index:int name matched:int score:float error seconds:float"),
}
"""The columns of column table in order, with their types; none is made from data."""


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
        columns = [list(column) for column in zip(*lines, strict=True)] or [[] for _ in types]
        pairs = dict(zip(types, columns, strict=True))
        return cls(pairs, types)

    def __len__(self) -> int:
        columns = self.columns.values()
        return len(next(iter(columns)))

    def __getitem__(self, column: str) -> list[Any]:
        return self.columns[column]

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, column as a mapping of columns to values."""
        columns = self.columns.values()
        for values in zip(*columns, strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def failed(self) -> Table:
        """Return the rows of ``samples`` or ``grades`` that did not pass, that failed or are
        missing.
        """
        verdicts = zip(self["passed"], self["state"], strict=True)
        not_passed = [
            passed is False or state in ("failed", "missing") for passed, state in verdicts
        ]
        columns = {
            name: list(compress(values, not_passed)) for name, values in self.columns.items()
        }
        return Table(columns, self.types)

    def to_pandas(self) -> Any:
        """Return it as a pandas DataFrame; where there is no value it has NaN, NA or None."""
        frame = library("pandas").DataFrame(dict(self.columns))
        types = self.types.items()
        kinds = {name: _PANDAS[kind] for name, kind in types if kind in _PANDAS}
        # a gate's conditions are JSON
        numbers = [name for name in kinds if str not in map(type, self.columns[name])]
        kinds_by_name = {name: kinds[name] for name in numbers}
        return frame.astype(kinds_by_name)

    def to_polars(self) -> Any:
        """Return it as a polars DataFrame; mappings are lists of key and value."""
        return library("polars").from_arrow(self.to_arrow())

    def to_arrow(self) -> Any:
        """Return it as a pyarrow Table, whose columns have the same types whatever their values."""
        arrow = library("pyarrow", extra="tables")
        text = arrow.string()
        types = {
            "text": text,
            "int": arrow.int64(),
            "float": arrow.float64(),
            "bool": arrow.bool_(),
            "floats": arrow.map_(arrow.string(), arrow.float64()),
            "texts": arrow.map_(arrow.string(), arrow.string()),
        }
        fields = [arrow.field(name, types[kind]) for name, kind in self.types.items()]
        arrays = []
        for name, kind in self.types.items():
            if kind in ("floats", "texts"):
                column = self.columns[name]
                map_array = _map_array(column, kind.removesuffix("s"), arrow, types)
                arrays.append(map_array)
            else:
                arrays.append(_array(self.columns[name], kind, arrow, types))
        schema = arrow.schema(fields)
        return arrow.Table.from_arrays(arrays, schema=schema)


_PANDAS = {"int": "Int64", "float": "float64", "bool": "boolean"}
"""Type of a column -> that of pandas."""


def _map_array(
    values: list[Mapping[str, Any]], kind: str, arrow: Any, types: Mapping[str, Any]
) -> Any:
    """Return mappings of texts to numbers, or to texts, as an array."""
    ends = list(accumulate(map(len, values), initial=0))
    names = list(chain.from_iterable(values))
    parts = list(chain.from_iterable(value.values() for value in values))
    if kind == "text":
        parts = [part if isinstance(part, str) else compact(part) for part in parts]
    keys = _array(names, "text", arrow, types)
    return arrow.MapArray.from_arrays(ends, keys, _array(parts, kind, arrow, types))


def _array(values: list[Any], kind: str, arrow: Any, types: Mapping[str, Any]) -> Any:
    try:
        return arrow.array(values, types[kind])
    except (UnicodeError, OverflowError, TypeError, ValueError):  # Arrow's errors are of these
        return arrow.array([_fitting(value, kind) for value in values], types[kind])


def _fitting(value: Any, kind: str) -> Any:
    """Return a value as its column can hold it.

    Half of a surrogate pair as "?", another type as None.
    """
    if kind == "text":
        if isinstance(value, str):
            return value.encode(errors="replace").decode()
        return None
    if kind == "int":
        if type(value) is int and -(2**63) <= value < 2**63:
            return value
        return None
    return as_number(value) if kind == "float" else None
