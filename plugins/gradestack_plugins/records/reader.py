"""Reader ``records``: tables and records of any form."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import attrs
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
    first_of,
    read_records,
    reading,
    replace,
    suggest,
)
from gradestack.jsonio import (
    Element,
    JsonProblem,
    Range,
    as_list,
    as_map,
    compact,
    first_records,
    loads,
    open_regular,
    path_steps,
    path_value,
    read_regular,
)
from gradestack_plugins.readers import tables
from gradestack_plugins.readers.chat import dialect
from gradestack_plugins.readers.chat.conversation import finish
from gradestack_plugins.readers.chat.forms import Observation, observation, scores_of
from gradestack_plugins.readers.chat.identity import stems
from gradestack_plugins.readers.chat.logs import PROVIDES, form_of, together
from gradestack_plugins.readers.chat.looks import once_per_file
from gradestack_plugins.readers.chat.mapping import (
    Columns,
    check_columns,
    lead_nowhere,
    mapped,
    missing,
    reader_of,
    sample_of,
)
from gradestack_plugins.readers.chat.names import (
    FIRST,
    Guess,
    beginning,
    decoded,
    guess,
    has_several_records,
    is_session,
    names_session,
    notes_on,
    usual_record,
)
from gradestack_plugins.readers.chat.parts import CONVERT, parts_of_runs
from gradestack_plugins.readers.chat.results import error_form
from gradestack_plugins.readers.chat.steps import STEPS, SessionKey, StepReader, put_together
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.records.totals import (
    are_nulls_failed,
    totals_beside,
    with_lost_verdicts,
)

Form = Literal["csv", "parquet", "records", "document", "lists", "entries", "traces"]
_MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""
_HEAD: Final = 64 * 1024
_LARGEST_DOCUMENT: Final = 64 * 1024 * 1024
_LARGEST_SNIFFED: Final = 2 * 1024 * 1024
_SHOWN: Final = 12
_LONGEST_NAME: Final = (
    100  # characters of a column's name where a file is taken for a table by its first line alone
)
# more than the reader of data sets is of a table, less than a reader of a format of its own
_SURE: Final = 0.85
_PERHAPS: Final = (
    0.1  # how sure it is of a Parquet file that nothing can read: reading it says what to install
)
_TABLES: Final = frozenset({".csv", ".tsv"})
_SNIFFED: Final = _TABLES | {""}  # suffixes of files that may be tables: standard input has none
_ROWS: Final = {"csv": tables.csv_table, "parquet": tables.parquet_table}
_COLUMNS: Final = {"csv": tables.csv_columns, "parquet": tables.parquet_columns}

_DEEP: Final = 3  # levels of a JSON document at which its list of records is looked for
_RECORDS: Final = 0.58
"""How sure it is of JSON records that say what an agent did.

More than readers of questions and references are.
"""
_TRACES: Final = 0.93  # how sure it is of traces of Langfuse with their observations


def _checked(_: Any, __: Any, columns: Mapping[str, str] | None) -> None:
    check_columns(columns or {})


def _checked_place(_: Any, __: Any, place: str | None) -> None:
    if place is not None and not place.startswith("$"):
        raise ValueError(
            f"expected a path to the list of records, such as $.data.runs, got {place!r}"
        )
    if place not in (None, "$"):
        path_steps(str(place))


class _Beginning(NamedTuple):
    """What the first records of a file say of all of them."""

    is_export: bool
    """Whether they are observations of traces."""
    has_histories: bool
    """Whether they hold a history beside what followed it."""
    has_sessions: bool
    """Whether they name a session."""


def _certainty_of_table(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return how sure the reader is of a table: of one of expectations alone, little."""
    found = guess(rows, reader_of)
    return _SURE if found.shows_a_run else _PERHAPS * found.is_dataset


