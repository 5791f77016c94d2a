"""The reporters ``csv`` and ``json``: every table of a run as a file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import attrs
from typing_extensions import override

from gradestack import Report, Reporter, csv_line
from gradestack.jsonio import compact, dumps
from gradestack_plugins.pages.figures import COLUMNS, figure_lines

FOLDER = "tables"
_OF_ROWS = ("tasks", "failures")
Line = tuple[Any, ...]
_PLAIN = frozenset({type(None), str, int, float})


@attrs.frozen(kw_only=True)
class CsvReporter(Reporter):
    """Writes ``tables/NAME.csv``: the figures, gates, tasks and reasons of a run, and its rows as five tables.

    Lines end with LF, a cell without a value is empty, true and false are words, mappings are JSON. A text that a
    spreadsheet would calculate gets a ``'`` before it.
    """

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        return _write(report, out, "csv", _CsvFile)


@attrs.frozen(kw_only=True)
class JsonReporter(Reporter):
    """Writes ``tables/NAME.json``: the tables of ``csv``, each a list of objects, one on a line."""

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        return _write(report, out, "json", _JsonFile)


class _CsvFile:
    """One table as CSV."""

    def __init__(self, file: IO[str], columns: tuple[str, ...]) -> None:
        self._write, self._columns = file.write, columns

    def begin(self) -> None:
        self._write(csv_line(*self._columns))

    def add(self, line: Line) -> None:
        self._write(csv_line(*map(_cell, line)))

    def end(self) -> None:
        """Nothing ends a CSV file."""


class _JsonFile:
    """One table as a JSON list of objects."""

    def __init__(self, file: IO[str], columns: tuple[str, ...]) -> None:
        self._write, self._columns, self._before = file.write, columns, "\n"

    def begin(self) -> None:
        self._write("[")

    def add(self, line: Line) -> None:
        self._write(self._before + dumps(dict(zip(self._columns, line, strict=True))))
        self._before = ",\n"

    def end(self) -> None:
        self._write("]\n" if self._before == "\n" else "\n]\n")


def _cell(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return compact(value) if isinstance(value, Mapping | list) else value


def _lines(report: Report) -> Iterator[tuple[str, Line]]:
    """Yield the lines of all tables, first of each the names of its columns."""
    without = () if report.has_rows else _OF_ROWS
    yield from ((name, columns) for name, columns in COLUMNS.items() if name not in without)
    yield from figure_lines(report)
    if report.has_rows:
        yield from report.table_lines()


def run_tables(report: Report) -> dict[str, str]:
    """Return the tables of a run as a whole by the names of their files: figures, gates and reasons, not its rows."""
    files: dict[str, io.StringIO] = {}
    known: dict[str, list[_CsvFile | _JsonFile]] = {}
    columns = {
        name: each for name, each in COLUMNS.items() if name not in (("tasks",) if report.has_rows else _OF_ROWS)
    }
    for name, each in columns.items():
        known[name] = []
        for ending, form in (("csv", _CsvFile), ("json", _JsonFile)):
            file = files[f"{name}.{ending}"] = io.StringIO()
            known[name].append(form(file, each))
            known[name][-1].begin()
    for name, line in figure_lines(report, tasks=False):
        for table in known[name]:
            table.add(line)
    for table in (table for tables in known.values() for table in tables):
        table.end()
    return {name: file.getvalue() for name, file in files.items()}


def _write(
    report: Report, out: Path, ending: str, form: Callable[[IO[str], tuple[str, ...]], _CsvFile | _JsonFile]
) -> list[Path]:
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    files: dict[str, _CsvFile | _JsonFile] = {}
    with ExitStack() as opened:
        for name, line in _lines(report):
            if name in files:
                files[name].add(line)
                continue
            path = folder / f"{name}.{ending}"
            file = opened.enter_context(path.open("w", encoding="utf-8", errors="replace", newline="\n"))
            files[name] = form(file, line)
            files[name].begin()
        for table in files.values():
            table.end()
    return [folder / f"{name}.{ending}" for name in files]
