"""Samples: what a record and the reply to it say, by the document or to a version of the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from gradestack_plugins.deepfabric.options import DOCUMENTED, NEWEST, OLD, USUAL, Reading, Rules
from gradestack_plugins.deepfabric.records import RecordProblem, Truth, checked_calls, lenient_truth, strict_truth
from gradestack_plugins.deepfabric.replies import Call, ReplyProblem, Response, heard, kind_of, responses
from gradestack_plugins.deepfabric.schemas import SchemaProblem, convert

PROCESSING_ERROR: Final = "processing_error"
"""Fault code of samples that count as wrong because the record or the reply could not be processed."""
RUN_STOPS: Final = "run_stops"
"""Fault code of processing errors on which the newest program ends, without a result."""
ERRORS: Final = frozenset({PROCESSING_ERROR, RUN_STOPS})
NO_REPLY: Final = "no recorded reply"
Validation = Literal["strict", "lenient"]
_OTHERS: Final = (Reading(OLD), Reading(most_turns=10))
_REPLY_KEYS: Final = ("recorded", "response")
_ENVELOPE_KEYS: Final = frozenset({"id", "model", "run", *_REPLY_KEYS})
_SCALARS: Final = frozenset({str, int, float, bool})


class Case(NamedTuple):
    """A record and the reply recorded to it (ABSENT: none)."""

    record: JSON
    reply: JSON = ABSENT
    lenient: bool = False


class Seen(NamedTuple):
    """What is made of a case."""

    truth: Truth | None
    """None where the record breaks a rule."""
    tools: tuple[ToolSpec, ...] | None
    offered: tuple[str, ...]
    """Names of the tools, as the result file shows them; none where the record or a tool cannot be used."""
    responses: tuple[Response, ...]
    fault: Fault | None = None
    """Why it is a processing error."""
    several: bool = False
    """Whether all calls count, not only the first reply's first."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that count."""
        if self.several:
            return tuple(call for each in self.responses for call in each.calls)
        return tuple(each.call for each in self.responses if each.call is not None)


class Native(NamedTuple):
    """What the family's grader and exporter need beyond the general fields of a sample."""

    row: int
    """Zero-based position of the record in its dataset."""
    seen: Seen
    """What the document makes of record and reply, or the newest version when it asks for one reply."""
    case: Case | None = None
    """The record and its reply, for a version of the program to read (``upstream``)."""

    def as_read(self, reading: Reading) -> Seen:
        """Return what the program makes of the record and its reply; the document's reading is the only one."""
        return self.seen if reading is USUAL or self.case is None else see(self.case, reading)


def tools_of(record: JSON, rules: Rules) -> tuple[tuple[ToolSpec, ...] | None, SchemaProblem | None]:
    """Return a record's tools, None where it has no list of them, and why they cannot be converted.

    Where ``tools`` is absent, ``documented`` takes the deprecated ``tool_context.available_tools``.
    """
    listed = record.get("tools") if isinstance(record, dict) else None
    if listed is None and rules == "documented" and isinstance(record, dict):
        context = record.get("tool_context")
        listed = context.get("available_tools") if isinstance(context, dict) else None
    if not isinstance(listed, list):
        return None, None
    try:
        return convert([each for each in listed if isinstance(each, dict)], rules), None
    except SchemaProblem as problem:
        return None, problem


def see(case: Case, reading: Reading) -> Seen:
    """Return what the document's rules or the program make of a case."""
    record, version = case.record, reading.version
    tools, conversion = tools_of(record, version)
    truth: Truth | None = None
    fault: Fault | None = None
    answers: tuple[Response, ...] = ()
    valid, late = case.lenient, None
    try:
        if case.lenient:
            truth = lenient_truth(record)
        else:
            calls = checked_calls(record, version)
            valid = True
            truth = strict_truth(record, calls, version, conversion)
            late = check_prompt(record, conversion, version)
        if case.reply is not ABSENT:
            answers = heard(case.reply, reading, with_tools=bool(tools))
    except ReplyProblem as problem:
        fault = Fault(category="target", code=PROCESSING_ERROR, message=str(problem))
    except RecordProblem as problem:
        stops = problem.stops or (valid and not case.lenient and conversion is not None and conversion.stops)
        code = RUN_STOPS if stops and version == NEWEST else PROCESSING_ERROR
        fault = Fault(category="data", code=code, message=str(problem))
    if fault is None and late is not None and not reading.most_turns:
        fault = Fault(category="data", code=PROCESSING_ERROR, message=late)
    named = truth is not None if version == "documented" else valid
    offered = tuple(each.name for each in tools or ()) if named else ()
    answers = answers if fault is None else ()
    return Seen(truth, tools if truth is not None else None, offered, answers, fault, reading.most_turns > 0)