@attrs.frozen(kw_only=True)
class Records(StepReader):
    """Reads CSV, Parquet, JSON Lines, a JSON list or one JSON document, whatever its columns are
    called.

    ``columns`` says for each field of a sample the column it stands in, or a path such as
    ``$.log.messages``. Without it columns are recognised by usual names (``own_data@1``); with
    ``guess`` as well. JSON in a cell is decoded. An empty cell is not recorded; of calls it says
    that there are none. Columns that are not taken are counted. A record without an id has one made
    up.
    """

    example_file = "table.csv, chats.parquet, runs.json"
    columns: dict[str, str] | None = attrs.field(default=None, validator=_checked)
    """Field -> column or path."""
    guess: bool | None = None
    """Whether columns are recognised by their names beside ``columns``.

    Default: where there are none.
    """
    records: str | None = attrs.field(default=None, validator=_checked_place)
    """Path to the list of records in one JSON document; default: the only one there is."""

    provides = PROVIDES | {"label", "plan", "state", "children", "agent_id"}
    stack = "auto"
    empty_answers = True

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if head.startswith(tables.PARQUET):
            rows = _rows_of_parquet(path)
            return _certainty_of_table(rows) if rows else _PERHAPS
        begins = head.removeprefix(_MARK).lstrip()[:1]
        if begins in {b"{", b"["}:
            return cls._sniff_json(path, head, begins)
        rows = _rows_of_csv(path, head, least=1) if path.suffix.lower() in _SNIFFED else []
        return _certainty_of_table(rows)

    @classmethod
    def _sniff_json(cls, path: Path, head: bytes, begins: bytes) -> float:
        form = form_of(head)
        records = [
            element.value
            for element, _ in first_records(head, cls.sniffed)
            if element.problem is None
        ]
        if form == "lists":
            records = _conversations_in(head) or records
        if not any(isinstance(each, dict | list) for each in records):
            with suppress(JsonProblem, OSError), open_regular(path) as file:
                records = [loads(file.read(_LARGEST_SNIFFED).removeprefix(_MARK))]
        if form == "entries":
            records = [records]
        if any(map(_observed, records)) or any(map(_is_score, records)):
            return _TRACES
        said = [
            each
            for each in records
            if isinstance(each, dict) or (isinstance(each, list) and _are_objects(each))
        ]
        objects = _objects_in(list(map(usual_record, said)))
        if parts_of_runs(objects) is not None:
            return 0.0
        if any(map(_is_a_log, objects)) or any(map(JsonLines.looks_like, objects)):
            return 0.0
        if begins == b"{" and any("predicted" in record for record in objects):
            return 0.0
        found = guess(objects, reader_of)
        if found.shows_a_run or (len(said) == 1 and _holds_records(said[0])):
            return _RECORDS
        return _PERHAPS * found.is_dataset

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
            rows = _rows_of_parquet(path)
        else:
            rows = _rows_of_csv(path, head, least=1 if path.suffix.lower() in _TABLES else 2)
        if not rows:
            return None
        reason, remedy, mapping = _proposal(rows)
        return f"no column is mapped ({reason})", remedy, mapping or {}

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for given, stem in zip(inputs.data, stems(inputs.data), strict=True):
            with reading(given.shown):
                form = self._form(given)
            columns = self._columns(given)
            extra: dict[str, Any] = {"form": form, "stem": stem, "columns": columns}
            extra["lost"] = self._lost_verdicts(given, columns) if form == "document" else []
            yield RecordFile(
                input=given, ranges=None if form == "records" else (Range(),), extra=extra
            )

    def _lost_verdicts(self, given: Input, columns: Mapping[str, str]) -> list[str]:
        """Return the recorded fields without a value in runs that the document counts as failed."""
        with suppress(DataError, JsonProblem, OSError):  # which is said where it is read
            document = loads(_content(given))
            rows = self._in_document(document, given)
            held = rows if self.records is None else self._at_records(document, given)
            totals = list(totals_beside(document, held))
            return [
                field
                for field, place in columns.items()
                if field.startswith("recorded.")
                and are_nulls_failed([path_value(row, path_steps(place)) for row in rows], totals)
            ]
        return []

    def holds_steps(self, given: Input) -> bool:
        """Return whether the first records hold a history beside what followed it."""
        if self._exclusive:
            return "prior_messages" in (self.columns or {})
        begins = self._beginning(given)
        return begins.is_export or begins.has_histories

    @override
    def session_key(self, given: Input) -> SessionKey | None:
        if not self._beginning(given).has_sessions:
            return None
        columns = self._columns(given)
        places = {field: columns[field] for field in ("id", "cluster") if field in columns}
        places |= {"id": self.ids} if self.ids else {}
        if "messages" not in columns:
            return None
        for field, place in places.items():
            if is_session(place) and has_several_records(beginning(self._all(given)), place):
                return attrgetter(field)
        return None

    @once_per_file
    def _form(self, given: Input) -> Form:
        return _form_of(given.path, self.records)

    @once_per_file
    def _columns(self, given: Input) -> Mapping[str, str]:
        return self._guessed(given).columns

    @once_per_file
    def _beginning(self, given: Input) -> _Beginning:
        first = list(islice(beginning(self._all(given)), self.sniffed))
        return _Beginning(
            is_export=any(map(observation, first)),
            has_histories="prior_messages" in guess(first, reader_of).columns,
            has_sessions=any(map(names_session, first)),
        )

    def _all(self, given: Input) -> Iterator[Any]:
        found = self._elements(given, self._form(given))
        return (each.value for each in found if each.problem is None)

    @override
    def index(self, inputs: Inputs) -> Any:
        """Return by input what becomes of its model calls, what its rows of tools say of a trace,
        and all scores.
        """
        results: dict[str, list[tuple[Any, Any, str | None]]] = {}
        scores: dict[str, dict[str, Any]] = {}
        for given, row in self._observations(inputs):
            if row.tool is not None:
                results.setdefault(f"{given.shown} {row.trace}", []).append(row.tool)
            if row.scores:
                scores.setdefault(str(row.trace), {}).update(row.scores)
        return {**super().index(inputs), STEPS: results, _SCORES: scores}

    def _observations(self, inputs: Inputs) -> Iterator[tuple[Input, Observation]]:
        for given in inputs.data:
            if not self._beginning(given).is_export:
                continue
            for record in map(usual_record, self._all(given)):
                if (row := observation(record)) is not None:
                    yield given, row

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield how many scores of exported traces are not recorded."""
        values, traces = dict[tuple[str, str], list[Any]](), set[str]()
        for _, row in self._observations(inputs):
            traces |= {str(row.trace)} if row.is_model_call else set()
            for name, value in row.scores:
                values.setdefault((str(row.trace), name), []).append(value)
        if lost := sum(len(held) for (trace, _), held in values.items() if trace not in traces):
            yield f"scores not recorded: {lost:,}, of traces without a model call in the data"
        known = [held for (trace, _), held in values.items() if trace in traces]
        if again := sum(len(held) - 1 for held in known if held.count(held[0]) < len(held)):
            yield f"scores not recorded: {again:,}, whose trace has another value of the same name"

    def _guessed(self, given: Input) -> Guess:
        form = self._form(given)
        names = _COLUMNS[form](given) if form in _COLUMNS else None
        place = f"{given.shown}:1" if form == "csv" else given.shown
        first = list(beginning(self._all(given)))
        found = self._columns_of(names, first, place, path=given.path)
        if form == "document" and self._exclusive and self._has_keys_as_ids(given):
            return found._replace(columns={"id": "id", **found.columns})
        return found

    def _has_keys_as_ids(self, given: Input) -> bool:
        """Return whether records stand under their ids at the place that is named."""
        if self.records is None:
            return False
        found = self._at_records(loads(_content(given)), given)
        return isinstance(found, dict) and bool(_keyed_rows(found))

    def recognised_columns(self, inputs: Inputs) -> tuple[list[str], list[str]]:
        """Return what is recognised of the first input, in words, and what could be otherwise.

        Raises:
            DataError: Nothing in it says what an agent did.
        """
        for given in inputs.data[:1]:
            found = self._guessed(given)
            parts = None if self.columns else parts_of_runs(found.rows)
            if parts is not None:
                raise DataError(f"{given.shown}: {parts}", CONVERT)
            if not found.shows_a_run and not self.columns:
                what = f"{given.shown}: no messages, calls or answer of an agent"
                raise DataError(what, *_proposal(found.rows)[:2])
            if self._exclusive or found.columns == self.columns:
                return self.notes_on_steps(inputs), []
            columns, options = dict(found.columns), list[str]()
            if self._form(given) == "document" and (
                place := self.records or self._place_of_records(given)
            ):
                options = ["--records", place]
            return notes_on(inputs, columns, options) + self.notes_on_steps(inputs), list(
                found.doubts
            )
        return [], []

    def _place_of_records(self, given: Input) -> str:
        """Return where the records of one JSON document stand; "" where it is one itself."""
        return next((place for place, _ in _lists_of(loads(_content(given)))), "")

    @property
    def _exclusive(self) -> bool:
        return bool(self.columns) and not self.guess

    def _elements(self, given: Input, form: Form, part: Range | None = None) -> Iterator[Element]:
        """Yield the records of an input, or of a part of it, however they lie in it."""
        if form in _ROWS:
            return _ROWS[form](given)
        if form == "document":
            return (
                Element(at, 1, row)
                for at, row in enumerate(self._in_document(loads(_content(given)), given))
            )
        found = read_records(given, part, "lines" if form == "lists" else "either")
        return (
            together(found)
            if form == "entries"
            else _unfolded(found)
            if form == "traces"
            else found
        )

    def _in_document(self, document: Any, given: Input) -> list[Any]:
        """Return the records of one JSON document.

        Raises:
            DataError: Nobody can tell which list holds them.
        """
        if self.records is not None:
            found = self._at_records(document, given)
            if isinstance(found, list):
                return found
            return _keyed_rows(found) or [found]
        if rows := _rows_of(document):
            return rows
        lists = _lists_of(document)
        if len(lists) > 1:
            there = _listed([f"{place} ({len(each)} records)" for place, each in lists])
            command = shlex.join(["gradestack", "grade", str(given.path), "--records", lists[0][0]])
            what = f"{given.shown}: one JSON document with {len(lists)} lists of records"
            raise DataError(what, f"lists: {there}", f"try: {command}")
        return lists[0][1] if lists else [document]

    def _at_records(self, document: Any, given: Input) -> list[Any] | dict[str, Any]:
        """Return the list or the object at the place that is named.

        Raises:
            DataError: Neither is there.
        """
        place = self.records or "$"
        try:
            found = document if place == "$" else path_value(document, path_steps(place))
        except RecursionError:
            what = f"{given.shown}: nested too deeply for {place[:_LONGEST_NAME]}"
            raise DataError(what) from None
        except ValueError as error:
            raise DataError(f"{given.shown}: {error}") from error
        if not isinstance(found, list | dict):
            raise DataError(f"{given.shown}: there is no list of records at {place}")
        return found

    def _columns_of(
        self, names: list[str] | None, first: list[Any], where: str, *, path: Path | None = None
    ) -> Guess:
        columns, table = dict(self.columns or {}), names is not None
        names = (
            list(dict.fromkeys(str(key) for each in first for key in each))
            if names is None
            else names
        )
        if not names and (table or first):
            raise DataError(f"{where}: there are no columns")
        if not first and not table:
            return Guess(columns, names=names)
        fields = mapped(columns).fields
        lost = (
            [each for each in fields if each.steps[0] not in names]
            if table
            else missing(fields, first)
        )
        lost = lost if table or len(first) < FIRST else []  # it may come later
        if lost:
            hint = suggest(lost[0].place, names)
            what = "there is no column" if len(lost) == 1 else "there are no columns"
            there = _listed(names)
            raise DataError(f"{where}: {what} {_mappings(lost)}{hint}; there are: {there}")
        if table and (lost := lead_nowhere(fields, first)):
            what = "in none of the first rows there is anything at"
            raise DataError(f"{where}: {what} {_mappings(lost)}")
        if self._exclusive:
            return Guess(columns, names=names)
        found = guess(first or [dict.fromkeys(names)], reader_of)
        used = set(columns.values())
        guessed = {
            field: place
            for field, place in found.columns.items()
            if place not in used and not _is_mapped(field, columns)
        }
        columns = {**guessed, **columns}
        if not columns:
            how = (f"fields: {_listed(names)}", f"say which holds what: {_ARGUMENT}")
            what = "no column has a name that is recognised" if first else "there are no rows"
            raise DataError(
                f"{where}: {what}",
                *(how if path is None else _proposal(first)[:2] if first else ()),
            )
        return Guess(
            columns,
            [each for each in found.doubts if not any(place in each for place in used)],
            names,
            first,
        )

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        if index == STEPS:
            return self._read(shard) if "prior_messages" in shard.extra["columns"] else iter(())
        shown, index = shard.input.shown, index or {}
        samples = self.merged(self._read(shard), index.get(shown))
        results, scores = index.get(STEPS), index.get(_SCORES)
        complete = partial(_completed, shown, results or {}, scores or {})
        return map(complete, samples) if results or scores else samples

    def _read(self, shard: Shard) -> Iterator[Sample | BadRecord]:
        form, stem, columns = (shard.extra[key] for key in ("form", "stem", "columns"))
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        of_record = partial(
            self._samples_of,
            mapped(columns),
            stem,
            table=form in _ROWS,
            lost=frozenset(shard.extra["lost"]),
        )
        return self.samples_in(
            self._elements(shard.input, form, part), of_record, shard.input.shown
        )

    def rows(self, frame: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a data frame, or of mappings, as they would be read of a file."""
        found, names = tables.frame_table(frame), tables.frame_columns(frame)
        first = list(islice(found, FIRST))
        cells = [each.value for each in first if each.problem is None]
        where = "the records" if names is None else "the data frame"
        columns = self._columns_of(names, cells, where).columns
        of_record = partial(self._samples_of, mapped(columns), "memory", table=True)
        rows = self.samples_in(chain(first, found), of_record, "memory")
        if self.merge and "prior_messages" in columns:
            whole = list(rows)
            rows = self.merged(
                iter(whole),
                put_together(each for each in whole if isinstance(each, Sample)).changes,
            )
        yield from rows

    def _samples_of(
        self,
        columns: Columns,
        stem: str,
        record: Any,
        source: Source,
        *,
        table: bool,
        lost: frozenset[str] = frozenset(),
    ) -> Iterator[Sample | BadRecord]:
        record = usual_record(record)
        if not isinstance(record, dict):
            # what makes a bad record
            raise ValueError(f"expected an object, found {compact(record)[:60]}")
        row = observation(record) if columns.has_steps else None
        if (row is None or row.is_model_call) and not _is_score(record):
            sample = sample_of(
                record, columns, source, made=f"{stem}:{source.ordinal}", table=table
            )
            if isinstance(sample, Sample):
                sample = _scored(with_lost_verdicts(sample, lost), dict(scores_of(record)))
            yield sample


