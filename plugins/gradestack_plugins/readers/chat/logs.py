"""ChatLogs: what readers of chat logs share, however the records lie in a file."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    Fault,
    Input,
    Inputs,
    RecordFile,
    Sample,
    Shard,
    Source,
    Status,
    ToolSpec,
    read_document,
    read_records,
    reading,
    replace,
)
from gradestack.jsonio import (
    Element,
    JsonProblem,
    Range,
    as_map,
    compact,
    first_records,
    loads,
    open_regular,
    record_ranges,
    whole_lines,
)
from gradestack_plugins.readers.chat import dialect, tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, kind_of
from gradestack_plugins.readers.chat.identity import NOTHING, Identity, identity, names_task, stems
from gradestack_plugins.readers.chat.looks import once_per_file
from gradestack_plugins.readers.chat.mapping import fields_of, form_sample, mapped
from gradestack_plugins.readers.chat.names import (
    FIRST,
    Guess,
    decoded,
    guess,
    has_several_records,
    is_session,
    names_session,
    notes_on,
)
from gradestack_plugins.readers.chat.parts import parts_of_runs
from gradestack_plugins.readers.chat.steps import STEPS, SessionKey, StepReader
from gradestack_plugins.readers.chat.usage import said_usage, usage_of

Form = Literal["records", "lists", "entries", "document"]
"""How a file is laid out.

JSON Lines or a list of records, JSON Lines of conversations that are lists, the messages of one
conversation, or one object over several lines.
"""
_HEAD: Final = 64 * 1024
_FAR: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_LOOKED_AT: Final = 10
_PROVIDED: Final = """
cluster model run input turns calls text tools usage agent_usage ended trace facets remarks status
error source expected
recorded
"""
PROVIDES: Final = frozenset(_PROVIDED.split())


def _lines(head: bytes) -> Iterator[tuple[Any, bytes]]:
    """Yield the first lines of a file that are not blank, decoded.

    ABSENT for one that cannot be.
    """
    if not head.removeprefix(_BOM).lstrip().startswith(b"["):
        for element, text in first_records(head, _LOOKED_AT):
            yield ABSENT if element.problem is not None else element.value, text
        return
    lines = filter(None, (line.strip() for line in head.removeprefix(_BOM).split(b"\n")))
    for line in islice(lines, _LOOKED_AT):
        try:
            yield loads(line), line
        except JsonProblem:
            yield ABSENT, line


def form_of(head: bytes) -> Form | None:
    """Return how a file with this beginning is laid out; None where no record of it can be read."""
    text = head.removeprefix(_BOM).strip()
    if _is_document(text):
        return "document"
    lines = list(_lines(head))
    if text.startswith(b"["):
        if (
            len(lines) > 1
            and isinstance(lines[0][0], list)
            and isinstance(lines[1][0], list | dict)
        ):
            return "lists"
        if len(lines) == 1 and _HEAD <= len(head) < _FAR:
            return None  # what stands in the next line decides
        element = next((element for element, _ in first_records(text, 1)), None)
        if element is None or element.problem is not None:
            return None
        return "entries" if dialect.is_entry(element.value) else "records"
    if not lines:
        return None
    first, line = lines[0]
    if first is not ABSENT:
        if len(lines) == 1 and _listed(first):
            return "document"
        return "entries" if dialect.is_entry(first) else "records"
    if any(dialect.of_record(each) is not None and not dialect.is_entry(each) for each, _ in lines):
        return "records"  # behind a damaged line
    return "document" if text.startswith(b"{") and len(line) < len(text) else None


def _is_document(text: bytes) -> bool:
    """Return whether the text of a whole file is one object over several lines."""
    if not text.startswith(b"{") or b"\n" not in text or len(text) >= _HEAD:
        return False
    try:
        loads(text)
    except JsonProblem:
        return False
    return True


def _beside(found: Guess) -> dict[str, str]:
    """Return what is taken of the names that were recognised beside messages."""
    kinds = {"id", "cluster", "expected", "recorded"}
    return {
        field: place for field, place in found.columns.items() if field.partition(".")[0] in kinds
    }


class Beginning(NamedTuple):
    """What the first records of a file say of all of them."""

    form: Form
    beside: Mapping[str, str] = NOTHING
    holds_steps: bool = False
    has_sessions: bool = False


class Answer(NamedTuple):
    """One answer to a request."""

    run: int | str | None  # which of several
    entries: list[Any]  # its messages or items
    reason: Any = None  # why it ended, as recorded


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and what came of it."""

    request: Mapping[str, Any] = NOTHING
    response: Mapping[str, Any] = NOTHING
    entries: list[Any] = msgspec.field(default_factory=list)  # messages and items of the request
    answers: tuple[Answer, ...] = ()
    error: Any = None  # what the log says in the place of an answer


