"""Making samples: a dataset record, its recorded reply, and what each contributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from gradestack import (
    ABSENT,
    JSON,
    Expectation,
    ExpectedCall,
    Fault,
    Message,
    Profile,
    Sample,
    Source,
    Status,
    ToolSpec,
    replace,
)
from gradestack_plugins.deepfabric.records import RecordProblem, Truth, lenient_truth, strict_truth
from gradestack_plugins.deepfabric.replies import Reply, ReplyProblem, kind_of, read_reply
from gradestack_plugins.deepfabric.schemas import SchemaProblem, convert

Validation = Literal["strict", "lenient"]
PROCESSING_ERROR: Final = "processing_error"
"""Fault code of samples that count as wrong because the record or the reply could not be processed."""
NO_REPLY: Final = "no recorded reply"
_REPLY_KEYS: Final = ("recorded", "response")
_ENVELOPE_KEYS: Final = frozenset({"id", "model", "run", *_REPLY_KEYS})
_SCALARS: Final = frozenset({str, int, float, bool})


class Native(NamedTuple):
    """What the exporter needs beyond the general fields of a sample."""

    row: int
    """Zero-based position of the record in its dataset."""
    named: bool = True
    """False when the reply's call has no name at all."""


class Converted(NamedTuple):
    """A ``tools`` list as specifications, or why it cannot be converted."""

    specs: tuple[ToolSpec, ...]
    problem: str | None
    """Why the original fails on converting it."""
    invalid: str | None
    """Why the original refuses the record over it; then ``specs`` are those of the entries that are objects."""


class Entry(NamedTuple):
    """One line of a dataset or joined file, taken apart."""

    record: JSON
    reply: JSON = ABSENT
    id: str | None = None
    model: str | None = None
    run: int | str | None = None
    number: int | None = None
    """The id, where it is a whole number."""


def identifier(value: Any) -> str | None:
    """Return an id as text: text that is not empty, or a whole number; None for anything else."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def split_entry(line: JSON) -> Entry:
    """Take a line apart: a joined line ``{"sample", "recorded"}``, or a record with ``recorded`` beside its keys.

    ``id``, ``model``, ``run``, ``recorded`` and ``response`` beside a record's keys belong to the join, not to the
    record. What is under ``sample`` is the record and nothing else.
    """
    if not isinstance(line, dict):
        return Entry(line)
    if "sample" in line and "messages" not in line:
        record = line["sample"]
    elif _ENVELOPE_KEYS.isdisjoint(line):
        record = line
    else:
        record = {key: value for key, value in line.items() if key not in _ENVELOPE_KEYS}
    key = line.get("id")
    if key is None and isinstance(record, dict):
        key = record.get("id")
        if key is None and isinstance(record.get("metadata"), dict):
            key = record["metadata"].get("id")
    number = key if isinstance(key, int) and not isinstance(key, bool) else None
    return Entry(record, reply_of(line), identifier(key), *_run_of(line), number)


def reply_of(line: Mapping[str, JSON]) -> JSON:
    """Return the reply a line carries under ``recorded`` or ``response``; ABSENT when it carries none."""
    for key in _REPLY_KEYS:
        if line.get(key) is not None:
            return line[key]
    return ABSENT


def _run_of(line: Mapping[str, Any]) -> tuple[str | None, int | str | None]:
    model, run = line.get("model"), line.get("run")
    whole = isinstance(run, int | str) and not isinstance(run, bool)
    return (model if isinstance(model, str) else None), (run if whole else None)


def with_reply(entry: Entry, line: JSON) -> Entry:
    """Return a dataset entry with the reply of a second file's line: bare, or under ``recorded`` / ``response``."""
    if not isinstance(line, dict):
        return entry._replace(reply=line)
    model, run = _run_of(line)
    reply: JSON = line
    if kind_of(line) is None and any(key in line for key in _REPLY_KEYS):
        reply = reply_of(line)
    return entry._replace(reply=reply, model=model, run=run)