_SCORES: Final = " scores"  # in an index, beside names of inputs: the scores of each trace
_LONG: Final = 500  # characters from which on a text of several lines is taken for a conversation
_COMPARED: Final = (
    "to grade answers, map them and what was expected: --map text=COLUMN --map expected.text=COLUMN"
)
_ARGUMENT: Final = 'columns={"id": COLUMN, "messages": COLUMN}'  # how columns are mapped in Python


def _mappings(fields: Iterable[Any]) -> str:
    return "; ".join(f"{field.place!r}, mapped to {field.field}" for field in fields)


def _is_mapped(field: str, columns: Mapping[str, str]) -> bool:
    return any(
        field == each or field.startswith(f"{each}.") or each.startswith(f"{field}.")
        for each in columns
    )


def _is_a_log(record: dict[str, Any]) -> bool:
    log = dialect.of_record(record)
    return (
        log is not None
        and log.name != "other"
        and (log.certainty > dialect.PERHAPS or "messages" in record)
    )


def _completed(
    shown: str,
    results: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, Any]],
    sample: Sample | BadRecord,
) -> Sample | BadRecord:
    """Give a sample what rows of its trace say: the results of its calls, and scores."""
    if isinstance(sample, BadRecord):
        return sample
    trace = sample.cluster or sample.id
    sample = _answered(sample, results.get(f"{shown} {trace}", ()))
    return _scored(sample, scores.get(trace, {}))