def _before(entries: list[Any], answers: tuple[Answer, ...]) -> list[Any]:
    """Return the messages in front of the answer: a log may have added it to them already."""
    if not entries or len(answers) != 1:
        return entries
    made, last = answers[0].entries, entries[-1]
    if len(made) != 1 or not isinstance(last, dict) or not isinstance(made[0], dict):
        return entries
    same = all(
        last.get(key) == made[0].get(key)
        for key in ("role", "content", "tool_calls", "function_call")
    )
    return entries[:-1] if same else entries


class ChatLogs(StepReader):
    """Base of readers of chat logs.

    JSON Lines, a JSON list, one object over several lines, or one conversation.

    A format names its ``dialect`` and writes ``exchange_of`` and ``ended_of``.

    Beside the messages, ids, verdicts and what was expected are recognised by their names
    (``own_data@1``).

    Attributes:
        dialect: Whose logs it reads.
        part: What a part of a message is called in remarks.
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
        """Return what a record holds.

        An object, or the list of messages or items of a conversation.
        """

    @abc.abstractmethod
    def ended_of(self, exchange: Exchange, reason: Any, *, waiting: bool) -> str | None:
        """Return how a run ended, by its last answer.

        None where it says nothing, or waits for results.
        """

    def samples_of_record(self, record: Any, source: Source, made: str) -> Iterator[Sample]:
        """Yield the samples of one record, one for each of its answers."""
        exchange = self.exchange_of(record)
        whole = NOTHING if isinstance(record, list) else record
        known = identity(whole, exchange.request, exchange.response, made=made, known=self.known)
        answers = exchange.answers
        if len(answers) < 2:
            yield self._sample(exchange, answers[0] if answers else Answer(None, []), known, source)
            return
        for answer in answers:
            run = answer.run if known.run is None else f"{known.run}:{answer.run}"
            shared = known._replace(run=run, cluster=known.cluster or known.id)
            yield self._sample(exchange, answer, shared, source)
            known = known._replace(remarks=NOTHING)  # those of the record are said once

    def _sample(
        self, exchange: Exchange, answer: Answer, known: Identity, source: Source
    ) -> Sample:
        talk, several = Conversation(self.part), len(exchange.answers) > 1
        talk.read([*_before(exchange.entries, exchange.answers), *answer.entries])
        request, response = exchange.request, exchange.response
        model = response.get("model") or request.get("model")
        usage = response.get("usage") or request.get("usage")
        if several and usage is not None and answer is exchange.answers[0]:
            talk.remark("usage_of_several_choices")
        waiting = any(call.status is None for call in talk.calls)
        more: dict[str, Any] = {
            "model": model if isinstance(model, str) else None,
            "tools": tools_of(talk, request, response),
            "usage": None if several else usage_of(usage),
            "agent_usage": usage,
            "ended": self.ended_of(exchange, answer.reason, waiting=waiting),
        }
        if exchange.error is not None:
            more |= broken(exchange.error, "the request failed")
        return log_sample(known, talk, source, **more)

    @classmethod
    def looks_like(cls, record: Any) -> float | None:
        """Return how sure one record makes it; 0.0 for one of another dialect."""
        found = dialect.of_record((_listed(record) or [record])[0])
        return found.certainty if found is not None and found.name == cls.dialect else 0.0

    @classmethod
    def begins_like(cls, text: bytes) -> float | None:
        """Return how sure the beginning of a record makes it."""
        found = dialect.of_text(text)
        return None if found is None else found.certainty if found.name == cls.dialect else 0.0

    @classmethod
    def recognised(cls, path: Path, head: bytes) -> float | None:
        """Return how sure the first records make it, or the object that the file holds."""
        form = form_of(head)
        first = (each.value for each, _ in first_records(head, cls.sniffed))
        if form != "document" and parts_of_runs(first):
            return 0.0
        if form == "lists":
            return max(
                (cls.looks_like(each) or 0.0 for each, _ in _lines(head) if each is not ABSENT),
                default=0.0,
            )
        if form != "document":
            found = super().recognised(path, head)
            first = (element.value for element, _ in first_records(head, cls.sniffed))
            return (
                min(found, dialect.PERHAPS)
                if found and any(map(dialect.of_others, first))
                else found
            )
        text = head
        if len(head) >= _HEAD and cls.begins_like(head) != 0.0:
            with suppress(OSError), open_regular(path) as file:  # reading it will say so
                text = file.read(_FAR)
                if file.read(1):
                    return cls.begins_like(head)
        try:
            value = loads(text.removeprefix(_BOM))
        except JsonProblem:
            return cls.begins_like(head)
        return cls.looks_like(value)

    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        """Yield the inputs, each with how it is laid out and what its made-up ids begin with."""
        for given, stem in zip(inputs.data, stems(inputs.data), strict=True):
            with reading(given.shown):
                begins = self._beginning(given)
            form = begins.form
            ranges: Sequence[Range] | None = None if form == "records" else (Range(),)
            if form == "entries":
                ranges = (Range(end=given.path.stat().st_size),)
            if form == "lists":
                ranges = tuple(record_ranges(given.path, "lines"))
            extra = {"form": form, "stem": stem, "beside": begins.beside}
            yield RecordFile(input=given, ranges=ranges, extra=extra)

    @once_per_file
    def _beginning(self, given: Input) -> Beginning:
        form = _form_of_file(given.path)
        if form not in ("records", "document"):
            return Beginning(form)
        values = _values(given, form)
        first = list(islice(values, self.sniffed))
        found = self._guessed(chain(first, values))
        return Beginning(
            form,
            beside=_beside(found),
            holds_steps=form == "records" and any(map(_is_exchange, first)),
            has_sessions=any(map(names_session, first)),
        )

    def _guessed(self, values: Iterable[dict[str, Any]]) -> Guess:
        """Return what stands beside the messages of the first records."""
        return guess(map(self._own_keys, islice(values, FIRST)))

    def holds_steps(self, given: Input) -> bool:
        """Return whether one of the first records is a request with its response, which has no id
        of its own.
        """
        return self._beginning(given).holds_steps

    @override
    def session_key(self, given: Input) -> SessionKey | None:
        begins = self._beginning(given)
        if not begins.has_sessions:
            return None
        form, columns = begins.form, begins.beside
        keys: list[tuple[str, SessionKey]] = [
            (columns[field], attrgetter(field)) for field in ("id", "cluster") if field in columns
        ]
        if self.ids:
            keys.append((self.ids, attrgetter("id")))
        for name in ("session_id", "trace_id"):
            keys.append((name, partial(_trace_of, name)))
        for place, session_of in keys:
            first = islice(_values(given, form), FIRST)
            if is_session(place) and has_several_records(first, place):
                return session_of
        return None

    def _own_keys(self, record: Any) -> dict[str, Any]:
        """Return what of a record is not the format's, its messages, and the id of its session."""
        keep = {"messages", "session_id"}
        return {
            key: each
            for key, each in as_map(record).items()
            if key in keep or key not in self.known
        }

    def recognised_columns(self, inputs: Inputs) -> tuple[list[str], list[str]]:
        """Return what is recognised beside the messages of the first input, in words, and what
        could be otherwise.
        """
        for given in inputs.data[:1]:
            form = self._beginning(given).form
            has_columns = form in ("records", "document")
            found = self._guessed(_values(given, form)) if has_columns else Guess()
            columns, doubts = (
                _beside(found),
                [each for each in found.doubts if each.startswith(("expected", "not"))],
            )
            options = ["--reader", "records"] if "messages" in found.columns else None
            return notes_on(inputs, columns, options) + self.notes_on_steps(inputs), doubts
        return [], []

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a range in order."""
        stem, form, beside = (shard.extra[key] for key in ("stem", "form", "beside"))
        shown = shard.input.shown
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        found = _elements(shard.input, form, part)
        if index == STEPS:
            found = filter(lambda each: form == "records" and _is_exchange(each.value), found)
        elif form == "entries":
            found = together(found)
        samples = self.samples_in(found, partial(self._of_record, beside, stem), shown)
        return samples if index == STEPS else self.merged(samples, (index or {}).get(shown))

    def _of_record(
        self, beside: Mapping[str, str], stem: str, record: Any, source: Source
    ) -> Iterable[Sample | BadRecord]:
        if not isinstance(record, dict | list):
            raise ValueError(
                f"expected an object or a list of messages, found {compact(record)[:60]}"
            )
        made = self.samples_of_record(record, source, f"{stem}:{source.ordinal}")
        return (
            self._with(beside, made, record, source)
            if beside and isinstance(record, dict)
            else made
        )

    def _with(
        self,
        beside: Mapping[str, str],
        samples: Iterable[Sample | BadRecord],
        record: dict[str, Any],
        source: Source,
    ) -> Iterator[Sample | BadRecord]:
        """Yield samples with what stands beside the messages."""
        found = form_sample({**fields_of(record, mapped(beside), table=False), "id": ""}, source)
        if isinstance(found, BadRecord):
            yield replace(found, native=record)
            return
        used = {kind_of("key", place) for place in beside.values()}
        for sample in (each for each in samples if isinstance(each, Sample)):
            remarks = {kind: times for kind, times in sample.remarks.items() if kind not in used}
            changes: dict[str, Any] = {
                "expected": found.expected,
                "recorded": found.recorded,
                "remarks": remarks,
            }
            if found.cluster is not None:
                changes["cluster"] = found.cluster
            named: Iterable[Sample | BadRecord] = [replace(sample, **changes)]
            if "id" in beside and "id_made" in remarks:
                named = attrs.evolve(self, ids=beside["id"]).identified(named, record)
            yield from named


def _trace_of(name: str, sample: Sample) -> str | None:
    return sample.trace.get(name)


def together(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield those that cannot be read, and the others, which are messages, as one conversation."""
    entries, first = [], None
    for found in elements:
        if found.problem is not None:
            yield found
            continue
        first = first or found
        entries.append(found.value)
    if first is not None:
        yield Element(0, first.line, entries)


