"""Samples of dataset records and the replies to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from gradestack import (
    ABSENT,
    JSON,
    Expectation,
    ExpectedCall,
    Fault,
    Message,
    Sample,
    Source,
    Status,
    ToolCall,
    replace,
)
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.deepfabric.records import (
    Record,
    RecordProblem,
    parse_record,
    read_calls,
    read_truth,
)
from gradestack_plugins.deepfabric.replies import (
    ReplyProblem,
    kind_of,
    read_reply,
    replies_of,
)
from gradestack_plugins.deepfabric.schemas import convert
from gradestack_plugins.readers.chat.unread import count_unread

PROCESSING_ERROR: Final = "processing_error"
"""Fault code of samples that count as wrong as record or reply could not be processed."""
NO_REPLY: Final = "no recorded reply"
REPLY_KEYS: Final = ("recorded", "response")
ENVELOPE_KEYS: Final = frozenset({"id", "model", "run", *REPLY_KEYS})


class Entry(NamedTuple):
    """One line of a dataset or joined file, taken apart."""

    record: JSON
    reply: JSON = ABSENT
    id: int | str | None = None
    model: str | None = None
    run: int | str | None = None

    @property
    def name(self) -> str | None:
        """The id as text, by which lines are joined."""
        if self.id is None:
            return None
        return str(self.id)


class Native(msgspec.Struct, frozen=True):
    """The facts that exporter and program need beyond the general fields of a sample."""

    row: int
    """Zero-based position of the record in its dataset."""
    entry: Entry


def split_entry(line: JSON) -> Entry:
    """Take a line apart.

    A joined line ``{"sample", "recorded"}``, or a record with ``recorded`` beside its keys.

    ``id``, ``model``, ``run``, ``recorded`` and ``response`` beside a record's keys belong to the
    join, not to the record. What is under ``sample`` is the record and nothing else.
    """
    if not isinstance(line, dict):
        return Entry(line)
    if "sample" in line and "messages" not in line:
        record = line["sample"]
    else:
        record = {key: value for key, value in line.items() if key not in ENVELOPE_KEYS}
    fields = as_map(record)
    metadata = fields.get("metadata")
    places = (line, fields, as_map(metadata))
    ids = [holder["id"] for holder in places if holder.get("id") is not None]
    reply = reply_of(line)
    return Entry(record, reply, read_id(ids[0]) if ids else None, *_run_of(line))


def read_id(value: Any) -> int | str | None:
    """Return an id: text that is not empty, or a whole number; None for anything else."""
    if type(value) is int or (value and isinstance(value, str)):
        return value
    return None


def reply_of(line: Mapping[str, JSON]) -> JSON:
    """Return the reply under ``recorded`` or ``response``; ABSENT where a line carries none."""
    replies = [line[key] for key in REPLY_KEYS if line.get(key) is not None]
    return replies[0] if replies else ABSENT


def is_reply(value: JSON) -> bool:
    """Return whether a value is a reply: text, or an object of a kind."""
    return isinstance(value, str) or kind_of(as_map(value)) is not None


def _run_of(line: Mapping[str, Any]) -> tuple[str | None, int | str | None]:
    model = line.get("model")
    run = line.get("run")
    is_named = type(run) in (int, str)
    return (model if isinstance(model, str) else None), (run if is_named else None)


def with_reply(entry: Entry, line: JSON) -> Entry:
    """Return a dataset entry with the reply of a second file's line.

    Bare, or under ``recorded`` / ``response``.
    """
    if not isinstance(line, dict):
        return entry._replace(reply=line)
    kind = kind_of(line)
    is_wrapped = kind is None and not line.keys().isdisjoint(REPLY_KEYS)
    model, run = _run_of(line)
    reply = reply_of(line) if is_wrapped else line
    return entry._replace(reply=reply, model=model, run=run)


def build(entry: Entry, *, row: int, source: Source, model: str | None = None) -> Sample:
    """Return the sample of one record and its reply, failed where they cannot be processed."""
    status, fault = Status.OK, None
    fields: dict[str, Any] = {}
    try:
        record = parse_record(entry.record)
        fields |= _fields_of_record(record)
        if entry.reply is not ABSENT:
            fields |= _fields_of_replies(record, entry.reply)
    except (RecordProblem, ReplyProblem) as problem:
        status = Status.FAILED
        category: Any = "data" if isinstance(problem, RecordProblem) else "target"
        fault = Fault(category=category, code=PROCESSING_ERROR, message=str(problem))
    if entry.reply is ABSENT:
        status = Status.MISSING
        fault = Fault(category="data", code="missing_reply", message=NO_REPLY)
    native = Native(row, entry)
    return Sample(
        id=entry.name or str(row),
        model=entry.model or model,
        run=entry.run,
        status=status,
        error=fault,
        source=replace(source, id=entry.id) if isinstance(entry.id, int) else source,
        native=native,
        **fields,
    )


def _fields_of_record(record: Record) -> dict[str, Any]:
    """Return the fields of a sample that a dataset's record holds, whatever the reply."""
    truth = read_truth(record, read_calls(record))
    metadata = record.metadata or {}
    facets: dict[str, JSON] = {
        key: value for key, value in metadata.items() if isinstance(value, str | int | float)
    }
    tags = metadata.get("tags")
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        facets["tags"] = tags
    tools = record.tools
    if tools is None and record.tool_context is not None:  # where they once stood
        tools = record.tool_context.available_tools
    return {
        "input": truth.query,
        "tools": None if tools is None else convert(tools),
        "expected": Expectation(calls=tuple(map(ExpectedCall.of, truth.calls)), text=truth.answer),
        "facets": facets,
    }


def _fields_of_replies(record: Record, reply: JSON) -> dict[str, Any]:
    """Return the fields of a sample that its replies hold: messages, calls, text, remarks."""
    replies = replies_of(reply)
    responses = [read_reply(one) for one in replies]
    for message in record.prompt:
        if message.text is None:
            absence = "no" if message.content is UNSET else "null"
            raise RecordProblem(f"a {message.role} message of the prompt has {absence} content")
    messages = [Message(role=message.role, content=message.text) for message in record.prompt]
    calls: list[ToolCall] = []
    for step, response in enumerate(responses):
        made = response.calls
        if len(responses) > 1:
            made = tuple(replace(call, step=step) for call in made)
        messages.append(Message(role="assistant", content=response.content, tool_calls=made))
        calls += made
    unread = _count_unread(reply, has_calls=bool(calls))
    text = responses[-1].content
    return {
        "turns": (tuple(messages),),
        "calls": None if unread else tuple(calls),
        "text": text,
        "remarks": unread,
    }


def _count_unread(reply: JSON, *, has_calls: bool) -> dict[str, int]:
    """Return the remarks on calls in a reply that the document's rules do not decode."""
    messages = []
    turns = as_list(as_map(reply).get("turns"))
    for turn in turns or [reply]:
        message = turn if isinstance(turn, dict) else {"text": turn}
        text = message.get("text")
        content = message.get("content", text)
        messages.append({"role": "assistant", **message, "content": content})
    return count_unread(messages, has_calls=has_calls, read=("tool_call", "tool_calls"))