def _answered(sample: Sample, rows: Iterable[tuple[Any, Any, str | None]]) -> Sample:
    """Give calls without a result that of the row of a tool at their place among those of their
    name in the trace.
    """
    left = list(rows)
    for call in sample.calls or ():
        row = next((row for row in left if row[0] == call.name), None)
        if row is None:
            continue
        left.remove(row)
        if call.status is None:
            _, result, error = row
            found = error_form(result)
            finish(call, result, error or (found and found.message))
            remarks = Counter(sample.remarks) - Counter(call_without_result=1)
            sample = replace(sample, remarks=dict(remarks))
    return sample


def _scored(sample: Sample, scores: Mapping[str, Any]) -> Sample:
    if not scores:
        return sample
    remarks = {kind: times for kind, times in sample.remarks.items() if kind not in _HOLD_SCORES}
    return replace(sample, recorded={**scores, **sample.recorded}, remarks=remarks)


_HOLD_SCORES: Final = frozenset({"column:scores", "column:annotations"})


def _is_score(record: Any) -> bool:
    """Return whether a record is a score of a trace by itself."""
    return (
        isinstance(record, dict)
        and {"name", "value"} <= record.keys()
        and observation(record) is not None
    )


def _conversations_in(head: bytes) -> list[Any]:
    """Return the lists in the lines of a beginning, a run each; none where they are no messages."""
    lists: list[Any] = []
    for line in head.splitlines():
        with suppress(JsonProblem):  # the last one may be cut off
            lists.append(loads(line))
    return lists if all(dialect.of_entries(each) is not None for each in lists) else []