def _elements(given: Input, form: Form, part: Range | None = None) -> Iterator[Element]:
    if form == "document":
        (found,) = read_document(given)
        listed = enumerate(_listed(found.value))
        return iter([Element(number, found.line, each) for number, each in listed] or [found])
    return read_records(given, part, "lines" if form == "lists" else "either")


def _values(given: Input, form: Form = "records") -> Iterator[dict[str, Any]]:
    return (found.value for found in _elements(given, form) if isinstance(found.value, dict))


def _listed(value: Any) -> list[Any]:
    """Return the records that a page of a listing of OpenAI's API holds; none of anything else."""
    data = value.get("data") if isinstance(value, dict) and value.get("object") == "list" else None
    return data if isinstance(data, list) else []


_ASKED: Final = frozenset({"request", "body", "params", "messages", "input"})
_ANSWERED: Final = frozenset({"response", "completion", "output", "message"})


def _is_exchange(record: Any) -> bool:
    """Return whether a record is a request with its response, and has no id of its own."""
    if not isinstance(record, dict) or not (_ASKED & record.keys() and _ANSWERED & record.keys()):
        return False
    return not any(names_task(record.get(key)) for key in ("custom_id", "task_id", "id"))


def type_of(raw: Any) -> Any:
    """Return what an entry says it is; None of what is no object."""
    return raw.get("type") if isinstance(raw, dict) else None


