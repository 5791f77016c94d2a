"""Reader ``records``: tables and records of any form."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import attrs
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    read_records,
    suggest,
)
from gradestack.jsonio import JsonProblem, Range, compact, first_records, loads
from gradestack_plugins.readers.chat.identity import stems
from gradestack_plugins.readers.chat.logs import PROVIDES
from gradestack_plugins.records import tables
from gradestack_plugins.records.mapping import (
    DID,
    Mapped,
    by_name,
    check_columns,
    lead_nowhere,
    mapped,
    missing,
    sample_of,
)

Form = Literal["csv", "parquet", "records", "document"]
_HEAD: Final = 64 * 1024
_FIRST: Final = 1000
"""Records of a file among which what is mapped is looked for."""
_LARGEST_DOCUMENT: Final = 64 * 1024 * 1024
_SHOWN: Final = 12
_LONGEST_NAME: Final = 100
"""Characters of a column's name where a file is taken for a table by its first line alone."""
_SURE: Final = 0.97
"""More than any reader is of the messages in a cell: a table's own name and header say more."""
_PERHAPS: Final = 0.1
"""How sure it is of a Parquet file that nothing can read: reading it says what to install."""
_TABLES: Final = frozenset({".csv", ".tsv"})
_SNIFFED: Final = _TABLES | {""}
"""Suffixes of files that may be tables: standard input has none."""
_ROWS: Final = {"csv": tables.csv_table, "parquet": tables.parquet_table}
_COLUMNS: Final = {"csv": tables.csv_columns, "parquet": tables.parquet_columns}

_OPTIONS: Final = (
    "--reader records --map id=COLUMN --map messages=COLUMN, "
    "or in a suite reader: {kind: records, columns: {id: COLUMN, messages: COLUMN}}"
)
_ARGUMENT: Final = 'columns={"id": COLUMN, "messages": COLUMN}'
"""How columns are mapped: of files, and of what is handed over in Python."""


def _checked(_: Any, __: Any, columns: Mapping[str, str] | None) -> None:
    check_columns(columns or {})


