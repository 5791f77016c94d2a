"""ChatLogs: base of the readers of chat logs, whatever their layout in a file."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    Input,
    Inputs,
    RecordFile,
    Sample,
    Shard,
    Source,
    reading,
    replace,
)
from gradestack.jsonio import (
    JsonProblem,
    Range,
    as_map,
    compact,
    first_records,
    loads,
    open_regular,
    record_ranges,
)
from gradestack_plugins.readers.chat import dialect, layout
from gradestack_plugins.readers.chat.calls import decoded
from gradestack_plugins.readers.chat.conversation import Conversation, kind_of
from gradestack_plugins.readers.chat.identity import NOTHING, Identity, identity, names_task, stems
from gradestack_plugins.readers.chat.layout import Form
from gradestack_plugins.readers.chat.looks import once_per_file
from gradestack_plugins.readers.chat.mapping import fields_of, form_sample, mapped
from gradestack_plugins.readers.chat.names import (
    FIRST,
    Guess,
    guess,
    has_several_records,
    is_session,
    names_session,
    notes_on,
)
from gradestack_plugins.readers.chat.parts import parts_of_runs
from gradestack_plugins.readers.chat.samples import PROVIDES, broken, log_sample, tools_of
from gradestack_plugins.readers.chat.steps import STEPS, SessionKey, StepReader
from gradestack_plugins.readers.chat.usage import usage_of

_COMPARED: Final = ("role", "content", "tool_calls", "function_call")
"""Keys of a message by which it is the same as another."""
_BESIDE: Final = frozenset({"id", "cluster", "expected", "recorded"})
"""Fields that are read from columns beside messages."""
_QUESTIONS: Final = frozenset({"request", "body", "params", "messages", "input"})
"""Keys of a record that hold a request."""
_REPLIES: Final = frozenset({"response", "completion", "output", "message"})
"""Keys of a record that hold the answer to its request."""


class Beginning(msgspec.Struct, frozen=True):
    """Properties of a file by its first records."""

    form: Form
    columns: Mapping[str, str] = NOTHING
    """Field -> column, of the columns beside messages."""
    holds_steps: bool = False
    has_sessions: bool = False


class Answer(msgspec.Struct, frozen=True):
    """One answer to a request."""

    run: int | str | None
    """Which of several answers it is."""
    entries: list[Any]
    """Its messages or items."""
    reason: Any = None
    """Why it ended, as recorded."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its answers."""

    request: Mapping[str, Any] = NOTHING
    response: Mapping[str, Any] = NOTHING
    entries: list[Any] = []
    """Messages and items of the request."""
    answers: tuple[Answer, ...] = ()
    error: Any = None
    """The error in the place of an answer."""


def _entries_before(entries: list[Any], answers: tuple[Answer, ...]) -> list[Any]:
    """Return the messages before the answer: a log may have added the answer to them already."""
    if not entries or len(answers) != 1:
        return entries
    replies = answers[0].entries
    last = entries[-1]
    if len(replies) != 1 or not isinstance(last, dict):
        return entries
    reply = as_map(replies[0])
    is_same = isinstance(replies[0], dict)
    is_same = is_same and all(last.get(key) == reply.get(key) for key in _COMPARED)
    return entries[:-1] if is_same else entries


