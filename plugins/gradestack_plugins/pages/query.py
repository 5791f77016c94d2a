"""The command ``query``: SQL over the tables of a run, which can read and write nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
from gradestack.jsonio import compact, dumps
from gradestack_plugins.pages.table_files import FOLDER, ParquetReporter, csv_cell

_LOCKS = (
    "SET temp_directory = ''",
    "SET allowed_paths = {}",
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)
"""Only the tables can be read, no variable of the program either, and no option is set back."""
_OFFLINE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
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
    help="Write the answer there, as CSV unless --format says otherwise.",
)
def query(run: str, sql: str, *, form: Format | None, output: str | None) -> None:
    """Answer SQL, one SELECT, from the tables of the run directory RUN.

    Tables: samples, grades, items, reasons, calls; headline, figures, gates.
    For example: gradestack query out "select model, avg(score) from grades group by model".
    The query reads these tables and nothing else: no file, no address.
    One that begins with a comment stands after "--".
    """
    report = load_report(Path(run))
    with forward_termination(), _tables(report) as paths:
        names, rows = _answer(report, paths, sql)
    text = "".join(_written(names, rows, form or ("text" if output is None else "csv")))
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            Path(output).write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise ConfigError(f"{output}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _tables(report: Report) -> Iterator[list[Path]]:
    """Yield the Parquet files of a run.

    Where it has none, they are made for as long as the query takes.
    """
    found = sorted((Path(str(report.path)) / FOLDER).glob("*.parquet"))
    if found:
        yield found
        return
    with TemporaryDirectory(prefix="gradestack-") as folder:
        click.echo(
            f"{report.path}: has no Parquet tables (--tables parquet); they are made for this "
            "query",
            err=True,
        )
        yield list(ParquetReporter().write(report, Path(folder)))


def _answer(
    report: Report, paths: Iterable[Path], sql: str
) -> tuple[list[str], list[tuple[Any, ...]]]:
    duckdb = library("duckdb", extra="query")
    database = duckdb.connect(":memory:", config=_OFFLINE)
    views = {path.stem: str(path.resolve()) for path in paths}
    try:
        for name, path in views.items():
            database.execute(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet({_quoted(path)})')  # noqa: S608 - our names
        allowed = f"[{', '.join(map(_quoted, views.values()))}]"
        for lock in _LOCKS:
            database.execute(lock.format(allowed))
    except duckdb.Error as error:
        advice = f"write them again with `gradestack report {report.path} --format parquet`"
        raise DataError(
            f"{report.path}: the tables cannot be read; {advice}", str(error).partition("\n")[0]
        ) from error
    try:
        statements = database.extract_statements(sql)
        if [each.type for each in statements] != [
            duckdb.StatementType.SELECT
        ]:  # COPY could write over a table
            kinds = ", ".join(each.type.name for each in statements) or "nothing"
            raise ConfigError(
                f"a query is one SELECT, got {kinds}; the tables are {', '.join(views)}"
            )
        answer = database.execute(sql)
        return [each[0] for each in answer.description], answer.fetchall()
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupt" in str(error).lower():  # how the library hands on Ctrl-C
            raise KeyboardInterrupt from error
        raise
    except duckdb.Error as error:
        raise ConfigError(_refusal(error, report, views)) from error
    finally:
        database.close()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _refusal(error: Exception, report: Report, views: Iterable[str]) -> str:
    said = str(error).partition("\n")[0]
    if said.startswith("Permission Error"):
        return f"a query reads the tables of the run and nothing else: {said.partition(': ')[2]}"
    unknown = re.match(r"Catalog Error: Table with name (.*) does not exist", said)
    near = suggest(unknown[1], views) if unknown else ""
    rows = "" if report.has_rows else " (the run kept no rows: it has tables of its figures only)"
    return f"{said.rstrip('!')}{near}; the tables are {', '.join(views)}{rows}"


def _written(names: list[str], rows: list[tuple[Any, ...]], form: Format) -> Iterator[str]:
    if form == "csv":
        yield from (
            csv_line(*line)
            for line in (names, *([csv_cell(_plain(value)) for value in row] for row in rows))
        )
    elif form == "json":
        yield from (dumps(dict(zip(names, map(_plain, row), strict=True))) + "\n" for row in rows)
    else:
        cells = [names, *([_cell(value) for value in row] for row in rows)]
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
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
