"""Reader ``records``: tables and records of any form."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Input,
    Inputs,
    RecordFile,
    Sample,
    Shard,
    Source,
    reading,
    replace,
    suggest,
)
from gradestack.jsonio import (
    Element,
    JsonProblem,
    Range,
    compact,
    first_records,
    is_number,
    loads,
    open_regular,
    path_steps,
    path_value,
)
from gradestack_plugins.readers import tables
from gradestack_plugins.readers.chat import dialect
from gradestack_plugins.readers.chat.calls import decoded
from gradestack_plugins.readers.chat.cells import BELOW, reader_of
from gradestack_plugins.readers.chat.identity import stems
from gradestack_plugins.readers.chat.layout import form_of
from gradestack_plugins.readers.chat.looks import once_per_file
from gradestack_plugins.readers.chat.mapping import (
    Columns,
    Mapped,
    check_columns,
    lead_nowhere,
    mapped,
    missing,
    sample_of,
)
from gradestack_plugins.readers.chat.names import (
    FIRST,
    Guess,
    beginning,
    guess,
    has_several_records,
    is_session,
    names_session,
    notes_on,
    usual_record,
)
from gradestack_plugins.readers.chat.parts import CONVERT, parts_of_runs, row_kind
from gradestack_plugins.readers.chat.samples import PROVIDES
from gradestack_plugins.readers.chat.steps import STEPS, SessionKey, StepReader, put_together
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.readers.rows import Row, runs_of_rows
from gradestack_plugins.readers.runs import sample_of_run
from gradestack_plugins.records import layout
from gradestack_plugins.records.exports import TraceScores, collect_scores, row_of, rows_in
from gradestack_plugins.records.layout import Form, listed
from gradestack_plugins.records.totals import are_nulls_failed, totals_beside, with_lost_verdicts

_LARGEST_SNIFFED: Final = 2 * 1024 * 1024
_SURE: Final = 0.85
"""Confidence in a table: more than readers of data sets, less than readers of one format."""
_PERHAPS: Final = 0.1
"""Confidence in a Parquet file that nothing can read: reading it says what to install."""
_RECORDS: Final = 0.58
"""Confidence in JSON records of what an agent did: more than readers of references have."""
_TRACES: Final = 0.93
"""Confidence in traces of Langfuse with their observations, and in their scores."""
_SNIFFED: Final = layout.TABLES | {""}
"""Suffixes of files that may be tables; standard input has none."""
_EXPORT_NOTE: Final = "Recognised: rows of Langfuse or Phoenix; those of one trace are one run"
_NO_RUN: Final = "no messages, calls or answer of an agent"
_LONG: Final = 500
"""Characters from which on a text of several lines may be a conversation."""
_LONGEST_NAME: Final = 60
"""Characters of a column name that a command may name."""
_COMPARED: Final = (
    "to grade answers, map them and what was expected: --map text=COLUMN --map expected.text=COLUMN"
)
_ARGUMENT: Final = 'columns={"id": COLUMN, "messages": COLUMN}'
"""The argument that maps columns in Python."""


def _check_columns(_: Any, __: Any, columns: Mapping[str, str] | None) -> None:
    check_columns(columns or {})


def _check_location(_: Any, __: Any, location: str | None) -> None:
    if location is not None and not location.startswith("$"):
        wanted = "expected a path to the list of records, such as $.data.runs"
        raise ValueError(f"{wanted}, got {location!r}")
    if location not in (None, "$"):
        path_steps(str(location))


class _Beginning(msgspec.Struct, frozen=True):
    """Properties of a file by its first records."""

    is_export: bool
    """Whether they are rows of Langfuse or Phoenix."""
    has_histories: bool
    """Whether they hold a history beside what followed it."""
    has_sessions: bool
    """Whether they name a session."""


def _certainty_of_table(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the confidence in a table; one of expectations alone is hardly any."""
    columns = guess(rows, reader_of)
    return _SURE if columns.shows_a_run else _PERHAPS * columns.is_dataset


