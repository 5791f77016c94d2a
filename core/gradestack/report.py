"""The outcome of a run, as reporters and Python callers see it."""

from __future__ import annotations

import abc
import copy
import io
import json
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Self, cast

import attrs
import msgspec
from msgspec import defstruct

from gradestack.api import Contract, Direction
from gradestack.errors import (
    EXIT_GATE_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    ConfigError,
    DataError,
    GradestackError,
    PluginError,
    hint_of,
    reading,
)
from gradestack.gates.verdicts import Verdict
from gradestack.grades import Grades
from gradestack.grading.subset import Subset, left_out_text, not_found, subset_entry
from gradestack.hooks import Kind
from gradestack.jsonio.files import read_regular, whole_line
from gradestack.jsonio.values import (
    JsonProblem,
    as_list,
    as_map,
    as_text,
    compact,
    is_number,
    loads,
    loads_long,
)
from gradestack.model import JSON
from gradestack.output import counted
from gradestack.registry import discover
from gradestack.rows.packed import open_rows, rows_file
from gradestack.rows.read import Decode, GradedRow, NamedRow, Row, check_count, decoder_of
from gradestack.rows.read import table_of as table_of_rows
from gradestack.table import Wanted

GENERATOR = "gradestack"
HEADER, SUMMARY = "header.json", "summary.json"


def header_of(path: Path) -> dict[str, Any]:
    """Return the content of a report directory's header.json; nothing where it is none."""
    try:
        text = read_regular(path / HEADER)
        header = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(header, dict) and header.get("generator") == GENERATOR:
        return header
    return {}


def is_run(path: Path) -> bool:
    """Return whether a directory is a gradestack report directory."""
    return bool(header_of(path))


_LARGEST_IN_MEMORY = 64 << 20
"""Bytes of rows of a subset that are kept in memory."""
_decode_graded, _decode_named = decoder_of(GradedRow), decoder_of(NamedRow)
_SHOWN = 60
"""Characters of a value that a message shows."""


# What nothing can do without of a run's files, whoever wrote them; what else stands in them is not
# looked at.
_Maps = dict[str, dict[str, Any]]
_Component = defstruct(
    "Component",
    [
        ("kind", str),
        ("key", str),
        ("name", str),
        ("label", str, ""),
        ("unit", str, ""),
        ("options", dict[str, Any], {}),
        ("code", dict[str, str], {}),
        ("better", Direction, "higher"),
    ],
)
_File = defstruct("File", [("path", str), ("bytes", int | None), ("sha256", str | None)])
_Header = defstruct(
    "Header",
    [
        ("components", list[_Component], []),  # type: ignore[valid-type]
        ("profile", str, "documented"),
        ("inputs", list[_File], []),  # type: ignore[valid-type]
    ],
)
_Outcome: Any = defstruct(
    "Outcome", [("grader", str, ""), ("rule", str, ""), ("words", dict[str, str], {})]
)
_Metrics = defstruct(
    "Metrics",
    [
        ("aggregates", _Maps),
        ("states", dict[str, dict[str, int]]),
        ("by_metric", _Maps),
        ("total", int, 0),
    ],
)
_Summary = defstruct(
    "Summary",
    [
        ("suite", str),
        ("gates", list[Verdict]),
        ("gates_passed", bool | None),
        ("metrics", _Metrics),
        ("warnings", list[Any], []),
        ("incomplete", str, ""),
        ("all_failed", str, ""),
        ("outcome", _Outcome | None, None),
        ("headline", dict[str, Any] | None, None),
    ],
)


def _find_odd_end(value: Any, path: str = "$") -> str | None:
    """Find an end of an interval in a summary that is no number, as everything that shows one
    expects; None where all are.
    """
    members: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        # a tool may have such a name, too
        is_end = key in ("low", "high") and isinstance(value.get("method"), str)
        if is_end and member is not None and not is_number(member):
            shown = compact(member)[:_SHOWN]
            return f"Expected `number | null`, got `{shown}` - at `{path}.{key}`"
        odd = _find_odd_end(member, f"{path}.{key}")
        if odd is not None:
            return odd
    return None


def damage(path: Path) -> str | None:
    """Return that a run has lost its header.json, or that the one there cannot be used.

    None of any other directory.
    """
    try:
        loads(read_regular(path / HEADER))
    except NotADirectoryError:
        return None
    except FileNotFoundError:
        problem = f"{path}: a gradestack run without its {HEADER}"
    except (OSError, JsonProblem) as error:
        return _unreadable(path / HEADER, error)
    else:
        problem = f"{path / HEADER}: does not say that gradestack wrote it"
    advice = "copy the whole directory, or grade the files again"
    if _has_rows_of_ours(path):
        return f"{problem}; {advice}"
    return None


