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
    replace,
)
from gradestack_plugins.deepfabric.lenient import lenient_truth
from gradestack_plugins.deepfabric.records import RecordProblem, Truth, checked_calls, strict_truth
from gradestack_plugins.deepfabric.replies import Reply, ReplyProblem, kind_of, numbered, read_replies
from gradestack_plugins.deepfabric.responses import Response, responses
from gradestack_plugins.deepfabric.upstream import PROCESSING_ERROR, Case, Seen, check_prompt, see, tools_of
from gradestack_plugins.deepfabric.versions import OLD, USUAL, Reading

Validation = Literal["strict", "lenient"]
NO_REPLY: Final = "no recorded reply"
_OTHERS: Final = (Reading(OLD), Reading(most_turns=10))
_REPLY_KEYS: Final = ("recorded", "response")
_ENVELOPE_KEYS: Final = frozenset({"id", "model", "run", *_REPLY_KEYS})
_SCALARS: Final = frozenset({str, int, float, bool})


class Native(NamedTuple):
    """What the family's grader and exporter need beyond the general fields of a sample."""

    row: int
    """Zero-based position of the record in its dataset."""
    named: bool = True
    """False when the reply's call has no name at all (``documented``)."""
    case: Case | None = None
    """The record and its reply, for a version of the program to read (``upstream``)."""
    seen: Seen | None = None
    """What the newest version makes of them when it asks for one reply."""

    def as_read(self, reading: Reading) -> Seen | None:
        """Return what the program makes of the record and its reply; None where they are not kept."""
        return self.seen if reading is USUAL or self.case is None else see(self.case, reading)


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
    case = Case(entry.record, entry.reply, validation == "lenient")
    if profile == "upstream":
        usual = see(case, USUAL)
        seen = usual if usual.fault is None else _best(case, usual)
        replies, native = _spoken(case, seen), Native(row, case=case, seen=usual)
    else:
        seen, replies = _documented(case)
        native = Native(row, replies[0].named if replies else True)
    fault, truth, missing = seen.fault, seen.truth, entry.reply is ABSENT
    if missing:
        fault = Fault(category="data", code="missing_reply", message=NO_REPLY)
    record = entry.record if truth is not None else {}
    return Sample(
        id=entry.id if entry.id is not None else str(row),
        model=entry.model or model,
        run=entry.run,
        input=truth.query if truth is not None else None,
        turns=(_conversation(record, replies),) if replies else (),
        calls=tuple(call for each in replies for call in each.calls) if replies else None,
        text=replies[-1].content if replies else None,
        tools=seen.tools,
        expected=Expectation(calls=tuple(map(ExpectedCall.of, truth.calls)), text=truth.answer)
        if truth is not None
        else _NOTHING_EXPECTED,
        status=Status.OK if fault is None else Status.MISSING if missing else Status.FAILED,
        error=fault,
        facets=_facets(record.get("metadata")),
        source=source if entry.number is None else replace(source, id=entry.number),
        native=native,
    )


_NOTHING_EXPECTED: Final = Expectation()


def _best(case: Case, usual: Seen) -> Seen:
    """Return the first reading without an error, where there is one: which of them counts is for the grader to say."""
    others = (see(case, reading) for reading in _OTHERS)
    return next((seen for seen in others if seen.fault is None), usual)


def _spoken(case: Case, seen: Seen) -> tuple[Reply, ...]:
    """Return every recorded reply of a case without an error, those that were not looked at too."""
    if seen.fault is not None or case.reply is ABSENT:
        return ()
    found = list(seen.responses)
    if isinstance(case.reply, dict) and kind_of(case.reply) == "turns":
        found = []
        try:
            found += responses(case.reply, USUAL, with_tools=bool(seen.tools))
        except ReplyProblem:
            found = found or list(seen.responses)
    return numbered(_as_reply(each) for each in found)


def _as_reply(response: Response) -> Reply:
    made = response.calls or (() if response.call is None else (response.call,))
    return Reply(response.content, tuple(each.made() for each in made))


def _documented(case: Case) -> tuple[Seen, tuple[Reply, ...]]:
    """Return what a case says by the document's rules."""
    record = case.record
    tools, _ = tools_of(record, "documented")
    truth: Truth | None = None
    fault: Fault | None = None
    replies: tuple[Reply, ...] = ()
    late = None
    try:
        if case.lenient:
            truth = lenient_truth(record)
        else:
            truth = strict_truth(record, checked_calls(record, "documented"), "documented")
            late = check_prompt(record, None, "documented")
        if case.reply is not ABSENT:
            replies = read_replies(case.reply)
    except (RecordProblem, ReplyProblem) as problem:
        category = "data" if isinstance(problem, RecordProblem) else "target"
        fault = Fault(category=category, code=PROCESSING_ERROR, message=str(problem))
    if fault is None and late is not None:
        fault, replies = Fault(category="data", code=PROCESSING_ERROR, message=late), ()
    return Seen(truth, tools if truth is not None else None, (), (), fault), replies


def _facets(metadata: JSON) -> dict[str, JSON]:
    if not metadata or not isinstance(metadata, dict):
        return {}
    kept = {key: value for key, value in metadata.items() if type(value) in _SCALARS}
    if isinstance(tags := metadata.get("tags"), list) and all(isinstance(tag, str) for tag in tags):
        kept["tags"] = tags
    return kept


def _conversation(record: Mapping[str, Any], replies: tuple[Reply, ...]) -> tuple[Message, ...]:
    """Return the prompt and the replies; the record's own assistant messages are the reference, not the run."""
    spoken = []
    messages = record.get("messages")
    for message in messages if isinstance(messages, list) else ():
        role = message.get("role") if isinstance(message, dict) else "assistant"
        if role == "assistant":
            break
        spoken.append(Message(role=role if isinstance(role, str) else "", content=message.get("content")))
    spoken += [Message(role="assistant", content=each.content, tool_calls=each.calls) for each in replies]
    return tuple(spoken)
