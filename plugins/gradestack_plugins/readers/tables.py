"""Rows of tables: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import importlib
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from typing import Any, Final

from gradestack import DataError, Input
from gradestack.jsonio import CsvProblem, Element, csv_rows, open_regular
from gradestack_plugins.readers.chat.mapping import as_json

PARQUET: Final = b"PAR1"  # how a Parquet file begins
_LARGEST_ROW: Final = (
    64 * 1024 * 1024
)  # bytes of a row from which on a quote is taken for one that is never closed
_BATCH: Final = 64
_LARGEST_UNPACKED: Final = 256 * 1024 * 1024
# how much a Parquet file may unpack to, in bytes and times its size; one of both has to hold
_MOST_TIMES: Final = 1000
_DELIMITERS: Final = (",", "\t", ";")


def _said(file: Input, line: int, what: str) -> DataError:
    return DataError(f"{file.shown}:{line}: {what}")


class _Lines:
    """Lines of a CSV file as text, and how much the row at hand has taken of them."""

    def __init__(self, file: Input) -> None:
        self.file = file
        self.first, self.number = 1, 0  # the first line of the row at hand, and the last one
        self.held = 0

    def read(self) -> Iterator[str]:
        with open_regular(self.file.path) as opened:
            lines = (
                part
                for line in opened
                for part in (line.splitlines(keepends=True) if b"\r" in line else (line,))
            )
            for self.number, line in enumerate(lines, 1):
                data = line
                if self.number == 1:
                    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                        raise _said(
                            self.file, 1, "the table is written in UTF-16; save it as UTF-8"
                        )
                    data = data.removeprefix(BOM_UTF8)
                self.held += len(data)
                if self.held > _LARGEST_ROW:
                    raise _said(
                        self.file,
                        self.first,
                        f"the row that begins here is longer than {_LARGEST_ROW >> 20} MiB: a "
                        "quote is not closed",
                    )
                try:
                    yield data.decode()
                except UnicodeDecodeError as error:
                    what = f"byte {data[error.start]:#04x} is not UTF-8; save the table as UTF-8"
                    raise _said(self.file, self.number, what) from error


_EXCEL: Final = re.compile(
    r"sep=([,;\t|])\s*", re.IGNORECASE
)  # the line that spreadsheets may write first


def header_of(lines: Iterator[str]) -> tuple[str, str, int]:
    """Return the line that names columns, what separates its cells, and how many lines stand before
    it.

    That is said by a line before it, as spreadsheets write it; else it is a comma, or a tab or
    semicolon where the header has no comma.
    """
    header = next(lines, "")
    if said := _EXCEL.fullmatch(header):
        return next(lines, ""), said[1], 1
    return header, next((each for each in _DELIMITERS if each in header), ","), 0


def names_in_header(head: bytes) -> list[str]:
    """Return the columns that the beginning of a CSV file names; none where it cannot be read."""
    with suppress(UnicodeDecodeError, CsvProblem):
        first = head.removeprefix(BOM_UTF8).splitlines()[:2]
        text, delimiter, _ = header_of(line.decode().strip(" \r") for line in first)
        return [
            name.strip()
            for name in next(csv_rows([text], delimiter=delimiter, strict=False), (1, []))[1]
        ]
    return []


def _csv_rows(file: Input) -> Iterator[tuple[int, list[str]]]:
    lines = _Lines(file)
    text = lines.read()
    header, delimiter, before = header_of(text)
    try:
        for line, cells in csv_rows(chain([header] if header else [], text), delimiter=delimiter):
            if cells:
                yield line + before, cells
            lines.first, lines.held = lines.number + 1, 0
    except CsvProblem as error:
        raise _said(file, error.line + before, str(error)) from error


def checked_columns(columns: Iterable[Any], where: str) -> list[str]:
    """Return the names of columns as texts."""
    names = [str(name) for name in columns]
    twice = [name for name, times in Counter(names).items() if times > 1 and name]
    if twice:
        places = " and ".join(
            str(number) for number, name in enumerate(names, 1) if name == twice[0]
        )
        raise DataError(
            f"{where}: the column {twice[0]!r} stands twice (as number {places}); rename or "
            "remove one"
        )
    return names


def csv_columns(file: Input) -> list[str]:
    """Return the columns of a CSV file."""
    line, cells = next(_csv_rows(file), (1, []))
    if not cells:
        raise _said(file, 1, "the table is empty: a row with the names of its columns is expected")
    return checked_columns((cell.strip() for cell in cells), f"{file.shown}:{line}")


def csv_table(file: Input) -> Iterator[Element]:
    """Yield the rows of a CSV file behind the one that names its columns."""
    rows = _csv_rows(file)
    names = [cell.strip() for cell in next(rows, (1, []))[1]]
    for at, (line, cells) in enumerate(rows):
        if len(cells) == len(names):
            yield Element(at, line, dict(zip(names, cells, strict=True)))
        else:
            yield Element(
                at, line, problem=f"{len(cells)} cells where the table has {len(names)} columns"
            )


def reads_parquet() -> bool:
    """Return whether pyarrow is installed."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        return False
    return True