@attrs.frozen(kw_only=True)
class Records(RecordReader):
    """Reads CSV, Parquet, JSON Lines, a JSON list or one JSON object, whatever its columns are called.

    ``columns`` says for each field of a sample the column it stands in, or a path such as ``$.log.messages``. Without
    it, columns that are named like fields are taken. JSON in a cell is decoded, an empty cell is not recorded, and
    columns that are not taken are counted. A record without an id has one made up.
    """

    columns: dict[str, str] | None = attrs.field(default=None, validator=_checked)
    """Field -> column or path."""

    provides = PROVIDES | {"expected", "label", "plan", "recorded", "state", "children", "agent_id"}
    stack = "trajectory"

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if head.startswith(tables.PARQUET):
            names = _parquet_columns(path)
            return _PERHAPS if names is None else _SURE * any(name in DID for name in names)
        if path.suffix.lower() not in _SNIFFED:
            return 0.0
        begins = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        found = begins not in {b"{", b"["} and any(name in DID for name in _header(head))
        return _SURE if found else 0.0

    @classmethod
    def advice(cls, path: Path, head: bytes) -> str | None:
        """Return what to type for a file that no reader recognises, where it holds columns."""
        if head.startswith(tables.PARQUET):
            names = _parquet_columns(path) or []
        elif path.suffix.lower() in _TABLES or not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
            names = _columns(head, least=1 if path.suffix.lower() in _TABLES else 2)
        else:
            first = (element.value for element, _ in first_records(head, 1))
            names = list(next((each for each in first if isinstance(each, dict)), ()))
        return f"its columns can be mapped, {_advice(names)}" if names else None

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for given, stem in zip(inputs.data, stems(inputs.data), strict=True):
            if not given.path.is_file():
                what = "is a directory" if given.path.is_dir() else "no such file"
                raise DataError(f"{given.shown}: {what}; a CSV, Parquet or JSON file is expected")
            form = _form_of(given.path)
            if form in _COLUMNS:
                names = _COLUMNS[form](given)
                columns = self._columns_of(names, None, _place(given, form))
                _check_paths(columns, _ROWS[form](given), _place(given, form))
            else:
                first = list(islice(self._records(given, form), _FIRST))
                names = list(dict.fromkeys(str(key) for each in first if isinstance(each, dict) for key in each))
                columns = self._columns_of(names, first, _place(given, form))
            ranges = None if form == "records" else (Range(),)
            extra = {"form": form, "stem": stem, "columns": columns}
            yield RecordFile(input=given, ranges=ranges, extra=extra)

    def _records(self, given: Input, form: str) -> Iterator[Any]:
        if form == "document":
            yield loads(given.path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
            return
        yield from (found.value for found in read_records(given) if found.problem is None)

    def _columns_of(self, names: list[str], first: list[Any] | None, where: str, how: str = _OPTIONS) -> dict[str, str]:
        """Return what is mapped."""
        if first is not None and not first:
            return dict(self.columns or {})
        if not names:
            raise DataError(f"{where}: there are no columns")
        if not self.columns:
            found = by_name(names)
            if not found:
                raise DataError(f"{where}: no column is named like a field of a sample; {_advice(names, how)}")
            return found
        fields = mapped(self.columns)
        lost = [each for each in fields if each.steps[0] not in names] if first is None else missing(fields, first)
        if lost:
            told = "; ".join(f"{each.place!r}, mapped to {each.field}" for each in lost)
            hint = suggest(lost[0].place, names)
            what = "there is no column" if len(lost) == 1 else "there are no columns"
            raise DataError(f"{where}: {what} {told}{hint}; there are: {_listed(names)}")
        return self.columns

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        form, stem, columns = (shard.extra[key] for key in ("form", "stem", "columns"))
        shown = shard.input.shown
        if form in _ROWS:
            return self._rows(_ROWS[form](shard.input), columns, stem, shown)
        if form == "document":
            rows = (tables.Row(1, each) for each in self._records(shard.input, form))
            return self._rows(rows, columns, stem, shown, table=False)
        return self.samples(shard, partial(self._samples_of, mapped(columns), stem, table=False))

    def rows(self, frame: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a data frame, or of mappings, as they would be read of a file."""
        found = tables.frame_table(frame)
        names = tables.frame_columns(frame)
        if names is None:
            first = list(islice(found, _FIRST))
            cells = [row.cells for row in first if row.cells is not None]
            names = list(dict.fromkeys(str(key) for each in cells for key in each))
            columns = self._columns_of(names, cells, "the records", _ARGUMENT)
            yield from self._rows(first, columns, "memory", "memory", table=True)
            yield from self._rows(found, columns, "memory", "memory", table=True, begin=len(first))
            return
        columns = self._columns_of(names, None, "the data frame", _ARGUMENT)
        _check_paths(columns, tables.frame_table(frame), "the data frame")
        yield from self._rows(found, columns, "memory", "memory")

    def _rows(
        self,
        rows: Iterable[tables.Row],
        columns: Mapping[str, str],
        stem: str,
        shown: str,
        *,
        table: bool = True,
        begin: int = 0,
    ) -> Iterator[Sample | BadRecord]:
        samples_of = self.with_ids(partial(self._samples_of, mapped(columns), stem, table=table))
        for ordinal, row in enumerate(rows, begin):
            source = Source(file=shown, ordinal=ordinal, line=row.line)
            if row.cells is None:
                yield BadRecord(source=source, reason=row.problem)
                continue
            yield from self.guarded(samples_of, row.cells, source)

    def _samples_of(
        self, fields: tuple[Mapped, ...], stem: str, record: Any, source: Source, *, table: bool
    ) -> Iterator[Sample | BadRecord]:
        if not isinstance(record, dict):
            raise ValueError(f"expected an object, found {compact(record)[:60]}")  # noqa: TRY004 - what makes a bad record
        yield sample_of(record, fields, source, made=f"{stem}:{source.ordinal}", table=table)


def _check_paths(columns: Mapping[str, str], rows: Iterable[tables.Row], where: str) -> None:
    """Check that paths lead somewhere in a table."""
    first = (row.cells for row in islice(rows, _FIRST) if row.cells is not None)
    if lost := lead_nowhere(mapped(columns), first):
        told = "; ".join(f"{each.place!r}, mapped to {each.field}" for each in lost)
        raise DataError(f"{where}: in none of the first rows there is anything at {told}")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + ", …" * (len(names) > _SHOWN) or "none"


def _advice(names: list[str], how: str = _OPTIONS) -> str:
    """Return what columns there are and what to type."""
    return f"there are: {_listed(names)}. Say which holds what: {how}"


def _header(head: bytes) -> list[str]:
    with suppress(UnicodeDecodeError, csv.Error):
        text = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode().strip()
        return [name.strip() for name in next(csv.reader([text], delimiter=tables.delimiter_of(text)), [])]
    return []


def _columns(head: bytes, least: int) -> list[str]:
    """Return the columns of what is a table by its first line, which has so many words; none of anything else."""
    names = _header(head)
    return names if len(names) >= least and all(name and len(name) < _LONGEST_NAME for name in names) else []


def _parquet_columns(path: Path) -> list[str] | None:
    """Return the columns of a Parquet file, none of one that is damaged; None where nothing can read it."""
    if not tables.reads_parquet():
        return None
    with suppress(DataError):
        return tables.parquet_columns(Input(path=path, name=path.stem, shown=path.name))
    return []


def _place(given: Input, form: str) -> str:
    return f"{given.shown}:1" if form == "csv" else given.shown


def _form_of(path: Path) -> Form:
    """Return how a file is laid out: by its first bytes, and where it begins as no JSON does, CSV."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if head.startswith(tables.PARQUET):
            return "parquet"
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not text.startswith((b"{", b"[")) or path.suffix.lower() in _TABLES:
            return "csv"
        if text.startswith(b"["):
            return "records"
        try:
            loads(text.partition(b"\n")[0])
        except JsonProblem:
            whole = head + file.read(_LARGEST_DOCUMENT)
            with suppress(JsonProblem):
                loads(whole.removeprefix(b"\xef\xbb\xbf"))
                return "document"
        return "records"