def check_prompt(record: Mapping[str, Any], conversion: SchemaProblem | None, rules: Rules) -> str | None:
    """Check what is sent to the model: the messages before the first assistant message, and the tools."""
    late = None
    for message in record["messages"]:
        if message["role"] == "assistant":
            break
        if "content" not in message:
            wording = f"a {message['role']} message of the prompt has no content"
            raise RecordProblem(wording if rules == "documented" else "'content'")
        if message["content"] is None:
            late = f"a {message['role']} message of the prompt has null content"
    if conversion is not None:
        raise RecordProblem(str(conversion))
    return late


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
    """Return the sample of one record and its reply; what cannot be processed becomes a failed sample."""
    case = Case(entry.record, entry.reply, validation == "lenient")
    seen = see(case, USUAL if profile == "upstream" else DOCUMENTED)
    native = Native(row, seen, case if profile == "upstream" else None)
    if profile == "upstream" and seen.fault is not None:
        # The first reading without an error, where there is one: which of them counts is for the grader to say.
        others = (see(case, reading) for reading in _OTHERS)
        seen = next((each for each in others if each.fault is None), seen)
    replies = _conversation(case, seen, profile)
    fault, truth, missing = seen.fault, seen.truth, entry.reply is ABSENT
    if missing:
        fault = Fault(category="data", code="missing_reply", message=NO_REPLY)
    record = entry.record if truth is not None else {}
    return Sample(
        id=entry.id if entry.id is not None else str(row),
        model=entry.model or model,
        run=entry.run,
        input=truth.query if truth is not None else None,
        turns=((*_prompt(record.get("messages")), *replies),) if replies else (),
        calls=tuple(call for each in replies for call in each.tool_calls) if replies else None,
        text=replies[-1].content if replies else None,
        tools=seen.tools,
        expected=Expectation()
        if truth is None
        else Expectation(calls=tuple(map(ExpectedCall.of, truth.calls)), text=truth.answer),
        status=Status.OK if fault is None else Status.MISSING if missing else Status.FAILED,
        error=fault,
        facets=_facets(record.get("metadata")),
        source=source if entry.number is None else replace(source, id=entry.number),
        native=native,
    )


def _conversation(case: Case, seen: Seen, profile: Profile) -> list[Message]:
    """Return every recorded reply of a case without an error, those that are not looked at too."""
    if seen.fault is not None or case.reply is ABSENT:
        return []
    found = list(seen.responses)
    if profile == "upstream" and isinstance(case.reply, dict) and kind_of(case.reply) == "turns":
        found = []
        try:
            found += responses(case.reply, USUAL, with_tools=bool(seen.tools))
        except ReplyProblem:
            found = found or list(seen.responses)
    spoken = []
    for step, each in enumerate(found):
        calls = tuple(call.made() for call in each.calls or ((each.call,) if each.call is not None else ()))
        calls = tuple(replace(call, step=step) for call in calls) if len(found) > 1 else calls
        spoken.append(Message(role="assistant", content=each.content, tool_calls=calls))
    return spoken


def _prompt(messages: JSON) -> Iterable[Message]:
    """Yield the messages before the first reply; the record's own replies are the reference, not the run."""
    for message in messages if isinstance(messages, list) else ():
        role = message.get("role") if isinstance(message, dict) else "assistant"
        if role == "assistant":
            return
        yield Message(role=role if isinstance(role, str) else "", content=message.get("content"))


def _facets(metadata: JSON) -> dict[str, JSON]:
    if not metadata or not isinstance(metadata, dict):
        return {}
    kept = {key: value for key, value in metadata.items() if type(value) in _SCALARS}
    if isinstance(tags := metadata.get("tags"), list) and all(isinstance(tag, str) for tag in tags):
        kept["tags"] = tags
    return kept
