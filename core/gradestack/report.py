"""The outcome of a run, as reporters and Python callers see it."""

from __future__ import annotations

import copy
import io
import itertools
import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import attrs

from gradestack.errors import EXIT_GATE_FAILED, EXIT_INTERRUPTED, EXIT_OK, ConfigError, DataError, PluginError, suggest
from gradestack.estimates.grades import Grades
from gradestack.jsonio.files import open_regular, read_regular, whole_line
from gradestack.jsonio.values import JsonProblem, as_map, as_text, compact, loads, loads_long
from gradestack.model import JSON
from gradestack.panel import Panel
from gradestack.rows.index import RowEntry, RowIndex
from gradestack.rows.names import RowName, names_of, samples_of
from gradestack.rows.parts import RowPlaces
from gradestack.rows.read import GradedRow, check_count, row_decoder
from gradestack.rows.read import table_of as table_of_rows
from gradestack.rows.tables import COLUMNS, Table, TableName, lines_of, table_of
from gradestack.rows.verdicts import compared
from gradestack.table import Wanted

GENERATOR = "gradestack"
HEADER, ROWS, SUMMARY = "header.json", "results.jsonl", "summary.json"
_PIECE = 256 * 1024
"""Bytes read at once."""
_METRICS = ("aggregates", "states", "by_metric")
"""What of a summary's metrics the pages cannot do without."""


def is_run(path: Path) -> bool:
    """Return whether a directory is a gradestack run directory."""
    try:
        header = json.loads(read_regular(path / HEADER))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("generator") == GENERATOR


def damage(path: Path) -> str | None:
    """Return what is wrong with a header.json that no JSON can be read from; None where there is none, or it can."""
    try:
        loads(read_regular(path / HEADER))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, JsonProblem) as error:
        return _unreadable(path / HEADER, error)
    return None


def _unreadable(path: Path, error: Exception) -> str:
    """Return what is wrong with a file of a run, in one sentence."""
    if isinstance(error, FileNotFoundError):
        return f"{path}: no such file, which every finished run has; grade the files again"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"{path}: cannot be read: {reason or error}"


