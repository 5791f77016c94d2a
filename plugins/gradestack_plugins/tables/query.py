"""The command ``query``: SQL over the tables of a run, and over nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import click

from gradestack import (
    ConfigError,
    DataError,
    Report,
    csv_line,
    forward_termination,
    library,
    load_report,
    suggest,
    terminal_line,
)
from gradestack.jsonio import compact, dumps, open_regular
from gradestack_plugins.tables.files import FOLDER, TABLES, ParquetReporter, csv_cell

_LOCKED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "lock_configuration": "true",
}
"""Options of the database, which opens locked.

It reads and writes no file, sees no variable of the program, loads no extension, and sets no option
back. Only relations that are given to it as objects can be queried.
"""
_DAMAGED = "reading the stream"
"""Words of the database for a relation that broke off."""
_WIDEST = 60
Format = Literal["text", "csv", "json"]


@click.command(
    "query", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.argument("run")
@click.argument("sql")
@click.option(
    "--format", "form", type=click.Choice(["text", "csv", "json"]), help="[default: text]"
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the result to FILE, as CSV unless --format says otherwise.",
)
def query(run: str, sql: str, *, form: Format | None, output: str | None) -> None:
    """Run SQL, one SELECT, on the tables of the report directory RUN.

    Tables: samples, grades, items, reasons, calls; headline, figures, gates.
    For example: gradestack query out "select model, avg(score) from grades group by model".
    The query can read these tables and no files or addresses.
    Put a query that begins with a comment after "--".
    """
    report = load_report(Path(run))
    with forward_termination(), _tables(report) as tables:
        names, rows = _run_query(report, tables, sql)
    text = "".join(_written(names, rows, form or ("text" if output is None else "csv")))
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            output_path = Path(output)
            output_path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise ConfigError(f"{output}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _tables(report: Report) -> Iterator[dict[str, Path]]:
    """Yield the Parquet files of a run by the names of their tables.

    Where it has none, they are made for as long as the query takes.
    """
    path = str(report.path)
    tables = _table_files(Path(path))
    if tables:
        yield tables
        return
    with TemporaryDirectory(prefix="gradestack-") as folder:
        note = "has no Parquet tables (--tables parquet); they are made for this query"
        click.echo(f"{report.path}: {note}", err=True)
        ParquetReporter().write(report, Path(folder))
        yield _table_files(Path(folder))


def _table_files(run: Path) -> dict[str, Path]:
    """Return the tables of a report directory that have a name gradestack writes."""
    paths = {name: run / FOLDER / f"{name}.parquet" for name in TABLES}
    return {name: path for name, path in paths.items() if os.path.lexists(path)}


def _run_query(
    report: Report, tables: Mapping[str, Path], sql: str
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and rows of one SELECT; Ctrl-C ends it at any time.

    The libraries work in a thread: an interruption is lost, or ends the process, where it reaches
    one that is being imported or that reads a table.
    """
    with ExitStack() as opened, ThreadPoolExecutor(1) as threads:
        submit = threads.submit(_connect, report, tables, opened)
        database = submit.result()
        selected = threads.submit(_select, database, sql, tables)
        try:
            return selected.result()
        except KeyboardInterrupt:
            while not selected.done():  # an interruption before the query begins is forgotten
                database.interrupt()
                wait([selected], timeout=0.05)
            raise
        except library("duckdb", extra="query").Error as error:
            if _DAMAGED in str(error):
                path = str(report.path)
                raise _unreadable(report, path, "a table is damaged") from error
            raise ConfigError(_refusal(error, report, tables)) from error


def _connect(report: Report, tables: Mapping[str, Path], opened: ExitStack) -> Any:
    """Return a locked database that knows the tables and nothing else."""
    duckdb = library("duckdb", extra="query")
    relations = {name: _open_table(report, path, opened) for name, path in tables.items()}
    database = opened.enter_context(closing(duckdb.connect(":memory:", config=_LOCKED)))
    for name, relation in relations.items():
        database.register(name, relation)
    return database


def _select(
    database: Any, sql: str, tables: Iterable[str]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a query that is one SELECT; return the names of its columns, and its rows."""
    statements = database.extract_statements(sql)
    kinds = [statement.type for statement in statements]
    if [kind.name for kind in kinds] != ["SELECT"]:  # COPY could write over a table
        names = ", ".join(kind.name for kind in kinds) or "nothing"
        raise ConfigError(f"a query is one SELECT, got {names}; the tables are {', '.join(tables)}")
    cursor = database.execute(sql)
    return [column[0] for column in cursor.description], cursor.fetchall()


def _open_table(report: Report, path: Path, opened: ExitStack) -> Any:
    """Return one table as a relation that the database reads batch by batch.

    The file is opened by us, as a regular file, and nothing sees its name.
    """
    arrow = library("pyarrow", extra="query")
    dataset = library("pyarrow.dataset", extra="query")
    form = dataset.ParquetFileFormat()
    try:
        file = opened.enter_context(open_regular(path))
        # several scans of one table read at the same time, and a file has one position
        content = mmap(file.fileno(), 0, access=ACCESS_READ)
        buffer_reader = arrow.BufferReader(arrow.py_buffer(content))
        fragment = form.make_fragment(buffer_reader)
        return dataset.FileSystemDataset([fragment], fragment.physical_schema, form)
    except (OSError, ValueError, arrow.ArrowException) as error:
        reason = getattr(error, "strerror", None) or "it is no Parquet file"
        raise _unreadable(report, str(path), reason) from error


def _unreadable(report: Report, path: str, reason: str) -> DataError:
    advice = f"write the tables again with `gradestack report {report.path} --format parquet`"
    return DataError(f"{path}: cannot be read: {reason}; {advice}")


def _refusal(error: Exception, report: Report, tables: Iterable[str]) -> str:
    """Return why a query was refused, with a near name of a table and all that there are."""
    message = str(error).partition("\n")[0]
    if message.startswith("Permission Error"):
        refused = message.partition(": ")[2]
        return f"a query reads the tables of the run and nothing else: {refused}"
    unknown = re.match(r"Catalog Error: Table with name (.*) does not exist", message)
    near = suggest(unknown[1], tables) if unknown else ""
    rows = "" if report.has_rows else " (the run kept no rows: it has tables of its figures only)"
    return f"{message.rstrip('!')}{near}; the tables are {', '.join(tables)}{rows}"


def _written(names: list[str], rows: list[tuple[Any, ...]], form: Format) -> Iterator[str]:
    """Yield the lines of an answer."""
    if form == "csv":
        yield csv_line(*names)
        for row in rows:
            yield csv_line(*(csv_cell(_plain(value)) for value in row))
    elif form == "json":
        for row in rows:
            pairs = dict(zip(names, map(_plain, row), strict=True))
            text = dumps(pairs)
            yield text + "\n"
    else:
        cells = [names, *(list(map(_cell, row)) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            yield "  ".join(map(str.ljust, line, widths)).rstrip() + "\n"
        yield f"({len(rows):,} row{'s' * (len(rows) != 1)})\n"


def _plain(value: Any) -> Any:
    """Return a value as JSON data: dates and decimals as texts."""
    if value is None or isinstance(value, bool | int | float | str | dict | list):
        return value
    return str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = terminal_line(value if isinstance(value, str) else compact(_plain(value)))
    if len(text) <= _WIDEST:
        return text
    return f"{text[: _WIDEST - 1]}…"