def _content(given: Input) -> bytes:
    return read_regular(given.path).removeprefix(_MARK)


def _rows_of(document: Any) -> list[dict[str, Any]]:
    """Return the records of a document that holds them by column, by row or by id, as frames do.

    None of any other.
    """
    if (
        not isinstance(document, dict)
        or not document
        or guess([document], reader_of, fitting=True).shows_a_run
    ):
        return []
    forms: list[Iterator[dict[str, Any]]] = []
    values = list(document.values())
    if document.keys() == {"columns", "index", "data"}:
        names = list(map(str, as_list(document["columns"])))
        forms.append(
            dict(zip(names, as_list(row), strict=False)) for row in as_list(document["data"])
        )
    if all(isinstance(each, list) and len(each) == len(values[0]) for each in values):
        forms.append(dict(zip(document, row, strict=True)) for row in zip(*values, strict=True))
    if all(isinstance(each, dict) and each.keys() == values[0].keys() for each in values):
        forms.append({name: column[key] for name, column in document.items()} for key in values[0])
    if all(isinstance(each, dict) or dialect.of_entries(each) is not None for each in values):
        forms.append({"id": key, **(usual_record(each))} for key, each in document.items())
    for rows in forms:
        first = list(islice(rows, FIRST))
        if guess(first, reader_of, fitting=True).holds_answers:
            return [*first, *rows]
    return []