@attrs.frozen(kw_only=True)
class Report:
    """A finished run: figures, and sample rows one at a time.

    Attributes:
        path: The run directory; None for a run that wrote nothing.
        header: Content of header.json.
        summary: Content of summary.json.
        pages: Report pages written.
    """

    path: Path | None
    header: Mapping[str, JSON]
    summary: Mapping[str, JSON]
    pages: tuple[Path, ...] = ()
    held: IO[bytes] | None = attrs.field(default=None, eq=False, repr=False)
    """The rows of a run that wrote nothing."""
    completed: Callable[[Iterable[dict[str, Any]]], Iterator[dict[str, Any]]] | None = attrs.field(
        default=None, eq=False, repr=False
    )
    """Puts the trajectories into rows of a slim run, one after the other."""
    panels: tuple[Panel, ...] = attrs.field(default=(), eq=False, repr=False)
    """What plugins show on its pages."""
    told: list[str] = attrs.field(factory=list, eq=False, repr=False)
    """What reporters have to say of its pages; they become warnings of the run."""
    temporary: Path | None = attrs.field(default=None, repr=False)
    """A directory to be removed with the report."""

    @property
    def name(self) -> str:
        """Name of the suite."""
        return str(self.summary["suite"])

    @property
    def metrics(self) -> Mapping[str, JSON]:
        """``summary["metrics"]``: totals, averages, ``by_metric``, ``per_model``, ``states``, ``aggregates``."""
        return self.summary["metrics"]  # type: ignore[no-any-return]

    @property
    def aggregates(self) -> Mapping[str, Mapping[str, Mapping[str, JSON]]]:
        """Grader key -> aggregator key -> metrics."""
        return self.metrics["aggregates"]  # type: ignore[no-any-return]

    @property
    def states(self) -> Mapping[str, Mapping[str, int]]:
        """Grader key -> outcome -> number of samples."""
        return self.metrics["states"]  # type: ignore[no-any-return]

    @property
    def gates(self) -> list[Mapping[str, JSON]]:
        """Every gate with its threshold, the actual value and the verdict."""
        return self.summary["gates"]  # type: ignore[no-any-return]

    @property
    def passed(self) -> bool | None:
        """Whether all gates passed; None when the suite has none."""
        return self.summary["gates_passed"]  # type: ignore[no-any-return]

    @property
    def all_failed(self) -> str | None:
        """That every grade failed, with the first reason, in one sentence; None where something was graded."""
        return self.summary.get("all_failed")

    @property
    def exit_code(self) -> int:
        """What the command line exits with.

        0; 1 a gate failed; 2 a page could not be written with what the suite gave for it; 3 every grade failed;
        4 a plugin broke on the way; 130 interrupted. Of several the greatest.
        """
        if self.summary.get("incomplete"):
            return EXIT_INTERRUPTED
        if self.summary.get("broken"):
            return PluginError.exit_code
        if self.all_failed:
            return DataError.exit_code
        if self.summary.get("refused"):
            return ConfigError.exit_code
        return EXIT_GATE_FAILED if self.passed is False else EXIT_OK

    @property
    def has_rows(self) -> bool:
        """Whether results.jsonl was kept; without it there are figures only."""
        return self.header.get("rows") is not False

    @property
    def has_trajectories(self) -> bool:
        """Whether the rows of results.jsonl hold conversations; those of a slim run are left in its input."""
        return self.header.get("rows") not in (False, "slim")

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of results.jsonl, in input order, one at a time.

        Raises:
            DataError: None were kept, or the file cannot be read.
        """
        self._check_rows()
        return (self._row(number, line) for number, _, line in self._lines())

    def table(self, name: TableName) -> Table:
        """Return one table of all rows, as columns; a score is None unless graded, where rows say 0.0.

        Args:
            name: ``samples``, ``grades`` (one row per sample and grader), ``items``, ``reasons`` or ``calls``.

        Raises:
            ConfigError: There is no such table.
            DataError: No rows were kept, or the file cannot be read.
        """
        if name not in COLUMNS:
            msg = f"no table is called {name!r}{suggest(name, COLUMNS)}; there are: {', '.join(COLUMNS)}"
            raise ConfigError(msg)
        return table_of(name, self.rows())

    def grades(self, key: str) -> Grades:
        """Return one grader's grades of all samples, in input order: ``.columns()``, ``.to_pandas()``, ``.to_arrow()``.

        Args:
            key: The grader's key.

        Raises:
            ConfigError: No grader has this key.
            DataError: No rows were kept, or they are not those of a run.
        """
        if key not in self.states:
            msg = f"no grader has the key {key!r}{suggest(key, self.states)}; there are: {', '.join(self.states)}"
            raise ConfigError(msg)
        wanted = Wanted(parts={key: ()})
        rows = self.decoded(wanted, str(self.path or self.name))
        return Grades(table_of_rows(((row.key(), row) for _, row in rows), wanted), key)

    def decoded(self, wanted: Wanted, name: str) -> Iterator[tuple[int, GradedRow]]:
        """Yield the first byte of every row, and what figures need of it.

        Args:
            wanted: Which graders, and what of their grades.
            name: What the run is called, in errors.

        Raises:
            DataError: No rows were kept, they cannot be read, or one is not that of a run.
        """
        if not self.has_rows:
            msg = f"{name}: the run keeps no rows (rows: none), so that nothing can be compared task by task"
            raise DataError(msg)
        decode = row_decoder(wanted)
        for number, (line, place, data) in enumerate(self._lines(), 1):
            try:
                yield place, decode(line, data, self._row)
            except ValueError as error:
                msg = f"{name}: row {number} of its {ROWS} is not that of a run: {error}"
                raise DataError(msg) from error

    def table_lines(self) -> Iterator[tuple[TableName, tuple[Any, ...]]]:
        """Yield the lines of all tables in one pass over the rows, each with the name of its table; none is kept.

        First comes a line for each table with the names of its columns.

        Raises:
            DataError: No rows were kept, or the file cannot be read.
        """
        return itertools.chain(COLUMNS.items(), lines_of(COLUMNS, self.rows()))

    def rows_at(self, positions: Iterable[int], *, trajectories: bool = True) -> Iterator[dict[str, Any]]:
        """Yield the rows at these positions, which entries of the index have; no other row is read.

        Reporters get the rows of a slim run with their ``trajectory``, read again from the input (fastest in the order
        of the rows), or with ``trajectory_gone``, a sentence that says why it cannot be read.

        Args:
            positions: Zero-based numbers of rows.
            trajectories: Whether they are needed; False reads no input again.

        Raises:
            DataError: None were kept, or the file cannot be read.
        """
        index = self.index
        rows = self.rows_from([(position, index.place(position)) for position in positions])
        return self.completed(rows) if trajectories and self.completed is not None else rows

    def names(self) -> Iterator[RowName]:
        """Yield what the rows are called and where they stand, in input order; faster than the index, and not kept.

        Raises:
            DataError: No rows were kept, or the file cannot be read.
        """
        self._check_rows()
        return names_of(self._lines(), self._row)

    def samples_at(
        self, places: Iterable[tuple[int, int]], *, trajectories: bool = True
    ) -> Iterator[tuple[RowEntry, dict[str, Any]]]:
        """Yield single samples as the index has them, each with its row, without an index of all.

        Args:
            places: Position and first byte of each row.
            trajectories: As of :meth:`rows_at`.

        Raises:
            DataError: No rows were kept, or the file cannot be read.
        """
        self._check_rows()
        for entry, row in samples_of(self._lines_at(places), self._row, self._outcome):
            rows = self.completed([row]) if trajectories and self.completed is not None else iter([row])
            yield entry, next(rows)

    def places(self) -> RowPlaces:
        """Return the rows of a run directory by position, after one pass over the ends of their lines.

        Raises:
            DataError: No rows were kept, or others than those the summary is of.
            OSError: The file cannot be read.
        """
        self._check_rows()
        assert self.path is not None, "what was never written has no file"  # noqa: S101 - callers load a directory
        return RowPlaces(self.path / ROWS, self._row, self._outcome, self.summary)

    def lines(self, start: int, stop: int) -> bytes:
        """Return the rows from position ``start`` to before ``stop`` as they stand in results.jsonl, a line each.

        Args:
            start: Zero-based number of the first row, as entries of the index have it.
            stop: Number of the first row that is not wanted.

        Raises:
            DataError: None were kept, or the file cannot be read.
        """
        index = self.index
        count = len(index.entries)
        if not 0 <= start < min(stop, count):
            return b""
        with self._open() as file:
            file.seek(index.place(start))
            data = file.read(index.place(stop) - index.place(start) - 1 if stop < count else -1)
            if index.whole:
                return data if stop < count else data.rstrip(b"\n")
            found = []  # with blank lines, or lines that are no row, between them
            for position in range(start, min(stop, count)):
                file.seek(index.place(position))
                found.append(whole_line(file).rstrip(b"\n"))
            return b"\n".join(found)

    @cached_property
    def index(self) -> RowIndex:
        """What pages show of all samples: an entry for each, distributions of scores, why points were lost.

        Found in one pass over the rows when first asked for, and shared by all reporters of a run.

        Raises:
            DataError: No rows were kept, or the file cannot be read.
        """
        self._check_rows()
        return RowIndex.of(self._lines(), self._row, self._outcome, compared(self.header))

    def apart(self) -> Report:
        """Return the same report with a header and a summary of its own: what is done to these changes nothing here."""
        header, summary = copy.deepcopy(self.header), copy.deepcopy(self.summary)
        found = attrs.evolve(self, header=header, summary=summary, told=[])
        if self.has_rows:
            object.__setattr__(found, "index", self.index)  # found once for all
        return found

    @property
    def _outcome(self) -> str | None:
        """Key of the outcome grader, None without one."""
        return as_text(as_map(self.summary.get("outcome")).get("grader")) or None

    def _check_rows(self) -> None:
        if not self.has_rows:
            msg = f"{self.path}: the run kept no rows (rows: none)"
            raise DataError(msg)

    def rows_from(self, places: Iterable[tuple[int, int]]) -> Iterator[dict[str, Any]]:
        """Yield the rows of these positions and first bytes."""
        return (self._row(number, line) for _, (number, _, line) in self._lines_at(places))

    def _lines_at(self, places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, tuple[int, int, bytes]]]:
        with self._open() as file:
            for position, place in places:
                file.seek(place)
                yield position, (position + 1, place, whole_line(file))

    def _row(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            row = loads_long(line)
            if isinstance(row, dict):
                return row
            problem: Any = f"expected an object, found {compact(row)[:60]}"
        except JsonProblem as error:
            problem = error
        where = "a row" if self.path is None else self.path / ROWS
        msg = f"{where}:{number}: {problem}"
        raise DataError(msg)

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield number, first byte and bytes of each line that is not blank."""
        number = place = rows = 0
        with self._open() as file:
            while True:
                if self.held is not None:
                    file.seek(place)  # others may read between two rows
                line = whole_line(file)
                if not line:
                    check_count(self.path and self.path / ROWS, rows, self.summary)
                    return
                number += 1
                if not line.isspace():
                    rows += 1
                    yield number, place, line
                place += len(line)

    def _open(self) -> AbstractContextManager[IO[bytes]]:
        if self.path is not None:
            return open_regular(self.path / ROWS, _PIECE)
        if self.held is not None and self.held.closed:
            msg = "the report is closed: rows that were never written are gone"
            raise DataError(msg)
        return nullcontext(self.held or io.BytesIO())

    def close(self) -> None:
        """Let go of held rows; remove the run directory if it was a temporary one."""
        if self.held is not None:
            self.held.close()
        if self.temporary is not None:
            import shutil  # noqa: PLC0415 - only here

            shutil.rmtree(self.temporary, ignore_errors=True)

    def closing_itself(self) -> Self:
        """Return itself; held rows are let go of when nobody has it any more."""
        if self.held is not None:
            weakref.finalize(self, self.held.close)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def load_report(path: str | Path) -> Report:
    """Return the report of a run directory.

    Raises:
        DataError: Not a run directory, or a file of it cannot be read.
    """
    path = Path(path)
    if not path.is_dir():
        msg = f"{path}: {'not a directory' if path.exists() else 'no such directory'}"
        raise DataError(msg)
    if not is_run(path):
        msg = damage(path) or f"{path}: not a gradestack run directory ({HEADER} is missing or not ours)"
        raise DataError(msg)
    read: dict[str, Any] = {}
    for name in (HEADER, SUMMARY):
        try:
            read[name] = loads(read_regular(path / name))
        except (OSError, JsonProblem) as error:
            raise DataError(_unreadable(path / name, error)) from error
    summary = read[SUMMARY]
    if not isinstance(summary, dict) or not {"suite", "metrics", "gates", "gates_passed"} <= set(summary):
        msg = f"{path / SUMMARY}: not the summary of a gradestack run"
        raise DataError(msg)
    if lacking := [name for name in _METRICS if not isinstance(as_map(summary["metrics"]).get(name), dict)]:
        msg = f"{path / SUMMARY}: metrics lacks {', '.join(lacking)}, which every run writes; grade the files again"
        raise DataError(msg)
    report = Report(path=path, header=read[HEADER], summary=read[SUMMARY])
    if report.has_rows and not (path / ROWS).is_file():
        msg = f"{path / ROWS}: {'not a regular file' if (path / ROWS).exists() else 'no such file'}"
        raise DataError(msg)
    return report