@contextmanager
def _readable_parquet(file: Input) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:  # of pyarrow's own kind
        if getattr(error, "errno", None) is not None:  # of the system
            raise
        raise DataError(f"{file.shown}: no Parquet file that can be read: {error}") from error


def _parquet(file: Input) -> Any:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise DataError(
            f"{file.shown}: a Parquet file, which is read by pyarrow: pip install pyarrow (extra "
            "'tables')"
        ) from error
    with _readable_parquet(file):
        about = parquet.read_metadata(file.path)
        leaves = [about.schema.column(number) for number in range(about.num_columns)]
        words = {"STRING", "JSON", "ENUM", "NONE"}
        held = (leaf for leaf in leaves if leaf.physical_type == "BYTE_ARRAY")
        texts = [leaf.path for leaf in held if leaf.logical_type.type in words]
        # Texts that stand once in the file stand once in memory: a batch of them may be a million
        # times as large.
        return parquet.ParquetFile(file.path, metadata=about, read_dictionary=texts)


def parquet_columns(file: Input) -> list[str]:
    """Return the columns of a Parquet file."""
    with _parquet(file) as opened:
        return checked_columns(opened.schema_arrow.names, file.shown)


def parquet_table(file: Input) -> Iterator[Element]:
    """Yield the rows of a Parquet file; one longer than 64 MiB is broken."""
    return (
        Element(
            at,
            None,
            as_json(row),
            None if row is not None else f"longer than {_LARGEST_ROW >> 20} MiB",
        )
        for at, row in enumerate(_parquet_rows(file))
    )


def _parquet_rows(file: Input) -> Iterator[dict[str, Any] | None]:
    packed = file.path.stat().st_size
    unpacked = 0
    with _parquet(file) as opened, _readable_parquet(file):
        for number in range(opened.metadata.num_row_groups):
            _check_unpacked(file, opened.metadata.row_group(number).total_byte_size, packed)
        for batch in opened.iter_batches(batch_size=_BATCH):
            size = _size(batch)
            unpacked += size
            _check_unpacked(file, unpacked, packed)
            if size <= _LARGEST_ROW:
                yield from batch.to_pylist()
                continue
            for row in map(batch.slice, range(len(batch)), repeat(1)):
                yield from row.to_pylist() if _size(row) <= _LARGEST_ROW else [None]
        importlib.import_module(
            "pyarrow"
        ).default_memory_pool().release_unused()  # it is read several times


def _check_unpacked(file: Input, unpacked: int, packed: int) -> None:
    """Check how much a Parquet file holds, or says it does, by its size.

    Each row may repeat what stands there once.
    """
    if unpacked > _LARGEST_UNPACKED and unpacked > packed * _MOST_TIMES:
        raise DataError(
            f"{file.shown}: its {packed} bytes unpack to more than {_LARGEST_UNPACKED >> 20} MiB "
            "and "
            f"{_MOST_TIMES} times its size; write its records as JSON Lines, or in several files, "
            "if that is meant"
        )


def _size(values: Any) -> int:
    kind = getattr(values, "type", None)
    if kind is None:
        return sum(map(_size, values.columns))
    types = importlib.import_module("pyarrow.types")
    if types.is_dictionary(kind):
        compute = importlib.import_module("pyarrow.compute")
        lengths = compute.binary_length(values.dictionary)
        return len(values) + (
            compute.sum(compute.cast(lengths.take(values.indices), "int64")).as_py() or 0
        )
    if types.is_nested(kind):
        flat = values.flatten()
        return len(values) + (sum(map(_size, flat)) if types.is_struct(kind) else _size(flat))
    return len(values) + int(values.nbytes)


def frame_table(frame: Any) -> Iterator[Element]:
    """Yield the rows of a data frame (of pandas, polars or pyarrow), or of an iterable
    of mappings.
    """
    rows: Iterable[Any] = frame
    if hasattr(frame, "to_pylist"):
        rows = (row for batch in frame.to_batches() for row in batch.to_pylist())
    elif hasattr(frame, "columns"):
        names = checked_columns(frame.columns, "the data frame")
        held = (
            frame.iter_rows()
            if hasattr(frame, "iter_rows")
            else frame.itertuples(index=False, name=None)
        )
        rows = (dict(zip(names, row, strict=True)) for row in held)
    for at, row in enumerate(rows):
        known = isinstance(row, Mapping)
        problem = None if known else f"expected a mapping, got {type(row).__name__}"
        yield Element(at, None, as_json(row) if known else None, problem)


def frame_columns(frame: Any) -> list[str] | None:
    """Return the columns of a data frame; None of what is no frame."""
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    return None if names is None else checked_columns(names, "the data frame")