def _keyed_rows(records: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of an object that holds them by id; none of one that is a record."""
    are_objects = all(isinstance(each, dict) for each in records.values())
    if not are_objects or guess([records], reader_of, fitting=True).shows_a_run:
        return []
    return [{**each, "id": key} for key, each in records.items()]


def _observed(trace: Any) -> list[dict[str, Any]]:
    """Return the observations that an exported trace holds itself; none of any other record."""
    rows = _objects_in(as_list(as_map(trace).get("observations")))
    scores = as_map(trace).get("scores")
    if rows and scores:  # of them all
        rows[0] = {**rows[0], "scores": scores}
    return rows if any(map(observation, rows)) else []


def _unfolded(elements: Iterable[Element]) -> Iterator[Element]:
    rows = ((found, each) for found in elements for each in _observed(found.value) or [found.value])
    return (Element(at, found.line, each, found.problem) for at, (found, each) in enumerate(rows))


def _objects_in(values: Sequence[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _are_objects(entries: list[Any]) -> bool:
    return bool(entries) and all(isinstance(each, dict) for each in entries)


def _holds_records(document: Any) -> bool:
    return bool(_rows_of(document)) or bool(_lists_of(document))


def _lists_of(document: Any) -> list[tuple[str, list[Any]]]:
    """Return the lists of a document whose objects say what an agent did, each with its path.

    Where none does, those whose objects say how a run went. A document that is a conversation
    itself has none.
    """
    if "messages" in guess(_objects_in([document]), reader_of, fitting=True).columns:
        return []
    lists = [
        (place, value, guess(objects))
        for place, value, objects in _object_lists(document)
        if parts_of_runs(objects) is None
    ]
    answers = [(place, value) for place, value, found in lists if found.holds_answers]
    return answers or [(place, value) for place, value, found in lists if found.holds_verdicts]


def _object_lists(
    document: Any, place: str = "$", depth: int = 0
) -> Iterator[tuple[str, list[Any], list[dict[str, Any]]]]:
    """Yield the lists of a document that hold objects and are no conversation.

    Each with its path and its first objects.
    """
    for key, value in document.items() if isinstance(document, dict) and depth < _DEEP else ():
        name = f".{key}" if key.isidentifier() else f"[{key!r}]"
        objects = _objects_in(as_list(value)[:FIRST])
        if objects and dialect.of_entries(value) is None:
            yield f"{place}{name}", value, objects
        elif isinstance(value, dict):
            yield from _object_lists(value, f"{place}{name}", depth + 1)


def _first_rows(rows: Callable[[Input], Iterator[Element]], path: Path) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    with suppress(DataError, OSError):  # which is said where the rows before it are recognised
        first = islice(rows(Input(path=path, name=path.stem, shown=path.name)), Records.sniffed)
        found.extend(each.value for each in first if each.problem is None)
    return found


def _rows_of_parquet(path: Path) -> list[Mapping[str, Any]]:
    return _first_rows(tables.parquet_table, path) if tables.reads_parquet() else []


def _is_json(path: Path, head: bytes) -> bool:
    begins = head.removeprefix(_MARK).lstrip()[:1]
    return begins in {b"{", b"["} and path.suffix.lower() not in _TABLES


def _listed(names: Sequence[str]) -> str:
    return first_of(names, _SHOWN) or "none"


def _proposal(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str, dict[str, str] | None]:
    """Return which fields rows have, what to do about them, and a mapping where it would compare
    something: question, answer and what was expected as they usually stand.

    Of records that hold lists, objects or whole conversations no column is an answer: they are to
    be converted.
    """
    inner = (objects for row in rows for _, _, objects in _object_lists(row))
    parts = parts_of_runs(chain(rows, *inner))
    if parts is not None:
        return parts, CONVERT, None
    columns = guess(rows, reader_of)
    reason = f"fields: {_listed(columns.names)}"
    if not all(map(_is_plain, chain.from_iterable(row.values() for row in rows))):
        return reason, CONVERT, None
    known = columns.columns.values()
    texts = {name for row in rows for name in row if isinstance(row[name], str)}
    left = [name for name in columns.names if name not in known and name in texts]
    fields = [
        field
        for field in ("input", "text", "expected.text")[len(left) == 1 :]
        if field not in columns.columns
    ]
    is_enough = len(left) >= len(fields)
    return reason, _COMPARED, dict(zip(fields, left, strict=False)) if is_enough else {}


def _is_plain(value: Any) -> bool:
    value = decoded(value)
    return not isinstance(value, list | dict) and not (
        isinstance(value, str) and len(value) > _LONG and "\n" in value
    )


def _rows_of_csv(path: Path, head: bytes, least: int) -> list[Mapping[str, Any]]:
    """Return the first rows of a file with a header of at least so many names.

    Where none can be read, one of texts.
    """
    names = tables.names_in_header(head)
    odd = len(names) < least or not all(names[1:]) or max(map(len, names)) >= _LONGEST_NAME
    return [] if odd else _first_rows(tables.csv_table, path) or [dict.fromkeys(names, "?")]


def _form_of(path: Path, place: str | None) -> Form:
    """Return how a file is laid out: by its first bytes, and where it begins as no JSON does, CSV.

    One JSON object is a document where a place in it is named, or it holds a list of records.
    """
    with open_regular(path) as file:
        head = file.read(_HEAD)
        if head.startswith(tables.PARQUET):
            return "parquet"
        text = head.removeprefix(_MARK).lstrip()
        if not _is_json(path, head):
            return "csv"
        chat = form_of(head)
        if place is None and any(
            _observed(each.value) for each, _ in first_records(head, 1) if each.problem is None
        ):
            return "traces"
        if chat in {"lists", "entries"}:
            return chat
        if text.startswith(b"["):
            return "records"
        try:
            line, _, rest = text.partition(b"\n")
            value = loads(line)
            found = (
                _holds_records(value) and not guess([value], reader_of, fitting=True).shows_a_run
            )
            if not rest.strip() and (place is not None or found):
                return "document"
        except JsonProblem:
            whole = head + file.read(_LARGEST_DOCUMENT)
            with suppress(JsonProblem):
                loads(whole.removeprefix(_MARK))
                return "document"
        return "records"