@attrs.frozen(kw_only=True)
class Records(StepReader):
    """Reads CSV, Parquet, JSON Lines, a JSON list or one JSON document, whatever its columns are
    called.

    ``columns`` maps each field of a sample to its column, or to a path such as ``$.log.messages``.
    Without it columns are recognised by usual names (``own_data@1``); with ``guess`` as well. JSON
    in a cell is decoded. An empty cell is not recorded; of calls it says that there are none.
    Columns that are not used are counted. A record without an id has one made up.

    Rows that Langfuse or Phoenix exported are grouped: those of one trace are one run. With
    ``columns``, or without ``merge``, each of their model calls is a record by itself.
    """

    example_file = "table.csv, chats.parquet, runs.json"
    columns: dict[str, str] | None = attrs.field(default=None, validator=_check_columns)
    """Field -> column or path."""
    guess: bool | None = None
    """Whether columns are recognised by their names beside ``columns``.

    Default: where there are none.
    """
    records: str | None = attrs.field(default=None, validator=_check_location)
    """Path to the list of records in one JSON document; default: the only one there is."""

    provides = PROVIDES | {"label", "plan", "state", "children", "agent_id"}
    stack = "auto"
    empty_answers = True

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if head.startswith(tables.PARQUET):
            rows = layout.first_rows_of_parquet(path, cls.sniffed)
            return _certainty_of_table(rows) if rows else _PERHAPS
        begins = head.removeprefix(layout.MARK).lstrip()[:1]
        if begins in {b"{", b"["}:
            return cls._sniff_json(path, head, begins)
        if path.suffix.lower() not in _SNIFFED:
            return 0.0
        return _certainty_of_table(layout.first_rows_of_csv(path, head, cls.sniffed, least=1))

    @classmethod
    def _sniff_json(cls, path: Path, head: bytes, begins: bytes) -> float:
        """Rate how surely a JSON file holds records, from its first ones."""
        records = cls._first_records(path, head)
        rows = list(chain.from_iterable(map(rows_in, records)))
        if len(rows) > len(records) or any(row_kind(row) == "score" for row in rows):
            return _TRACES
        records = [record for record in records if isinstance(record, dict) or _are_objects(record)]
        usual_records = list(map(usual_record, records))
        objects = layout.objects_in(usual_records)
        if parts_of_runs(objects) is not None or any(map(_is_a_log, objects)):
            return 0.0
        is_jsonl = begins == b"{" and any("predicted" in record for record in objects)
        if is_jsonl or any(map(JsonLines.looks_like, objects)):
            return 0.0
        columns = guess(objects, reader_of)
        is_document = len(records) == 1 and layout.holds_records(records[0])
        if columns.shows_a_run or is_document:
            return _RECORDS
        return _PERHAPS * columns.is_dataset

    @classmethod
    def _first_records(cls, path: Path, head: bytes) -> list[Any]:
        """Return the first records of a JSON file; a conversation counts as one record."""
        form = form_of(head)
        elements = [element for element, _ in first_records(head, cls.sniffed)]
        records = [element.value for element in elements if element.problem is None]
        if form == "lists":
            records = _conversations_in(head) or records
        if not any(isinstance(record, dict | list) for record in records):
            with suppress(JsonProblem, OSError), open_regular(path) as file:
                text = file.read(_LARGEST_SNIFFED)
                records = [loads(text.removeprefix(layout.MARK))]
        return [records] if form == "entries" else records

    @classmethod
    def advice(
        cls, path: Path, head: bytes, objects: Sequence[Mapping[str, Any]]
    ) -> tuple[str, str, dict[str, str] | None] | None:
        """Return why objects or a table that no reader recognises are not read, what to do, and a
        mapping to try.

        None for the mapping where none can help; "" where nothing but a mapping is missing.
        """
        if objects:
            reason, remedy, mapping = _proposal(objects)
            return reason * (not reason.startswith("fields: ")), remedy, mapping
        if head.startswith(tables.PARQUET):
            rows = layout.first_rows_of_parquet(path, cls.sniffed)
        else:
            least = 2
            if path.suffix.lower() in layout.TABLES:
                least = 1
            rows = layout.first_rows_of_csv(path, head, cls.sniffed, least)
        if not rows:
            return None
        reason, remedy, mapping = _proposal(rows)
        return f"no column is mapped ({reason})", remedy, mapping or {}

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for file, stem in zip(inputs.data, stems(inputs.data), strict=True):
            with reading(file.shown):
                form = self._form(file)
            is_export = self._beginning(file).is_export
            groups_rows = self._groups_rows(file)
            columns = {} if groups_rows else self._columns(file)
            extra: dict[str, Any] = {"form": form, "stem": stem, "columns": columns}
            extra["lost"] = self._lost_verdicts(file, columns) if form == "document" else []
            if form == "records" and not is_export:
                ranges = None
            else:
                ranges = (Range(),)
            yield RecordFile(input=file, ranges=ranges, extra=extra)

    def _groups_rows(self, file: Input) -> bool:
        """Return whether the rows of an input are grouped by their traces."""
        return self.merge and not self.columns and self._beginning(file).is_export

    def _lost_verdicts(self, file: Input, columns: Mapping[str, str]) -> list[str]:
        """Return the recorded fields without a value in runs that the document counts as failed."""
        with suppress(DataError, JsonProblem, OSError):  # reading the file says so
            document = layout.read_document(file)
            rows = layout.records_in(document, self.records, file)
            container: Any = rows
            if self.records is not None:
                container = layout.value_at(document, self.records, file)
            totals = list(totals_beside(document, container))
            return [
                field
                for field, column in columns.items()
                if field.startswith("recorded.")
                and are_nulls_failed([path_value(row, path_steps(column)) for row in rows], totals)
            ]
        return []

    def holds_steps(self, file: Input) -> bool:
        """Return whether the first records hold a history beside what followed it."""
        if self._exclusive:
            return "prior_messages" in (self.columns or {})
        begins = self._beginning(file)
        return begins.has_histories and not self._groups_rows(file)

    @override
    def session_key(self, file: Input) -> SessionKey | None:
        has_sessions = self._beginning(file).has_sessions
        if not has_sessions or self._groups_rows(file):
            return None
        columns = self._columns(file)
        columns_of_ids = {field: columns[field] for field in ("id", "cluster") if field in columns}
        columns_of_ids |= {"id": self.ids} if self.ids else {}
        if "messages" not in columns:
            return None
        for field, column in columns_of_ids.items():
            if is_session(column) and has_several_records(beginning(self._values(file)), column):
                return attrgetter(field)
        return None

    @once_per_file
    def _form(self, file: Input) -> Form:
        return layout.form_of_file(file.path, self.records)

    @once_per_file
    def _columns(self, file: Input) -> Mapping[str, str]:
        return self._guessed(file).columns

    @once_per_file
    def _beginning(self, file: Input) -> _Beginning:
        form = self._form(file)
        records = layout.elements_of(file, form, self.records)
        unfolded = _unfolded(records)
        first = list(islice(beginning(_values_of(unfolded)), self.sniffed))
        is_export = any(map(row_kind, first))
        columns = guess(first, reader_of).columns
        has_sessions = any(map(names_session, first))
        return _Beginning(
            is_export=is_export,
            has_histories="prior_messages" in columns,
            has_sessions=has_sessions,
        )

    def _elements(self, file: Input, part: Range | None = None) -> Iterator[Element]:
        """Yield the records of an input, or of a part of it; of exported traces their rows."""
        form = self._form(file)
        elements = layout.elements_of(file, form, self.records, part)
        return _unfolded(elements) if self._beginning(file).is_export else elements

    def _values(self, file: Input) -> Iterator[Any]:
        return _values_of(self._elements(file))

    @override
    def index(self, inputs: Inputs) -> Any:
        """Return by input what becomes of its records, and under ``_SCORES`` those of traces."""
        return {**super().index(inputs), _SCORES: self._scores(inputs).by_trace}

    def _scores(self, inputs: Inputs) -> TraceScores:
        exported = [file for file in inputs.data if self._groups_rows(file)]
        records = chain.from_iterable(map(self._values, exported))
        return collect_scores(filter(_is_object, map(usual_record, records)))

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield the numbers of scores of exported traces that are not recorded."""
        scores = self._scores(inputs)
        if number := scores.without_run:
            yield f"scores not recorded: {number:,}, of traces without a model call in the data"
        if number := scores.replaced:
            yield f"scores not recorded: {number:,}, whose trace has another value of the same name"

    def _guessed(self, file: Input) -> Guess:
        """Guess the columns of a file from the names in its head and its first records."""
        form = self._form(file)
        names = layout.columns_of_table(file, form)
        if form == "csv":
            where = f"{file.shown}:1"
        else:
            where = file.shown
        records = self._values(file)
        first = list(beginning(records))
        columns = self._columns_of(names, first, where, path=file.path)
        if form == "document" and self._exclusive and self._has_keys_as_ids(file):
            return columns._replace(columns={"id": "id", **columns.columns})
        return columns

    def _has_keys_as_ids(self, file: Input) -> bool:
        """Return whether the object at the path ``records`` holds records by their ids."""
        if self.records is None:
            return False
        document = layout.read_document(file)
        value = layout.value_at(document, self.records, file)
        return isinstance(value, dict) and bool(layout.rows_by_id(value))

    def recognised_columns(self, inputs: Inputs) -> tuple[list[str], list[str]]:
        """Return notes on the columns of the first input, and doubts.

        Raises:
            DataError: Nothing in it says what an agent did.
        """
        for file in inputs.data[:1]:
            if self._groups_rows(file):
                return [self._note_on_export(inputs)], []
            columns = self._guessed(file)
            if not self.columns:
                _require_runs(file, columns)
            notes = self.notes_on_steps(inputs)
            if self._exclusive or columns.columns == self.columns:
                return notes, []
            path = self.records or self._path_to_records(file)
            options = ["--records", path] if path else []
            return notes_on(inputs, columns.columns, options) + notes, list(columns.doubts)
        return [], []

    def _note_on_export(self, inputs: Inputs) -> str:
        """Return the note on rows of Langfuse and Phoenix.

        Raises:
            DataError: None of them is a call of a model or of a tool.
        """
        records = chain.from_iterable(map(self._values, inputs.data))
        if not any(row_kind(usual_record(record)) in ("model", "tool") for record in records):
            raise DataError(f"{inputs.data[0].shown}: {_NO_RUN}", CONVERT)
        return _EXPORT_NOTE

    def _path_to_records(self, file: Input) -> str:
        """Return the path to the records of a JSON document; "" where it is a record itself."""
        if self._form(file) != "document":
            return ""
        document = layout.read_document(file)
        return next((path for path, _ in layout.lists_of(document)), "")

    @property
    def _exclusive(self) -> bool:
        return bool(self.columns) and not self.guess

    def _columns_of(
        self, names: list[str] | None, first: list[Any], where: str, *, path: Path | None = None
    ) -> Guess:
        """Return the columns of a table or of records: those that are mapped, and those guessed.

        Args:
            names: Names of the columns of a table; None for records, whose keys are these.
            first: The first rows or records.
            where: The place that errors name.
            path: The file; None for data in memory.
        """
        mapping = dict(self.columns or {})
        is_table = names is not None
        if names is None:
            names = list(dict.fromkeys(str(key) for record in first for key in record))
        if not names and (is_table or first):
            raise DataError(f"{where}: there are no columns")
        if not first and not is_table:
            return Guess(mapping, names=names)
        fields = mapped(mapping).fields
        if self.ids not in (None, "input"):
            ids = str(self.ids)
            fields += mapped({"id": ids}).fields
        _check_mapping(fields, names, first, where, is_table=is_table)
        if self._exclusive:
            return Guess(mapping, names=names)
        records = first or [dict.fromkeys(names)]
        guessed = guess(records, reader_of)
        used = set(mapping.values())
        columns = {
            field: column
            for field, column in guessed.columns.items()
            if column not in used and not _is_mapped(field, mapping)
        }
        columns |= mapping
        if not columns:
            raise _no_columns(where, names, first, path)
        doubts = [doubt for doubt in guessed.doubts if not any(column in doubt for column in used)]
        return Guess(columns, doubts, names, first)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        file = shard.input
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        form, stem, columns = (shard.extra[key] for key in ("form", "stem", "columns"))
        if index == STEPS and "prior_messages" not in columns:
            return iter(())
        if self._groups_rows(file):
            scores = (index or {}).get(_SCORES, {})
            return self._runs(self._elements(file, part), scores, stem, file.shown)
        failed_fields = frozenset(shard.extra["lost"])
        is_table = layout.is_table(form)
        read = partial(
            self._samples_of, mapped(columns), stem, table=is_table, failed_fields=failed_fields
        )
        elements = self._elements(file, part)
        samples = self.samples_in(elements, read, file.shown)
        if index == STEPS:
            return samples
        return self.merged(samples, (index or {}).get(file.shown))

    def _runs(
        self,
        elements: Iterable[Element],
        scores: Mapping[str, Mapping[str, Any]],
        stem: str,
        shown: str,
    ) -> Iterator[Sample | BadRecord]:
        """Yield the runs that rows of Langfuse or Phoenix make; each trace is one."""
        rows: list[Row] = []

        def add_row(record: Any, source: Source) -> Iterable[BadRecord]:
            record = _required_object(usual_record(record))
            if row_kind(record) is not None:
                row = row_of(record)
                row.source = source
                rows.append(row)
            return ()

        yield from self.samples_in(elements, add_row, shown)
        for run in runs_of_rows(rows, stem, keeps_records=self.ids is not None):
            trace_id = run.trace.get("trace_id", "")
            run.recorded = {**scores.get(trace_id, {}), **run.recorded}
            source = run.source or Source(file=shown, ordinal=0)
            yield from self.guarded(partial(_read_run, run), run.first, source)

    def rows(self, frame: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a data frame, or of mappings, as they would be read of a file."""
        elements = tables.frame_table(frame)
        names = tables.frame_columns(frame)
        first = list(islice(elements, FIRST))
        cells = [element.value for element in first if element.problem is None]
        elements = chain(first, elements)
        if self.merge and not self.columns and any(map(row_kind, map(usual_record, cells))):
            listed_elements = list(elements)
            records = map(usual_record, _values_of(listed_elements))
            scores = collect_scores(filter(_is_object, records)).by_trace
            yield from self._runs(listed_elements, scores, "memory", "memory")
            return
        where = "the records" if names is None else "the data frame"
        columns = self._columns_of(names, cells, where).columns
        read = partial(self._samples_of, mapped(columns), "memory", table=True)
        samples = self.samples_in(elements, read, "memory")
        if self.merge and "prior_messages" in columns:
            read_samples = list(samples)
            steps = [sample for sample in read_samples if isinstance(sample, Sample)]
            samples = self.merged(iter(read_samples), put_together(steps).changes)
        yield from samples

    def _samples_of(
        self,
        columns: Columns,
        stem: str,
        record: Any,
        source: Source,
        *,
        table: bool,
        failed_fields: frozenset[str] = frozenset(),
    ) -> Iterator[Sample | BadRecord]:
        """Yield the sample of a record; rows of scores and steps without an answer have none."""
        record = _required_object(usual_record(record))
        if columns.has_steps or "name" in record:
            kind = row_kind(record)
            if kind == "score" or (columns.has_steps and kind in ("tool", "other")):
                return
        fallback_id = f"{stem}:{source.ordinal}"
        sample = sample_of(record, columns, source, fallback_id=fallback_id, table=table)
        yield with_lost_verdicts(sample, failed_fields) if isinstance(sample, Sample) else sample