class ChatLogs(StepReader):
    """Base of readers of chat logs.

    JSON Lines, a JSON list, one object over several lines, or one conversation.

    A format names its ``dialect`` and writes ``exchange_of`` and ``ended_of``.

    Beside the messages, ids, verdicts and references are recognised by their names
    (``own_data@1``).

    Attributes:
        dialect: Whose logs it reads.
        part: The name of a part of a message in remarks.
        known: Keys of its requests, answers and logs.
    """

    provides = PROVIDES
    stack = "auto"
    empty_answers = True
    behind_others = 0.95
    dialect: ClassVar[dialect.Name]
    part: ClassVar[str] = "part"
    known: ClassVar[frozenset[str]] = frozenset()

    @abc.abstractmethod
    def exchange_of(self, record: Any) -> Exchange:
        """Return the exchange of a record, an object or a list of messages or items."""

    @abc.abstractmethod
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        """Return the end of a run, by its last answer.

        None where it says nothing, or waits for results.
        """

    def samples_of_record(self, record: Any, source: Source, fallback_id: str) -> Iterator[Sample]:
        """Yield the samples of one record, one for each of its answers."""
        exchange = self.exchange_of(record)
        keys = NOTHING if isinstance(record, list) else record
        known = identity(
            keys, exchange.request, exchange.response, fallback_id=fallback_id, known=self.known
        )
        replies = exchange.answers
        if len(replies) < 2:
            reply = replies[0] if replies else Answer(None, [])
            yield self._sample(exchange, reply, known, source)
            return
        for reply in replies:
            if known.run is None:
                run = reply.run
            else:
                run = f"{known.run}:{reply.run}"
            cluster = known.cluster or known.id
            shared = known._replace(run=run, cluster=cluster)
            yield self._sample(exchange, reply, shared, source)
            known = known._replace(remarks=NOTHING)  # those of the record are said once

    def _sample(self, exchange: Exchange, reply: Answer, known: Identity, source: Source) -> Sample:
        """Build the sample of one reply to a request: its conversation, model, usage and end."""
        talk = Conversation(self.part)
        entries_before = _entries_before(exchange.entries, exchange.answers)
        talk.read([*entries_before, *reply.entries])
        request, response = exchange.request, exchange.response
        model = response.get("model") or request.get("model")
        usage = response.get("usage") or request.get("usage")
        is_shared = len(exchange.answers) > 1
        if is_shared and usage is not None and reply is exchange.answers[0]:
            talk.remark("usage_of_several_choices")
        waiting = any(call.status is None for call in talk.calls)
        tools = tools_of(talk, request, response)
        more: dict[str, Any] = {
            "model": model if isinstance(model, str) else None,
            "tools": tools,
            "usage": None if is_shared else usage_of(usage),
            "agent_usage": usage,
            "ended": self.ended_of(exchange, reply.reason, waiting=waiting),
        }
        if exchange.error is not None:
            more |= broken(exchange.error, "the request failed")
        return log_sample(known, talk, source, **more)

    @classmethod
    def looks_like(cls, record: Any) -> float | None:
        """Return the confidence by one record; 0.0 for one of another dialect."""
        log = dialect.of_record((layout.listed(record) or [record])[0])
        if log is not None and log.name == cls.dialect:
            return log.certainty
        return 0.0

    @classmethod
    def begins_like(cls, text: bytes) -> float | None:
        """Return the confidence that a record which begins so is of this format."""
        log = dialect.of_text(text)
        if log is None:
            return None
        return log.certainty if log.name == cls.dialect else 0.0

    @classmethod
    def recognised(cls, path: Path, head: bytes) -> float | None:
        """Return the confidence by the first records, or by the object that the file holds."""
        form = layout.form_of(head)
        if form == "document":
            return cls._recognised_document(path, head)
        first = [element.value for element, _ in first_records(head, cls.sniffed)]
        if parts_of_runs(first):
            return 0.0
        if form == "lists":
            first_lines = layout.first_lines(head)
            lists = [value for value, _ in first_lines if value is not ABSENT]
            return max((cls.looks_like(entries) or 0.0 for entries in lists), default=0.0)
        certainty = super().recognised(path, head)
        if certainty and any(map(dialect.of_others, first)):
            return min(certainty, dialect.PERHAPS)
        return certainty

    @classmethod
    def _recognised_document(cls, path: Path, head: bytes) -> float | None:
        """Rate how surely a file is one document of this format; a very long one by its head."""
        text = head
        if len(head) >= layout.HEAD and cls.begins_like(head) != 0.0:
            with suppress(OSError), open_regular(path) as file:  # reading it will say so
                text = file.read(layout.FAR)
                if file.read(1):
                    return cls.begins_like(head)
        try:
            document = loads(text.removeprefix(layout.BOM))
        except JsonProblem:
            return cls.begins_like(head)
        return cls.looks_like(document)

    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        """Yield the inputs, each with its layout and the beginning of ids that are made up."""
        for file, stem in zip(inputs.data, stems(inputs.data), strict=True):
            with reading(file.shown):
                begins = self._beginning(file)
            form = begins.form
            ranges: Sequence[Range] | None = None if form == "records" else (Range(),)
            if form == "entries":
                status = file.path.stat()
                ranges = (Range(end=status.st_size),)
            elif form == "lists":
                ranges = tuple(record_ranges(file.path, "lines"))
            extra = {"form": form, "stem": stem, "beside": begins.columns}
            yield RecordFile(input=file, ranges=ranges, extra=extra)

    @once_per_file
    def _beginning(self, file: Input) -> Beginning:
        """Read a file's first records for its form, columns, and whether they are steps."""
        form = layout.form_of_file(file.path)
        if form not in ("records", "document"):
            return Beginning(form)
        records = layout.objects_of(file, form)
        first = list(islice(records, self.sniffed))
        columns = self._guessed(chain(first, records))
        columns_beside = _columns_beside(columns)
        has_sessions = any(map(names_session, first))
        return Beginning(
            form,
            columns=columns_beside,
            holds_steps=form == "records" and any(map(_is_exchange, first)),
            has_sessions=has_sessions,
        )

    def _guessed(self, records: Iterable[dict[str, Any]]) -> Guess:
        """Return the columns beside the messages of the first records."""
        return guess(map(self._own_keys, islice(records, FIRST)))

    def holds_steps(self, file: Input) -> bool:
        """Return whether one of the first records is a request with its response, without an id."""
        return self._beginning(file).holds_steps

    @override
    def session_key(self, file: Input) -> SessionKey | None:
        begins = self._beginning(file)
        if not begins.has_sessions:
            return None
        keys: list[tuple[str, SessionKey]] = []
        for field in ("id", "cluster"):
            if field in begins.columns:
                keys.append((begins.columns[field], attrgetter(field)))
        if self.ids:
            keys.append((self.ids, attrgetter("id")))
        for name in ("session_id", "trace_id"):
            keys.append((name, partial(_trace_of, name)))
        for column, session_of in keys:
            objects = layout.objects_of(file, begins.form)
            first = islice(objects, FIRST)
            if is_session(column) and has_several_records(first, column):
                return session_of
        return None

    def _own_keys(self, record: Any) -> dict[str, Any]:
        """Return the keys of a record that are not the format's, its messages, and its session."""
        known = self.known - {"messages", "session_id"}
        return {key: value for key, value in as_map(record).items() if key not in known}

    def recognised_columns(self, inputs: Inputs) -> tuple[list[str], list[str]]:
        """Return notes on the columns beside the messages of the first input, and doubts."""
        for file in inputs.data[:1]:
            form = self._beginning(file).form
            columns = Guess()
            if form in ("records", "document"):
                objects = layout.objects_of(file, form)
                columns = self._guessed(objects)
            doubts = [doubt for doubt in columns.doubts if doubt.startswith(("expected", "not"))]
            options = ["--reader", "records"] if "messages" in columns.columns else None
            notes = notes_on(inputs, _columns_beside(columns), options)
            notes_on_steps = self.notes_on_steps(inputs)
            return notes + notes_on_steps, doubts
        return [], []

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a range in order."""
        stem, form, columns = (shard.extra[key] for key in ("stem", "form", "beside"))
        shown = shard.input.shown
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        elements = layout.elements_of(shard.input, form, part)
        read = partial(self._samples_of, columns, stem)
        if index == STEPS:
            is_log = form == "records"
            steps = (element for element in elements if is_log and _is_exchange(element.value))
            return self.samples_in(steps, read, shown)
        if form == "entries":
            elements = layout.together(elements)
        samples = self.samples_in(elements, read, shown)
        return self.merged(samples, (index or {}).get(shown))

    def _samples_of(
        self, columns: Mapping[str, str], stem: str, record: Any, source: Source
    ) -> Iterable[Sample | BadRecord]:
        """Yield the samples of a record, with the columns beside them that the file has."""
        if not isinstance(record, dict | list):
            expected = "expected an object or a list of messages"
            raise ValueError(f"{expected}, found {compact(record)[:60]}")
        fallback_id = f"{stem}:{source.ordinal}"
        samples = self.samples_of_record(record, source, fallback_id)
        if columns and isinstance(record, dict):
            return self._with_columns(columns, samples, record, source)
        return samples

    def _with_columns(
        self,
        columns: Mapping[str, str],
        samples: Iterable[Sample],
        record: dict[str, Any],
        source: Source,
    ) -> Iterator[Sample | BadRecord]:
        """Yield samples with the values of the columns beside the messages."""
        fields = {**fields_of(record, mapped(columns), table=False), "id": ""}
        values = form_sample(fields, source)
        if isinstance(values, BadRecord):
            yield replace(values, native=record)
            return
        used = {kind_of("key", column) for column in columns.values()}
        for sample in samples:
            remarks = {kind: times for kind, times in sample.remarks.items() if kind not in used}
            changes: dict[str, Any] = {
                "expected": values.expected,
                "recorded": values.recorded,
                "remarks": remarks,
            }
            if values.cluster is not None:
                changes["cluster"] = values.cluster
            changed: list[Sample | BadRecord] = [replace(sample, **changes)]
            if "id" in columns and "id_made" in remarks:
                ids = columns["id"]
                yield from attrs.evolve(self, ids=ids).identified(changed, record)
            else:
                yield from changed


def _columns_beside(columns: Guess) -> dict[str, str]:
    """Return the columns that are read beside messages."""
    return {
        field: column
        for field, column in columns.columns.items()
        if field.partition(".")[0] in _BESIDE
    }


def _trace_of(name: str, sample: Sample) -> str | None:
    return sample.trace.get(name)


def _is_exchange(record: Any) -> bool:
    """Return whether a record is a request with its response, and has no id of its own."""
    if not isinstance(record, dict):
        return False
    keys = record.keys()
    if not (_QUESTIONS & keys and _REPLIES & keys):
        return False
    return not any(names_task(record.get(key)) for key in ("custom_id", "task_id", "id"))


def body_of(value: Any) -> Mapping[str, Any]:
    """Return the object that a request or an answer is, also as text or as a ``body``."""
    for _ in range(2):
        value = decoded(value)
        if isinstance(value, dict) and "body" in value:
            value = value["body"]
    return value if isinstance(value, dict) else NOTHING
