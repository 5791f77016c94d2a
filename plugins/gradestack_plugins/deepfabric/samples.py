"""Making samples: a dataset record, its recorded reply, and what each contributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from gradestack.api import Profile
from gradestack.model import (
    ABSENT,
    JSON,
    Expectation,
    Fault,
    Message,
    Sample,
    Source,
    Status,
)
from gradestack_plugins.deepfabric.records import RecordProblem, Truth, lenient_truth, strict_truth
from gradestack_plugins.deepfabric.replies import Reply, ReplyProblem, kind_of, read_reply
from gradestack_plugins.deepfabric.tables import Converted, table

Validation = Literal["strict", "lenient"]
PROCESSING_ERROR: Final = "processing_error"
"""Fault code of samples that count as wrong because the record or the reply could not be processed."""
NO_REPLY: Final = "no recorded reply"
_REPLY_KEYS: Final = ("recorded", "response")
_ENVELOPE_KEYS: Final = frozenset({"id", "model", "run", *_REPLY_KEYS})
_SCALARS: Final = frozenset({str, int, float, bool})


@attrs.frozen
class Native:
    """What the exporter needs beyond the general fields of a sample."""

    row: int
    """Zero-based position of the record in its dataset."""
    named: bool = True
    """False when the reply's call has no name at all."""


@attrs.frozen
class Entry:
    """One line of a dataset or joined file, taken apart."""

    record: JSON
    reply: JSON = ABSENT
    id: str | None = None
    model: str | None = None
    run: int | str | None = None


def identifier(value: Any) -> str | None:
    """Return an id as text: text that is not empty, or a whole number; None for anything else."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def split_entry(line: JSON) -> Entry:
    """Take a line apart: a joined line ``{"sample", "recorded"}``, or a record with ``recorded`` beside its keys.

    ``id``, ``model``, ``run``, ``recorded`` and ``response`` belong to the join, not to the record.
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
        if key is not None:
            record = {name: value for name, value in record.items() if name != "id"}
        elif isinstance(record.get("metadata"), dict):
            key = record["metadata"].get("id")
    return Entry(record, reply_of(line), identifier(key), *_run_of(line))


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
        return attrs.evolve(entry, reply=line)
    model, run = _run_of(line)
    reply: JSON = line
    if kind_of(line) is None and any(key in line for key in _REPLY_KEYS):
        reply = reply_of(line)
    return attrs.evolve(entry, reply=reply, model=model, run=run)


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
    record = entry.record
    name = entry.id if entry.id is not None else str(row)
    common: dict[str, Any] = {"id": name, "model": entry.model or model, "run": entry.run, "source": source}
    tools = record.get("tools") if isinstance(record, dict) else None
    try:
        converted = table(profile).convert(tools) if isinstance(tools, list) else None
        truth = _truth(record, converted, validation)
    except RecordProblem as problem:
        return _broken(common, row, entry.reply, str(problem))
    specs = converted.specs if converted is not None and not converted.problem else None
    common |= {
        "input": truth.query,
        "tools": specs,
        "expected": Expectation(calls=truth.calls, text=truth.answer),
        "facets": _facets(record.get("metadata")),
    }
    if entry.reply is ABSENT:
        return _missing(common, row)
    try:
        late = _check_prompt(record, converted) if validation == "strict" else None
        reply = read_reply(entry.reply, profile, with_tools=bool(specs))
        if late:
            raise RecordProblem(late)
    except (RecordProblem, ReplyProblem) as problem:
        return _failed(common, row, str(problem), "target" if isinstance(problem, ReplyProblem) else "data")
    return Sample(
        turns=(_conversation(record, reply),),
        calls=reply.calls,
        text=reply.content,
        native=Native(row, reply.named),
        **common,
    )


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


def _check_prompt(record: Mapping[str, Any], converted: Converted | None) -> str | None:
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
            msg = "'content'"
            raise RecordProblem(msg)
        if message["content"] is None:
            late = f"a {message['role']} message of the prompt has null content"
    if converted is not None and converted.problem:
        raise RecordProblem(converted.problem)
    return late


def _facets(metadata: JSON) -> dict[str, JSON]:
    if not metadata or not isinstance(metadata, dict):
        return {}
    return {key: value for key, value in metadata.items() if type(value) in _SCALARS}


def _conversation(record: Mapping[str, Any], reply: Reply) -> tuple[Message, ...]:
    """Return the prompt and the recorded reply; the record's own assistant messages are the reference, not the run."""
    spoken = []
    messages = record.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict) or message.get("role") == "assistant":
            break
        role = message.get("role")
        spoken.append(Message(role=role if isinstance(role, str) else "", content=message.get("content")))
    spoken.append(Message(role="assistant", content=reply.content, tool_calls=reply.calls))
    return tuple(spoken)


def _failed(common: Mapping[str, Any], row: int, message: str, category: str) -> Sample:
    fault = Fault(category=category, code=PROCESSING_ERROR, message=message)
    return Sample(status=Status.FAILED, error=fault, native=Native(row), **common)


def _broken(common: Mapping[str, Any], row: int, reply: JSON, message: str) -> Sample:
    return _missing(common, row) if reply is ABSENT else _failed(common, row, message, "data")


def _missing(common: Mapping[str, Any], row: int) -> Sample:
    fault = Fault(category="data", code="missing_reply", message=NO_REPLY)
    return Sample(status=Status.MISSING, error=fault, native=Native(row), **common)