def body_of(value: Any) -> Mapping[str, Any]:
    """Return the object that a request or an answer is, also one that is logged as text or as a
    ``body``.
    """
    for _ in range(2):
        value = decoded(value)
        if isinstance(value, dict) and "body" in value:
            value = value["body"]
    return value if isinstance(value, dict) else NOTHING


_SERVERS: Final = frozenset(
    {"mcp", "mcp_toolset"}
)  # types of tools that stand for all that a server lists


def tools_of(talk: Conversation, *parts: Mapping[str, Any]) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a request, or those its answer names.

    What MCP servers listed is added.
    """
    for part in parts:
        if isinstance(part.get("functions"), list) and part["functions"]:
            talk.remark("functions")
        if isinstance(part.get("tools"), list):
            offered = [
                each for each in part["tools"] if not talk.listed or type_of(each) not in _SERVERS
            ]
            return tuple(_tools([*offered, *talk.listed], talk))
    return tuple(_tools(talk.listed, talk)) if talk.listed else None


def _tools(raws: Iterable[Any], talk: Conversation) -> Iterator[ToolSpec]:
    """Yield functions (wrapped or flat), custom tools, those of an MCP server, and built-in ones by
    their type.
    """
    for raw in raws:
        kind = type_of(raw)
        inside = raw.get("tools") if kind == "namespace" else None
        if isinstance(inside, list):
            yield from _tools(inside, talk)
            continue
        custom = raw.get("custom") if isinstance(raw, dict) else None
        found = tool_spec(custom if isinstance(custom, dict) else raw)
        if (
            found is None
            and isinstance(kind, str)
            and kind not in {"function", "custom", "mcp_toolset", "mcp", "namespace"}
        ):
            found = ToolSpec(name=kind)
        if found is None:
            talk.remark(kind_of("tool", kind))
        else:
            yield found


def _form_of_file(path: Path) -> Form:
    with open_regular(path) as file:
        head = file.read(_HEAD)
        found = form_of(head)
        if found is None and len(head) == _HEAD:
            text = head + file.read(_FAR)
            if file.read(1) and not text.removeprefix(_BOM).lstrip().startswith(b"["):
                text, _ = whole_lines(
                    text
                )  # decoding what is cut off takes all its memory, and fails
            found = form_of(text)
    return found or "records"


def log_sample(known: Identity, talk: Conversation, source: Source, **more: Any) -> Sample:
    """Return the sample of a conversation; what else is known of it is given by field."""
    said = talk.finished()
    has_messages = any(talk.turns)
    if said["calls"] is None and has_messages and "error" not in more and not talk.has_unread_calls:
        talk.remark("question_without_answer")
    remarks = {**known.remarks, **talk.remarks} if known.remarks else talk.remarks
    if more.get("agent_usage") is None and talk.usages:
        more |= said_usage(talk.usages)
    said |= more
    said["model"] = more.get("model") or talk.model
    placed: dict[str, Any] = {
        "id": known.id,
        "run": known.run,
        "trace": known.trace,
        "facets": known.facets,
        "source": source,
    }
    return Sample(cluster=known.cluster, remarks=remarks, **placed, **said)


def broken(error: Any, default: str) -> dict[str, Any]:
    """Return the status of a run whose format says that it ended in an error."""
    error = error.get("error", error) if isinstance(error, Mapping) else error
    if isinstance(error, Mapping):
        kind = next((error[key] for key in ("code", "type") if isinstance(error.get(key), str)), "")
        said = error.get("message")
        message = said if isinstance(said, str) else compact(error)
    else:
        kind, message = "", error if isinstance(error, str) else default
    fault = Fault(category="target", code="target_error", message=message or default, type=kind)
    return {"status": Status.FAILED, "error": fault}
