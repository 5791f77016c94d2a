"""The reporters ``csv``, ``json`` and ``parquet``: every table of a run as a file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import IO, Any

from typing_extensions import override

from gradestack import Report, Reporter, csv_line, library, missing_library
from gradestack.jsonio import compact, dumps
from gradestack_plugins.pages.figures import task_lines
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.tables.figures import OF_FIGURES, figure_tables
from gradestack_plugins.tables.frame import COLUMNS, Line, Table, Types
from gradestack_plugins.tables.rows import OF_ROWS, blocks_of, rows_of

FOLDER = "tables"
_ROW_GROUP = 65_536
TABLES = (*OF_FIGURES, *OF_ROWS)
"""The names of the Parquet tables. No other file of their folder is opened."""
_PLAIN = frozenset({type(None), str, int, float})


class CsvReporter(Reporter):
    """Writes ``tables/NAME.csv``.

    The figures, gates, tasks and reasons of a run, and its rows as five tables.

    Lines end with LF, a cell without a value is empty, true and false are words, mappings are JSON.
    A text that a spreadsheet would calculate gets a ``'`` before it.
    """

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        return _write(report, out, "csv")


class JsonReporter(Reporter):
    """Writes ``tables/NAME.json``: the tables of ``csv``, each a list of objects, one on a line."""

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        return _write(report, out, "json")


class ParquetReporter(Reporter):
    """Writes ``tables/NAME.parquet``.

    Tables of figures and rows with typed columns, for frames and `gradestack query`.

    Row groups have 65,536 rows, counted over the whole run in input order, and are compressed by
    zstd. Equal runs and versions of pyarrow give equal bytes, whatever the engine, the number of
    workers and the cut into shards.
    """

    def __attrs_post_init__(self) -> None:
        if find_spec("pyarrow") is None:  # an error before hours of grading
            raise missing_library("pyarrow", "tables")

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        return _write(report, out, "parquet")


class _ParquetFile:
    """One table as Parquet."""

    def __init__(self, path: Path, types: Types, opened: ExitStack) -> None:
        self._arrow = library("pyarrow", extra="tables")
        writer = library("pyarrow.parquet", extra="tables").ParquetWriter
        options: Any = {"compression": "zstd", "version": "2.6", "data_page_version": "2.0"}
        table = Table.of(types, ())
        self._rows = table.to_arrow()
        schema = self._rows.schema
        self._writer = opened.enter_context(writer(path, schema, **options))

    def add(self, table: Table) -> None:
        self._rows = self._arrow.concat_tables([self._rows, table.to_arrow()])
        if len(self._rows) >= _ROW_GROUP:
            self._write(self._rows.slice(0, _ROW_GROUP))
            self._rows = self._rows.slice(_ROW_GROUP)

    def end(self) -> None:
        self._write(self._rows)

    def _write(self, rows: Any) -> None:
        for batch in rows.combine_chunks().to_batches():
            self._writer.write_batch(batch, row_group_size=_ROW_GROUP)


class _CsvFile:
    """One table as CSV."""

    def __init__(self, file: IO[str], types: Types) -> None:
        self._write = file.write
        self._write(csv_line(*types))

    def add(self, table: Table) -> None:
        columns = table.columns.values()
        lines = zip(*columns, strict=True)
        self._write("".join(csv_line(*map(csv_cell, line)) for line in lines))

    def end(self) -> None:
        """Write nothing: a table of CSV has no end."""


class _JsonFile:
    """One table as a JSON list of objects."""

    def __init__(self, file: IO[str], types: Types) -> None:
        self._write = file.write
        self._before = "["

    def add(self, table: Table) -> None:
        for row in table.rows():
            self._write(f"{self._before}\n{dumps(row)}")
            self._before = ","

    def end(self) -> None:
        self._write("[]\n" if self._before == "[" else "\n]\n")


_TEXT_FILES: Mapping[str, type[_CsvFile | _JsonFile]] = {"csv": _CsvFile, "json": _JsonFile}


def csv_cell(value: Any) -> Any:
    """Return a value as CSV has it: true and false as words, mappings and lists as JSON."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping | list):
        return compact(value)
    return value


def _counted_tables(report: Report, *names: str) -> Iterator[tuple[str, Table]]:
    """Yield those of the tables ``tasks`` and ``failures``, which are counted from the rows."""
    if not report.has_rows:
        return
    index = index_of(report)
    counted = zip(index.reasons.kinds, index.reasons.samples, strict=True)
    tasks = task_lines(index.entries)
    lines: dict[str, Iterable[Line]] = {
        "tasks": tasks,
        "failures": ((*(part or None for part in kind), times) for kind, times in counted),
    }
    for name in names:
        table = Table.of(COLUMNS[name], lines[name])
        yield name, table


def run_tables(report: Report) -> dict[str, str]:
    """Return the tables of figures, gates and reasons of a run by the names of their files."""
    files: dict[str, str] = {}
    for name, table in chain(figure_tables(report).items(), _counted_tables(report, "failures")):
        for ending, kind in _TEXT_FILES.items():
            text = io.StringIO()
            file = kind(text, table.types)
            file.add(table)
            file.end()
            files[f"{name}.{ending}"] = text.getvalue()
    return files


def _tables(report: Report, ending: str) -> Iterator[tuple[str, Table]]:
    """Yield the tables of a run, those of its rows block by block."""
    yield from figure_tables(report).items()
    if ending != "parquet":  # SQL counts these itself
        yield from _counted_tables(report, "tasks", "failures")
    if report.has_rows:
        yield from blocks_of(OF_ROWS, rows_of(report))


def _write(report: Report, out: Path, ending: str) -> list[Path]:
    """Write the tables of a run as files, and return these."""
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    files: dict[Path, Any] = {}
    with ExitStack() as opened:
        for name, table in _tables(report, ending):
            path = folder / f"{name}.{ending}"
            if path not in files:
                files[path] = _open_file(path, table.types, ending, opened)
            files[path].add(table)
        for file in files.values():
            file.end()
    return list(files)


def _open_file(path: Path, types: Types, ending: str, opened: ExitStack) -> Any:
    if ending == "parquet":
        return _ParquetFile(path, types, opened)
    file = path.open("w", encoding="utf-8", errors="replace", newline="\n")
    enter_context = opened.enter_context(file)
    return _TEXT_FILES[ending](enter_context, types)
