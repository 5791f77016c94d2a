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

from gradestack import DataError, Input, compile_later
from gradestack.jsonio import CsvProblem, Element, csv_rows, open_regular
from gradestack_plugins.readers.chat.cells import as_json

PARQUET: Final = b"PAR1"
"""The beginning of a Parquet file."""
_LARGEST_ROW: Final = 64 * 1024 * 1024
"""Bytes of a row; in a longer one a quote is not closed."""
_BATCH: Final = 64
_LARGEST_UNPACKED: Final = 256 * 1024 * 1024
"""Bytes that a Parquet file may unpack to, unless it keeps to ``_MOST_TIMES``."""
_MOST_TIMES: Final = 1000
"""Times its size that a Parquet file may unpack to, unless it keeps to ``_LARGEST_UNPACKED``."""
_DELIMITERS: Final = (",", "\t", ";")
_EXCEL: Final = compile_later(r"sep=([,;\t|])\s*", re.IGNORECASE)
"""The line that spreadsheets may write first."""


def _table_error(file: Input, line: int, problem: str) -> DataError:
    return DataError(f"{file.shown}:{line}: {problem}")


class _Lines:
    """Lines of a CSV file as text, and the size of the row at hand."""

    def __init__(self, file: Input) -> None:
        self.file = file
        self.first = 1
        """The first line of the row at hand."""
        self.number = 0
        """The last line that was read."""
        self.size = 0

    def read(self) -> Iterator[str]:
        """Yield the lines of a table as text; refuse too long rows and other encodings."""
        with open_regular(self.file.path) as opened:
            split_lines = _split_lines(opened)
            for self.number, line in enumerate(split_lines, 1):
                if self.number == 1:
                    data = self._without_mark(line)
                else:
                    data = line
                self.size += len(data)
                if self.size > _LARGEST_ROW:
                    limit = f"longer than {_LARGEST_ROW >> 20} MiB"
                    problem = f"the row that begins here is {limit}: a quote is not closed"
                    raise _table_error(self.file, self.first, problem)
                try:
                    yield data.decode()
                except UnicodeDecodeError as error:
                    byte = f"byte {data[error.start]:#04x}"
                    problem = f"{byte} is not UTF-8; save the table as UTF-8"
                    raise _table_error(self.file, self.number, problem) from error

    def _without_mark(self, line: bytes) -> bytes:
        """Return the first line without the mark of UTF-8; one in UTF-16 is refused."""
        if line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            problem = "the table is written in UTF-16; save it as UTF-8"
            raise _table_error(self.file, 1, problem)
        return line.removeprefix(BOM_UTF8)