def build(
    entry: Entry,
    *,
    row: int,
    source: Source,
    profile: Profile,
    validation: Validation = "strict",
    model: str | None = None,
) -> Sample:
    """Return the sample of one record and its reply; what cannot be processed becomes a failed sample.

    Args:
        entry: The record and its reply.
        row: Zero-based position of the record in its dataset.
        source: Where the reply (or, without one, the record) was read.
        profile: How tools and replies are read.
        validation: ``strict`` holds the record against every rule of the format.
        model: Model name where the entry has none.
    """
    record, answer = entry.record, entry.reply
    truth, converted, reply, fault = None, None, None, None
    try:
        if isinstance(record, dict) and isinstance(tools := record.get("tools"), list):
            converted = _converted(tools, profile)
        truth = _truth(record, converted, validation)
        if answer is not ABSENT:
            reply = _reply(record, answer, converted, profile, strict=validation == "strict")
    except (RecordProblem, ReplyProblem) as problem:
        category = "data" if isinstance(problem, RecordProblem) else "target"
        fault = Fault(category=category, code=PROCESSING_ERROR, message=str(problem))
    if answer is ABSENT:
        fault = Fault(category="data", code="missing_reply", message=NO_REPLY)
    known = truth is not None
    return Sample(
        id=entry.id if entry.id is not None else str(row),
        model=entry.model or model,
        run=entry.run,
        input=truth.query if truth is not None else None,
        turns=(_conversation(record, reply),) if reply is not None else (),
        calls=reply.calls if reply is not None else None,
        text=reply.content if reply is not None else None,
        tools=converted.specs if converted is not None and known and not converted.problem else None,
        expected=Expectation(calls=tuple(map(ExpectedCall.of, truth.calls)), text=truth.answer)
        if truth is not None
        else _NOTHING_EXPECTED,
        status=Status.OK if fault is None else Status.MISSING if answer is ABSENT else Status.FAILED,
        error=fault,
        facets=_facets(record.get("metadata")) if known else {},
        source=source if entry.number is None else replace(source, id=entry.number),
        native=Native(row, reply.named if reply is not None else True),
    )


_NOTHING_EXPECTED: Final = Expectation()


def _converted(raw: list[Any], profile: Profile) -> Converted:
    entries = [entry for entry in raw if isinstance(entry, dict)]
    invalid = "tools: every entry must be an object" if len(entries) < len(raw) else None
    try:
        return Converted(convert(entries, profile), None, invalid)
    except SchemaProblem as error:
        return Converted((), str(error), invalid)


def _reply(
    record: dict[str, Any], answer: JSON, converted: Converted | None, profile: Profile, *, strict: bool
) -> Reply:
    """Return the reply, after what the original does before asking the model, and before what it does afterwards."""
    late = _check_prompt(record, converted, profile) if strict else None
    reply = read_reply(answer, profile, with_tools=converted is not None and bool(converted.specs))
    if late is not None:
        raise RecordProblem(late)
    return reply


def _truth(record: JSON, converted: Converted | None, validation: Validation) -> Truth:
    if validation == "lenient":
        return lenient_truth(record)
    truth = strict_truth(record)
    if converted is not None:
        if converted.invalid:
            raise RecordProblem(converted.invalid)
        if converted.problem and truth.calls:
            raise RecordProblem(converted.problem)
    return truth


def _check_prompt(record: Mapping[str, Any], converted: Converted | None, profile: Profile) -> str | None:
    """Check what is sent to the model: the messages before the first assistant message, and the tools.

    Returns:
        A problem that shows only after the model has answered, so that a failing inference comes first.

    Raises:
        RecordProblem: A problem that shows before the model is asked.
    """
    late = None
    for message in record["messages"]:
        if message["role"] == "assistant":
            break
        if "content" not in message:
            msg = "'content'" if profile == "upstream" else f"a {message['role']} message of the prompt has no content"
            raise RecordProblem(msg)
        if message["content"] is None:
            late = f"a {message['role']} message of the prompt has null content"
    if converted is not None and converted.problem:
        raise RecordProblem(converted.problem)
    return late


def _facets(metadata: JSON) -> dict[str, JSON]:
    if not metadata or not isinstance(metadata, dict):
        return {}
    kept = {key: value for key, value in metadata.items() if type(value) in _SCALARS}
    if isinstance(tags := metadata.get("tags"), list) and all(isinstance(tag, str) for tag in tags):
        kept["tags"] = tags
    return kept


def _conversation(record: Mapping[str, Any], reply: Reply) -> tuple[Message, ...]:
    """Return the prompt and the recorded reply; the record's own assistant messages are the reference, not the run."""
    spoken = []
    messages = record.get("messages")
    for message in messages if isinstance(messages, list) else ():
        role = message.get("role") if isinstance(message, dict) else "assistant"
        if role == "assistant":
            break
        spoken.append(Message(role=role if isinstance(role, str) else "", content=message.get("content")))
    spoken.append(Message(role="assistant", content=reply.content, tool_calls=reply.calls))
    return tuple(spoken)