_SCORES: Final = " scores"
"""Key of an index, beside names of inputs, of the scores of each trace."""


def _read_run(run: Any, _record: Any, source: Source) -> list[Sample]:
    return [replace(sample_of_run(run), source=source)]


def _is_object(record: Any) -> bool:
    return isinstance(record, dict)


def _required_object(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, found {compact(record)[:60]}")
    return record


def _values_of(elements: Iterable[Element]) -> Iterator[Any]:
    return (element.value for element in elements if element.problem is None)


def _unfolded(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield records with the observations that exported traces hold in place of these."""
    rows = ((element, row) for element in elements for row in rows_in(element.value))
    for ordinal, (element, row) in enumerate(rows):
        yield Element(ordinal, element.line, row, element.problem)


def _require_runs(file: Input, columns: Guess) -> None:
    """Refuse records that are parts of runs, or that do not say what an agent did."""
    if not columns.rows:
        raise DataError(f"{file.shown}: there are no records; columns: {listed(columns.names)}")
    parts = parts_of_runs(columns.rows)
    if parts is not None:
        raise DataError(f"{file.shown}: {parts}", CONVERT)
    if not columns.shows_a_run:
        raise DataError(f"{file.shown}: {_NO_RUN}", *_proposal(columns.rows)[:2])


def _check_mapping(
    fields: Sequence[Mapped], names: list[str], first: list[Any], where: str, *, is_table: bool
) -> None:
    """Refuse mapped columns that are not there, and paths that lead to nothing in any row."""
    if is_table:
        absent = [field for field in fields if field.steps[0] not in names]
    elif len(first) < FIRST:
        absent = missing(fields, first)
    else:
        absent = []  # a later record may have it
    if absent:
        hint = suggest(absent[0].path, names)
        what = "there is no column" if len(absent) == 1 else "there are no columns"
        known = f"there are: {listed(names)}"
        raise DataError(f"{where}: {what} {_mappings(absent)}{hint}; {known}")
    if is_table and (empty := lead_nowhere(fields, first)):
        what = "in none of the first rows there is anything at"
        raise DataError(f"{where}: {what} {_mappings(empty)}")


def _no_columns(where: str, names: list[str], first: list[Any], path: Path | None) -> DataError:
    """Return the error of data none of whose columns is recognised."""
    what = "no column has a name that is recognised" if first else "there are no rows"
    if path is None:
        return DataError(
            f"{where}: {what}", f"fields: {listed(names)}", f"say which holds what: {_ARGUMENT}"
        )
    return DataError(f"{where}: {what}", *(_proposal(first)[:2] if first else ()))


def _mappings(fields: Iterable[Mapped]) -> str:
    return "; ".join(f"{field.path!r}, mapped to {field.field}" for field in fields)


def _is_mapped(field: str, columns: Mapping[str, str]) -> bool:
    """Return whether a field, a part of it, or what it is a part of is mapped."""
    return any(
        field == name or field.startswith(f"{name}.") or name.startswith(f"{field}.")
        for name in columns
    )


def _is_a_log(record: dict[str, Any]) -> bool:
    log = dialect.of_record(record)
    if log is None or log.name == "other":
        return False
    return log.certainty > dialect.PERHAPS or "messages" in record


def _conversations_in(head: bytes) -> list[Any]:
    """Return the lists of messages in the lines of a beginning, a run each."""
    lists: list[Any] = []
    for line in head.splitlines():
        with suppress(JsonProblem):  # the last one may be cut off
            lists.append(loads(line))
    if all(dialect.of_entries(entries) is not None for entries in lists):
        return lists
    return []


def _are_objects(entries: Any) -> bool:
    return isinstance(entries, list) and bool(entries) and all(map(_is_object, entries))


def _proposal(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str, dict[str, str] | None]:
    """Return the fields of rows, what to do about them, and a mapping where it would compare
    something: question, answer and what was expected as they usually stand.

    Records that hold lists, objects or whole conversations are to be converted: none of their
    columns is an answer.
    """
    inner = (objects for row in rows for _, _, objects in layout.object_lists(row))
    parts = parts_of_runs(chain(rows, *inner))
    if parts is not None:
        return parts, CONVERT, None
    columns = guess(rows, reader_of)
    reason = f"fields: {listed(columns.names)}"
    if not all(map(_is_plain, chain.from_iterable(row.values() for row in rows))):
        return reason, CONVERT, None
    known = columns.columns.values()
    texts = {name for row in rows for name in row if isinstance(row[name], str)}
    free = [name for name in columns.names if name not in known and name in texts]
    wanted = ("input", "text", "expected.text")[len(free) == 1 :]
    fields = [field for field in wanted if field not in columns.columns]
    if len(free) >= len(fields):
        pairs = dict(zip(fields, free, strict=False))
        return reason, _COMPARED, pairs
    unused = [name for name in columns.names if name not in known and len(name) <= _LONGEST_NAME]
    scores = [name for name in unused if _holds_scores(rows, name)]
    if scores:
        mapping = shlex.join(["--map", f"recorded.{scores[0]}={scores[0]}"])
        return reason, f"to use a column of scores: {mapping}", None
    return reason, _COMPARED, {}


def _holds_scores(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Return whether a column holds numbers, or texts of numbers, alone."""
    cells = [BELOW["recorded"](row.get(name), name) for row in rows]
    scores = [cell for cell in cells if cell is not None]
    return bool(scores) and all(map(is_number, scores))


def _is_plain(value: Any) -> bool:
    """Return whether a value is no list, no object and no long text of several lines."""
    value = decoded(value)
    is_long = isinstance(value, str) and len(value) > _LONG and "\n" in value
    return not isinstance(value, list | dict) and not is_long