def _split_lines(opened: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file, also those that end as on old systems."""
    for line in opened:
        if b"\r" in line:
            yield from line.splitlines(keepends=True)
        else:
            yield line


def header_of(lines: Iterator[str]) -> tuple[str, str, int]:
    """Return the line of column names, the delimiter, and the number of lines before it.

    A line before it may name the delimiter, as spreadsheets write it; else it is a comma, or a tab
    or semicolon where the header has no comma.
    """
    header = next(lines, "")
    excel = _EXCEL.fullmatch(header)
    if excel is not None:
        return next(lines, ""), excel[1], 1
    return header, next((mark for mark in _DELIMITERS if mark in header), ","), 0


def names_in_header(head: bytes) -> list[str]:
    """Return the columns that the beginning of a CSV file names; none where it cannot be read."""
    with suppress(UnicodeDecodeError, CsvProblem):
        lines = head.removeprefix(BOM_UTF8).splitlines()
        first = lines[:2]
        text, delimiter, _ = header_of(line.decode().strip(" \r") for line in first)
        rows = csv_rows([text], delimiter=delimiter, strict=False)
        _, names = next(rows, (1, []))
        return [name.strip() for name in names]
    return []


def _csv_rows(file: Input) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file with their lines, the header first."""
    lines = _Lines(file)
    text = lines.read()
    header, delimiter, before = header_of(text)
    table = chain([header] if header else [], text)
    try:
        for line, cells in csv_rows(table, delimiter=delimiter):
            if cells:
                yield line + before, cells
            lines.first = lines.number + 1
            lines.size = 0
    except CsvProblem as error:
        raise _table_error(file, error.line + before, str(error)) from error


def checked_columns(columns: Iterable[Any], where: str) -> list[str]:
    """Return the names of columns as texts.

    Raises:
        DataError: Two columns have one name.
    """
    names = [str(name) for name in columns]
    counts = Counter(names).items()
    repeated = [name for name, times in counts if times > 1 and name]
    if repeated:
        numbers = [str(number) for number, name in enumerate(names, 1) if name == repeated[0]]
        what = f"the column {repeated[0]!r} occurs twice (as number {' and '.join(numbers)})"
        raise DataError(f"{where}: {what}; rename or remove one")
    return names


def csv_columns(file: Input) -> list[str]:
    """Return the columns of a CSV file."""
    line, cells = next(_csv_rows(file), (1, []))
    if not cells:
        problem = "the table is empty: a row with the names of its columns is expected"
        raise _table_error(file, 1, problem)
    return checked_columns((cell.strip() for cell in cells), f"{file.shown}:{line}")


def csv_table(file: Input) -> Iterator[Element]:
    """Yield the rows of a CSV file behind the one that names its columns."""
    rows = _csv_rows(file)
    _, header = next(rows, (1, []))
    names = [cell.strip() for cell in header]
    for ordinal, (line, cells) in enumerate(rows):
        if len(cells) == len(names):
            pairs = dict(zip(names, cells, strict=True))
            yield Element(ordinal, line, pairs)
        else:
            problem = f"{len(cells)} cells where the table has {len(names)} columns"
            yield Element(ordinal, line, problem=problem)


def reads_parquet() -> bool:
    """Return whether pyarrow is installed."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        return False
    return True


@contextmanager
def _readable_parquet(file: Input) -> Iterator[None]:
    """Name the file in errors of pyarrow; errors of the system are raised as they are."""
    try:
        yield
    except (ValueError, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise DataError(f"{file.shown}: no Parquet file that can be read: {error}") from error


def _parquet(file: Input) -> Any:
    """Return an open Parquet file; a text that repeats in it is in memory once."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        advice = "which is read by pyarrow: pip install pyarrow (extra 'tables')"
        raise DataError(f"{file.shown}: a Parquet file, {advice}") from error
    with _readable_parquet(file):
        metadata = parquet.read_metadata(file.path)
        columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
        texts = [column.path for column in columns if _is_text(column)]
        return parquet.ParquetFile(file.path, metadata=metadata, read_dictionary=texts)


def _is_text(column: Any) -> bool:
    kinds = {"STRING", "JSON", "ENUM", "NONE"}
    return column.physical_type == "BYTE_ARRAY" and column.logical_type.type in kinds


def parquet_columns(file: Input) -> list[str]:
    """Return the columns of a Parquet file."""
    with _parquet(file) as opened:
        return checked_columns(opened.schema_arrow.names, file.shown)


def parquet_table(file: Input) -> Iterator[Element]:
    """Yield the rows of a Parquet file; one longer than 64 MiB is broken."""
    too_long = f"longer than {_LARGEST_ROW >> 20} MiB"
    for ordinal, row in enumerate(_parquet_rows(file)):
        yield Element(ordinal, None, as_json(row), None if row is not None else too_long)


def _parquet_rows(file: Input) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of a Parquet file, None for one that is too long."""
    packed = file.path.stat().st_size
    unpacked = 0
    with _parquet(file) as opened, _readable_parquet(file):
        for number in range(opened.metadata.num_row_groups):
            row_group = opened.metadata.row_group(number)
            _check_unpacked(file, row_group.total_byte_size, packed)
        for batch in opened.iter_batches(batch_size=_BATCH):
            size = _size(batch)
            unpacked += size
            _check_unpacked(file, unpacked, packed)
            if size <= _LARGEST_ROW:
                yield from batch.to_pylist()
                continue
            for row in map(batch.slice, range(len(batch)), repeat(1)):
                yield from row.to_pylist() if _size(row) <= _LARGEST_ROW else [None]
        pool = importlib.import_module("pyarrow").default_memory_pool()
        pool.release_unused()  # the file is read several times


def _check_unpacked(file: Input, unpacked: int, packed: int) -> None:
    """Refuse a Parquet file that is, or says it is, very large for its size.

    Each row may repeat a value that stands there once.
    """
    if unpacked > _LARGEST_UNPACKED and unpacked > packed * _MOST_TIMES:
        limits = f"more than {_LARGEST_UNPACKED >> 20} MiB and {_MOST_TIMES} times its size"
        advice = "write its records as JSON Lines, or in several files, if that is meant"
        raise DataError(f"{file.shown}: its {packed} bytes unpack to {limits}; {advice}")


def _size(values: Any) -> int:
    """Return the number of values of an array or batch, plus its bytes."""
    kind = getattr(values, "type", None)
    if kind is None:
        return sum(map(_size, values.columns))
    types = importlib.import_module("pyarrow.types")
    if types.is_dictionary(kind):
        compute = importlib.import_module("pyarrow.compute")
        binary_length = compute.binary_length(values.dictionary)
        lengths = binary_length.take(values.indices)
        cast = compute.cast(lengths, "int64")
        total = compute.sum(cast).as_py()
        return len(values) + (total or 0)
    if not types.is_nested(kind):
        number = int(values.nbytes)
        return len(values) + number
    inner = values.flatten()
    return len(values) + (sum(map(_size, inner)) if types.is_struct(kind) else _size(inner))


def frame_table(frame: Any) -> Iterator[Element]:
    """Yield the rows of a frame of pandas, polars or pyarrow, or of an iterable of mappings."""
    for ordinal, row in enumerate(_frame_rows(frame)):
        if isinstance(row, Mapping):
            yield Element(ordinal, None, as_json(row))
        else:
            problem = f"expected a mapping, got {type(row).__name__}"
            yield Element(ordinal, None, problem=problem)


def _frame_rows(frame: Any) -> Iterable[Any]:
    """Return the rows of a data frame (Arrow, Polars or pandas) as objects."""
    if hasattr(frame, "to_pylist"):
        batches = frame.to_batches()
        return (row for batch in batches for row in batch.to_pylist())
    if not hasattr(frame, "columns"):
        return frame  # type: ignore[no-any-return]
    names = checked_columns(frame.columns, "the data frame")
    is_polars = hasattr(frame, "iter_rows")
    if is_polars:
        rows = frame.iter_rows()
    else:
        rows = frame.itertuples(index=False, name=None)
    return (dict(zip(names, row, strict=True)) for row in rows)


def frame_columns(frame: Any) -> list[str] | None:
    """Return the columns of a data frame; None for anything else."""
    names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    return None if names is None else checked_columns(names, "the data frame")