def _has_rows_of_ours(path: Path) -> bool:
    """Return whether the first row in a folder has keys that rows of letta-evals have not."""
    with suppress(OSError, JsonProblem, DataError), open_rows(rows_file(path)) as rows:
        first = as_map(loads(whole_line(rows)))
        return first.keys() >= {"predicted", "facets", "status"}
    return False


def _unreadable(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path}: no such file, which every finished run has; grade the files again"
    return f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"


@attrs.frozen(kw_only=True, repr=False)
class Report:
    """A finished run: figures, and sample rows one at a time.

    Attributes:
        path: The report directory; None for a run that wrote nothing.
        header: Content of header.json.
        summary: Content of summary.json.
        pages: Report pages written.
    """

    path: Path | None
    header: Mapping[str, JSON]
    summary: Mapping[str, JSON]
    pages: tuple[Path, ...] = ()
    row_buffer: IO[bytes] | None = attrs.field(
        default=None, eq=False, repr=False
    )  # the rows of a run that wrote nothing
    registry: Any = attrs.field(default=None, eq=False, repr=False)
    """Where components come from, for reporters that show something of plugins."""
    shared: dict[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    """What reporters found of the run, for each other."""
    warnings: list[str] = attrs.field(factory=list, eq=False, repr=False)
    """What reporters have to say of its pages; they become warnings of the run."""
    temporary: Path | None = attrs.field(
        default=None, repr=False
    )  # a directory to be removed with the report

    def __repr__(self) -> str:
        suite = self.summary.get("suite")
        parts = [repr(suite)]
        total = as_map(self.summary.get("metrics")).get("total", 0)
        parts.append(counted(total, "sample"))
        passed = self.summary.get("gates_passed")
        if passed is not None:
            parts.append(f"gates {'passed' if passed else 'failed'}")
        parts.append(str(self.path or "in memory"))
        return f"Report({', '.join(parts)})"

    def _repr_html_(self) -> str | None:
        with suppress(GradestackError, AttributeError):
            return str((self.registry or discover()).load("reporter", "html")().cell(self))
        return None

    @property
    def samples(self) -> Any:
        """The table ``samples``; ``.failed()`` are those that did not pass."""
        return self.table("samples")

    @property
    def name(self) -> str:
        """Name of the suite."""
        return str(self.summary["suite"])

    @property
    def metrics(self) -> Mapping[str, JSON]:
        """``summary["metrics"]``.

        Totals, averages, ``by_metric``, ``per_model``, ``states``, ``aggregates``.
        """
        return self.summary["metrics"]  # type: ignore[no-any-return]

    @property
    def main_grader(self) -> str:
        """Key of the grader whose averages ``metrics`` begins with; "" where it is not recorded."""
        rule = as_text(self.summary.get("pass_rule"))
        return rule.rpartition(" score ")[0]

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
    def program_verdict(self) -> tuple[bool, str] | None:
        """Whether the gates of the original programs passed, and whose programs these are.

        None where no program with gates of its own ran.
        """
        programs = as_list(self.summary.get("programs"))
        entries = [as_map(entry) for entry in programs]
        deciding = [entry for entry in entries if entry.get("exit_code") is not None]
        if not deciding:
            return None
        titles = dict.fromkeys(as_text(entry.get("title")) for entry in deciding)
        return not any(entry["exit_code"] for entry in deciding), " and ".join(titles)

    @property
    def all_failed(self) -> str | None:
        """That every grade failed, with the first reason, in one sentence.

        None where something was graded.
        """
        return self.summary.get("all_failed")

    @property
    def exit_code(self) -> int:
        """The exit code of the command line.

        0; 1 a gate failed; 2 a page could not be written with what the suite gave for it; 3 every
        grade failed; 4 a plugin broke on the way; 130 interrupted. Of several the greatest. An
        original program that has gates of its own decides in place of the suite's.
        """
        if self.summary.get("incomplete"):
            return EXIT_INTERRUPTED
        if self.summary.get("broken"):
            return PluginError.exit_code
        if self.all_failed:
            return DataError.exit_code
        if self.summary.get("refused"):
            return ConfigError.exit_code
        decided = self.program_verdict
        passed = self.passed if decided is None else decided[0]
        if passed is False:
            return EXIT_GATE_FAILED
        return EXIT_OK

    @property
    def has_rows(self) -> bool:
        """Whether results.jsonl was kept; without it there are figures only."""
        return self.header.get("rows") is not False

    def rows(self) -> Iterator[Row]:
        """Yield the rows of results.jsonl, in input order, one at a time.

        Raises:
            DataError: None were kept, or the file cannot be read.
        """
        return (self.row(number, line) for number, _, line in self.lines())

    def table(self, name: str) -> Any:
        """Return one table of the run, as columns.

        A score is None unless graded, where rows say 0.0.

        Args:
            name: ``samples``, ``grades`` (one row per sample and grader), ``items``, ``reasons`` or
                ``calls``, of its rows; ``headline``, ``figures`` or ``gates``, of its summary; or a
                table of a plugin.

        Raises:
            ConfigError: There is no such table.
            DataError: No rows were kept, or the file cannot be read.
        """
        return (self.registry or discover()).load("table", name)(self, name)

    def figures(self) -> Any:
        """Return every number of every grader and aggregator, with its interval where it has one.

        ``.to_pandas()`` makes a frame.
        """
        return self.table("figures")

    def grades(self, key: str) -> Grades:
        """Return one grader's grades of all samples, in input order; ``.columns()`` are lists.

        Args:
            key: The grader's key.

        Raises:
            ConfigError: No grader has this key.
            DataError: No rows were kept, or they are not those of a run.
        """
        if key not in self.states:
            raise ConfigError(f"no grader has the key {key!r}{hint_of(key, self.states)}")
        wanted = Wanted(parts={key: ()})
        rows = self.decoded(str(self.path or self.name))
        return Grades(table_of_rows(((row.key(), row) for _, row in rows), wanted), key)

    def decoded(self, name: str) -> Iterator[tuple[int, GradedRow]]:
        """Yield the first byte of every row, and what figures need of it.

        ``name`` is what errors call the run.
        """
        for number, position, line in self.lines(name=name):
            yield position, self._decoded(_decode_graded, number, line)

    def _decoded(self, decode: Decode, number: int, line: bytes) -> Any:
        try:
            return decode(number, line, self.row)
        except ValueError as error:
            raise DataError(f"{self.rows_name}:{number}: {error}") from error

    def lines(
        self, positions: Iterable[tuple[int, int]] | None = None, name: str = ""
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield number, first byte and bytes of the lines of results.jsonl that are not blank.

        Args:
            positions: Position (from 0) and first byte of each row to read. Default: all, in order.
            name: What errors call the run; default: its path.

        Raises:
            DataError: None were kept, or the file cannot be read.
        """
        if not self.has_rows:
            raise DataError(f"{name or self.path}: the run kept no rows (rows: none)")
        if positions is None:
            return self._lines()
        return self._lines_at(positions)

    def row(self, number: int, line: bytes) -> Row:
        """Return the row a line holds; DataError: it holds none."""
        try:
            row: Any = loads_long(line)
            if isinstance(row, dict):
                return cast("Row", row)
            problem: Any = f"expected an object, found {compact(row)[:60]}"
        except JsonProblem as error:
            problem = error
        raise DataError(f"{self.rows_name}:{number}: {problem}")

    @property
    def rows_name(self) -> str:
        """The name before the number of a line in errors.

        The file of the rows, where they have one.
        """
        if self.path is None:
            return "a row"
        return str(rows_file(self.path))

    def open_rows(self) -> AbstractContextManager[IO[bytes]]:
        """Open results.jsonl, or the rows of a run that wrote nothing.

        DataError: it cannot be opened.
        """
        if self.path is not None and self.row_buffer is None:
            path = rows_file(self.path)
            with reading(path):
                return open_rows(path)
        if self.row_buffer is not None and self.row_buffer.closed:
            raise DataError("the report is closed: rows that were never written are gone")
        return nullcontext(self.row_buffer or io.BytesIO())

    def filter(self, subset: Subset) -> Report:
        """Return the report with the rows of a subset alone.

        Its summary stays that of the whole run.
        """
        if not subset:
            return self
        chosen: IO[bytes] = tempfile.SpooledTemporaryFile(_LARGEST_IN_MEMORY)  # noqa: SIM115
        ids = dict[str, None]()
        facets = set[str]()
        row_count = 0
        left_out = 0
        for number, _, line in self.lines():
            fields = self._decoded(_decode_named, number, line).fields
            facets |= (fields.facet or {}).keys()
            is_within = not subset.limit or fields.id in ids or len(ids) < subset.limit
            if not is_within or not subset.admits(fields):
                left_out += 1
                continue
            ids[fields.id] = None
            chosen.write(line if line.endswith(b"\n") else line + b"\n")
            row_count += 1
        absent = not_found(subset, facets, ids)
        if not row_count:
            chosen.close()
            raise DataError(f"{self.path or self.name}: no run is left: {subset}", *absent)
        entry = subset_entry(subset, row_count, left_out)
        entry["said"] = [left_out_text(subset, row_count, left_out), *absent]
        header = {**self.header, "subset": entry}
        return attrs.evolve(self, row_buffer=chosen, header=header, shared={}).closing_itself()

    def copy(self) -> Report:
        """Return the same report with a header and a summary of its own.

        What is done to these changes nothing here.
        """
        header = copy.deepcopy(self.header)
        summary = copy.deepcopy(self.summary)
        return attrs.evolve(self, header=header, summary=summary, warnings=[])

    def _lines_at(self, positions: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, bytes]]:
        with self.open_rows() as file:
            for number, position in positions:
                file.seek(position)
                yield number + 1, position, whole_line(file)

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield (line number, position, text) of each row; check the number of rows."""
        number = position = rows = 0
        is_on_disk = self.path is not None and self.row_buffer is None
        with self.open_rows() as file:
            while True:
                if not is_on_disk:
                    file.seek(position)  # others may read between two rows
                line = whole_line(file)
                end = file.tell()  # a line that is too long is another one here
                if end == position:
                    break
                number += 1
                if not line.isspace():
                    rows += 1
                    yield number, position, line
                position = end
        if self.path is not None and is_on_disk:
            path = rows_file(self.path)
            check_count(path, rows, self.summary)

    def close(self) -> None:
        """Let go of held rows; remove the report directory if it was a temporary one."""
        if self.row_buffer is not None:
            self.row_buffer.close()
        if self.temporary is not None:
            import shutil  # noqa: PLC0415 - only here

            shutil.rmtree(self.temporary, ignore_errors=True)

    def closing_itself(self) -> Self:
        """Return itself; held rows are let go of when nobody has it any more."""
        if self.row_buffer is not None:
            weakref.finalize(self, self.row_buffer.close)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def load_report(path: str | Path) -> Report:
    """Return the report of a report directory.

    Raises:
        DataError: Not a report directory, or a file of it cannot be read.
    """
    path = Path(path)
    if not path.is_dir():
        raise DataError(f"{path}: {'not a directory' if path.exists() else 'no such directory'}")
    if not is_run(path):
        unknown = f"{path}: not a gradestack report directory ({HEADER} is missing or not ours)"
        raise DataError(damage(path) or unknown)
    header = _read_file(path / HEADER, _Header)
    summary = _read_file(path / SUMMARY, _Summary)
    components = header.get("components", [])
    graders = {entry["key"] for entry in components if entry["kind"] == "grader"}
    keys = summary["metrics"]["states"].keys()
    unknown_graders = keys - graders
    if unknown_graders:
        where = f"in components, of which {SUMMARY} has figures"
        raise _not_ours(path / HEADER, f"no grader {min(unknown_graders)!r} {where}")
    odd = _find_odd_end(summary)
    if odd is not None:
        raise _not_ours(path / SUMMARY, odd)
    report = Report(path=path, header=header, summary=summary)
    rows = rows_file(path)
    if report.has_rows and not rows.is_file():
        raise DataError(f"{rows}: {'not a regular file' if rows.exists() else 'no such file'}")
    return report


def _read_file(path: Path, form: type[Any]) -> dict[str, Any]:
    """Return the content of a file of a run; DataError: it has not the form of one."""
    try:
        content: dict[str, Any] = loads(read_regular(path))
        msgspec.convert(content, form)
    except (OSError, JsonProblem) as error:
        raise DataError(_unreadable(path, error)) from error
    # a key may be half of a surrogate pair
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise _not_ours(path, error) from error
    return content


def _not_ours(path: Path, problem: object) -> DataError:
    what = f"not the {path.stem} of a gradestack run: {problem}"
    return DataError(f"{path}: {what}; grade the files again")


class Reporter(Contract):
    """Writes pages or files from the report of a finished run. Same report, same bytes.

    Attributes:
        data_files: Patterns (``report_data/chunk-*.js``) of files that a page may have in its own
            folder. Files that an earlier page left there are removed.
    """

    contract: ClassVar[Kind] = "reporter"
    data_files: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write into ``out``, an empty directory, and return the files written.

        They are moved to where they belong.
        """

    def comparison(self, comparison: Any, out: Path, registry: Any) -> Iterable[Path]:
        """Write the page of a comparison into ``out`` and return the files written.

        None where it has no such page.

        Args:
            comparison: The ``gradestack.Comparison``.
            out: An empty directory.
            registry: Where what plugins show on pages comes from.
        """
        return ()
