"""Samples: the rules a dataset record must obey, and what it and its reply say, by the document or
to the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, NoReturn

import msgspec

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
    ToolCall,
    ToolSpec,
    replace,
)
from gradestack.jsonio import JsonProblem, as_map, compact, loads, standard_loads
from gradestack_plugins.deepfabric.options import (
    DOCUMENTED,
    NEWEST,
    OLD,
    USUAL,
    Reading,
    RecordProblem,
    Rules,
)
from gradestack_plugins.deepfabric.replies import (
    Call,
    ReplyProblem,
    Response,
    heard,
    kind_of,
    responses,
)
from gradestack_plugins.deepfabric.schemas import convert
from gradestack_plugins.readers.chat.unread import count_unread

_CALL_ID: Final = "^[a-zA-Z0-9]{9}"
_CALL_SHAPE: Final = re.compile(r"\b[a-z_][a-z0-9_]*\s*\([^)]*\)")
_STYLES: Final = frozenset({"freetext", "agent", "structured", "hybrid"})
_TYPES, _MODES = (
    frozenset({"basic", "chain_of_thought", "cot"}),
    frozenset({"single_turn", "multi_turn"}),
)
_UNKNOWN: Final[Mapping[Rules, str]] = {"documented": "", "4.13": "multi_turn", "4.3": "cot"}
"""Of these words, the one that the rules do not know."""
NO_QUERY: Final = "No user query found in conversation"


class Truth(NamedTuple):
    """What a record says should happen."""

    query: str
    calls: tuple[ToolCall, ...]
    """All recorded executions.

    The first is the expected call, none means that no call is expected.
    """
    answer: str | None


Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: Text
    arguments: Any


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(pattern=_CALL_ID, max_length=9)]
    function: _Function
    type: Literal["function"] = "function"


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: Annotated[str, msgspec.Meta(pattern=f"{_CALL_ID}$")] | None = None


class _Execution(msgspec.Struct, forbid_unknown_fields=True):
    function_name: Text
    arguments: Annotated[str, msgspec.Meta(min_length=2)]
    reasoning: Text
    result: Text


class _Tools(msgspec.Struct, forbid_unknown_fields=True):
    executions: list[_Execution] = []
    available_tools: list[dict[str, Any]] | msgspec.UnsetType | None = (
        msgspec.UNSET
    )  # unknown to version 4.3


class _Step(msgspec.Struct):
    thought: str
    step_number: Any
    action: str | None = None


class _Reasoning(msgspec.Struct, forbid_unknown_fields=True):
    style: Literal["freetext", "agent"]
    content: str | list[_Step]


class _Agent(msgspec.Struct, forbid_unknown_fields=True):
    mode: str | msgspec.UnsetType = msgspec.UNSET
    planning_trace: str | None = None
    execution_summary: str | None = None


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    """A record, but for what its texts hold.

    Of an object that is only looked at, that it is one, is checked apart.
    """

    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    metadata: Any = None
    reasoning: _Reasoning | None = None
    tool_context: _Tools | None = None
    tools: Any = None
    agent_context: _Agent | None = None
    structured_data: Any = None
    question: str = ""
    final_answer: str = ""


RECORD_KEYS: Final = frozenset(_Record.__struct_fields__)


def refuse(where: str, wanted: str, value: JSON = None) -> NoReturn:
    """Refuse a record, naming the place, what belongs there and what stands there."""
    raise RecordProblem(f"{where}: {wanted}, got {compact(value)[:80]}")


def checked_calls(record: JSON, rules: Rules) -> list[ToolCall]:
    """Return the executions of a record that obeys the format.

    Arguments are None where their text holds no object.
    """
    if not isinstance(record, dict):
        refuse("record", "must be an object", record)
    if not record.keys() <= RECORD_KEYS:
        unknown = sorted(record.keys() - RECORD_KEYS)
        raise RecordProblem(
            f"unknown keys {', '.join(map(repr, unknown))} (extra inputs are not permitted)"
        )
    tools = record.get("tools")
    if tools is not None and not (
        isinstance(tools, list) and all(isinstance(each, dict) for each in tools)
    ):
        refuse("tools", "must be a list of objects or null", tools)
    for key in ("metadata", "structured_data"):
        if not isinstance(record.get(key), dict | None):
            refuse(key, "must be an object or null", record[key])
    try:
        found = msgspec.convert(record, _Record)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise RecordProblem(str(error)) from error
    for call in (call for message in found.messages for call in message.tool_calls or ()):
        _check_unicode("messages.tool_calls.function.name", call.function.name)
        if not isinstance(call.function.arguments, dict):
            json_text("messages.tool_calls.function.arguments", call.function.arguments)
    context = found.tool_context
    if context is not None and rules == OLD and context.available_tools is not msgspec.UNSET:
        refuse(
            "tool_context", "must be an object with no key but executions", record["tool_context"]
        )
    calls = [_execution(each) for each in context.executions] if context is not None else []
    _check_rest(record, found, rules)
    return calls


def _check_rest(record: Mapping[str, Any], found: _Record, rules: Rules) -> None:
    agent, reasoning = found.agent_context, found.reasoning
    if agent is not None and found.tool_context is None:
        raise RecordProblem("agent_context requires tool_context to be present")
    if agent is not None and (rules == OLD or agent.mode is not msgspec.UNSET):
        _check_word(record["agent_context"].get("mode"), "agent_context.mode", _MODES, rules)
    if reasoning is not None:
        steps = reasoning.content
        listed = not isinstance(steps, str) and all(_is_whole(each.step_number) for each in steps)
        if not (listed if reasoning.style == "agent" else isinstance(steps, str)):
            wanted = "text" if reasoning.style == "freetext" else "a list of numbered steps"
            refuse("reasoning.content", f"must be {wanted}", record["reasoning"]["content"])


def _check_unicode(where: str, text: str) -> None:
    """Refuse lone surrogates where the original measures a text's length, which it does on valid
    Unicode only.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(where, "must be text without lone surrogates", text)


def json_text(where: str, text: JSON) -> JSON:
    """Return the value of a JSON text."""
    if not isinstance(text, str):
        refuse(where, "must be JSON text", text)
    try:
        return loads(text)
    except JsonProblem as error:
        stops = isinstance(error.__cause__, RecursionError)
        raise RecordProblem(f"{where}: must be valid JSON ({error})", stops=stops) from error


def _execution(given: _Execution) -> ToolCall:
    where, text = "tool_context.executions", given.arguments
    for key in given.__struct_fields__:
        _check_unicode(f"{where}.{key}", getattr(given, key))
    arguments = json_text(f"{where}.arguments", text.strip())
    if not isinstance(arguments, dict):
        return ToolCall(name=given.function_name, arguments=None, raw_arguments=text)
    if None in arguments.values() or "" in arguments.values():
        refuse(f"{where}.arguments", "must have an actual value for every name", text)
    return ToolCall(name=given.function_name, arguments=arguments, raw_arguments=text)


def _is_whole(number: Any) -> bool:
    if isinstance(number, str):
        return re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0*)?\s*", number) is not None
    return isinstance(number, int) or (isinstance(number, float) and number.is_integer())


def strict_truth(
    record: Mapping[str, Any],
    calls: list[ToolCall],
    rules: Rules,
    conversion: RecordProblem | None = None,
) -> Truth:
    """Return the ground truth of a record that obeys the rules of the dataset format."""
    messages, context = record["messages"], record.get("tool_context")
    metadata = record.get("metadata") or {}
    if rules == NEWEST and isinstance(word := metadata.get("conversation_type"), list | dict):
        raise RecordProblem(f"unhashable type: '{type(word).__name__}'", stops=True)
    asked = [message.get("content") for message in messages if message["role"] == "user"]
    query: JSON = asked[0] if asked else record.get("question", "")
    if not asked and not query:
        raise RecordProblem(NO_QUERY, stops=True)
    for call in calls if rules == NEWEST else calls[:1]:
        _check_expected(call)
    if conversion is not None and calls:
        raise conversion
    answer = record.get("final_answer", "") or _answer(messages, with_tools=context is not None)
    if not isinstance(query, str):
        refuse("messages", "the first user message must have text content", query)
    if metadata:
        _check_word(
            metadata.get("conversation_type", "basic"), "metadata.conversation_type", _TYPES, rules
        )
    for key, words in (("reasoning_style", _STYLES), ("agent_mode", _MODES)):
        if metadata.get(key) is not None:
            _check_word(metadata[key], f"metadata.{key}", words, rules)
    return Truth(query, tuple(calls), answer)


def _check_expected(call: ToolCall) -> None:
    """Check that an expected call's arguments are an object, and no white space but JSON's
    surrounds them.
    """
    text = call.raw_arguments or ""
    if not (text[0] == "{" and text[-1] == "}") and text.strip() != text.strip(" \t\n\r"):
        try:
            json_text("tool_context.executions.arguments", text)
        except RecordProblem as problem:
            raise RecordProblem(str(problem), stops=True) from problem
    if call.arguments is None:
        refuse("tool_context.executions.arguments", "must hold a JSON object", text)


def _answer(messages: list[dict[str, Any]], *, with_tools: bool) -> str | None:
    """Return the last assistant message.

    With tools, the last one that does not look like a call, if there is one.
    """
    spoken = [message.get("content") for message in messages if message["role"] == "assistant"]
    spoken.reverse()
    if with_tools:
        for content in spoken:
            if not isinstance(content, str):
                raise RecordProblem(
                    f"argument of type '{type(content).__name__}' is not iterable", stops=True
                )
            if not looks_like_call(content):
                return content
    return spoken[0] if spoken else None


def looks_like_call(content: str) -> bool:
    """Return whether an assistant message reads as a tool call.

    It does when it holds ``tool_call`` tags, is JSON with ``tool_calls`` (or names them and has
    ``function_call``), or holds an identifier followed by parentheses, so that "Cost (net) is 4"
    counts too.
    """
    if "<tool_call>" in content or "</tool_call>" in content:
        return True
    if "{" in content and "tool_calls" in content:
        try:
            data = standard_loads(content)
        except json.JSONDecodeError:
            pass
        except (RecursionError, ValueError) as error:
            raise RecordProblem(str(error), stops=True) from error
        else:
            if "tool_calls" in data or "function_call" in data:
                return True
    return "(" in content and _CALL_SHAPE.search(content.lower()) is not None


def _check_word(word: JSON, where: str, words: frozenset[str], rules: Rules) -> None:
    if not isinstance(word, str) or word not in words or word == _UNKNOWN[rules]:
        refuse(where, f"must be one of {', '.join(sorted(words - {_UNKNOWN[rules]}))}", word)


PROCESSING_ERROR: Final = "processing_error"
"""Fault code of samples that count as wrong because the record or the reply could not
be processed.
"""
# fault code of processing errors on which the newest program ends, without a result
RUN_STOPS: Final = "run_stops"
ERRORS: Final = frozenset({PROCESSING_ERROR, RUN_STOPS})
NO_REPLY: Final = "no recorded reply"
_OTHERS: Final = (Reading(OLD), Reading(most_turns=10))
_REPLY_KEYS: Final = ("recorded", "response")
_ENVELOPE_KEYS: Final = frozenset({"id", "model", "run", *_REPLY_KEYS})
_DECODED_KEYS: Final = ("tool_call", "tool_calls")
_SCALARS: Final = frozenset({str, int, float, bool})


class Entry(NamedTuple):
    """One line of a dataset or joined file, taken apart."""

    record: JSON
    reply: JSON = ABSENT
    id: str | None = None
    model: str | None = None
    run: int | str | None = None
    number: int | None = None  # the id, where it is a whole number


class Seen(NamedTuple):
    """What is made of a case."""

    truth: Truth | None  # none where the record breaks a rule
    tools: tuple[ToolSpec, ...] | None
    offered: tuple[str, ...]
    """Names of the tools, as the result file shows them.

    None where the record or a tool cannot be used.
    """
    responses: tuple[Response, ...]
    fault: Fault | None = None  # why it is a processing error
    several: bool = False  # whether all calls count, not only the first reply's first

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that count."""
        if self.several:
            return tuple(call for each in self.responses for call in each.calls)
        return tuple(each.call for each in self.responses if each.call is not None)


class Native(NamedTuple):
    """What the family's grader and exporter need beyond the general fields of a sample."""

    row: int  # zero-based position of the record in its dataset
    # what the document makes of record and reply, or the newest version when it asks for one reply
    seen: Seen
    case: Entry | None = (
        None  # the record and its reply, for a version of the program to read (`upstream`)
    )

    def as_read(self, reading: Reading) -> Seen:
        """Return what the program makes of the record and its reply.

        The document's reading is the only one.
        """
        return self.seen if reading is USUAL or self.case is None else see(self.case, reading)


def tools_of(
    record: JSON, rules: Rules
) -> tuple[tuple[ToolSpec, ...] | None, RecordProblem | None]:
    """Return a record's tools, None where it has no list of them, and why they cannot be converted.

    Where ``tools`` is absent, ``documented`` takes the deprecated ``tool_context.available_tools``.
    """
    within = as_map(record)
    listed = within.get("tools")
    if listed is None and rules == "documented":
        listed = as_map(within.get("tool_context")).get("available_tools")
    if not isinstance(listed, list):
        return None, None
    try:
        return convert([each for each in listed if isinstance(each, dict)], rules), None
    except RecordProblem as problem:
        return None, problem


def see(case: Entry, reading: Reading) -> Seen:
    """Return what the document's rules or the program make of a case."""
    record, version = case.record, reading.version
    tools, conversion = tools_of(record, version)
    truth: Truth | None = None
    fault: Fault | None = None
    answers: tuple[Response, ...] = ()
    valid, late = False, None
    try:
        calls = checked_calls(record, version)
        valid = True
        truth = strict_truth(record, calls, version, conversion)
        late = check_prompt(record, conversion, version)
        if case.reply is not ABSENT:
            answers = heard(case.reply, reading, with_tools=bool(tools))
    except ReplyProblem as problem:
        fault = Fault(category="target", code=PROCESSING_ERROR, message=str(problem))
    except RecordProblem as problem:
        stops = problem.stops or (valid and conversion is not None and conversion.stops)
        code = RUN_STOPS if stops and version == NEWEST else PROCESSING_ERROR
        fault = Fault(category="data", code=code, message=str(problem))
    if fault is None and late is not None and not reading.most_turns:
        fault = Fault(category="data", code=PROCESSING_ERROR, message=late)
    named = truth is not None if version == "documented" else valid
    offered = tuple(each.name for each in tools or ()) if named else ()
    answers = answers if fault is None else ()
    return Seen(
        truth, tools if truth is not None else None, offered, answers, fault, reading.most_turns > 0
    )


def check_prompt(
    record: Mapping[str, Any], conversion: RecordProblem | None, rules: Rules
) -> str | None:
    """Check what is sent to the model.

    The messages before the first assistant message, and the tools.
    """
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
        raise conversion
    return late


def identifier(value: Any) -> str | None:
    """Return an id as text: text that is not empty, or a whole number; None for anything else."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


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
    elif _ENVELOPE_KEYS.isdisjoint(line):
        record = line
    else:
        record = {key: value for key, value in line.items() if key not in _ENVELOPE_KEYS}
    key = line.get("id")
    if key is None and isinstance(record, dict):
        key = record.get("id")
        key = as_map(record.get("metadata")).get("id") if key is None else key
    number = key if isinstance(key, int) and not isinstance(key, bool) else None
    return Entry(record, reply_of(line), identifier(key), *_run_of(line), number)


def reply_of(line: Mapping[str, JSON]) -> JSON:
    """Return the reply a line carries under ``recorded`` or ``response``.

    ABSENT when it carries none.
    """
    for key in _REPLY_KEYS:
        if line.get(key) is not None:
            return line[key]
    return ABSENT


def _run_of(line: Mapping[str, Any]) -> tuple[str | None, int | str | None]:
    model, run = line.get("model"), line.get("run")
    whole = isinstance(run, int | str) and not isinstance(run, bool)
    return (model if isinstance(model, str) else None), (run if whole else None)


def with_reply(entry: Entry, line: JSON) -> Entry:
    """Return a dataset entry with the reply of a second file's line.

    Bare, or under ``recorded`` / ``response``.
    """
    if not isinstance(line, dict):
        return entry._replace(reply=line)
    model, run = _run_of(line)
    reply: JSON = line
    if kind_of(line) is None and any(key in line for key in _REPLY_KEYS):
        reply = reply_of(line)
    return entry._replace(reply=reply, model=model, run=run)


def build(
    entry: Entry, *, row: int, source: Source, profile: Profile, model: str | None = None
) -> Sample:
    """Return the sample of one record and its reply.

    What cannot be processed becomes a failed sample.
    """
    seen = see(entry, USUAL if profile == "upstream" else DOCUMENTED)
    native = Native(row, seen, entry if profile == "upstream" else None)
    if profile == "upstream" and seen.fault is not None:
        # The first reading without an error, where there is one: which of them counts is for the
        # grader to say.
        others = (see(entry, reading) for reading in _OTHERS)
        seen = next((each for each in others if each.fault is None), seen)
    replies = _conversation(entry, seen, profile)
    fault, truth, missing = seen.fault, seen.truth, entry.reply is ABSENT
    if missing:
        fault = Fault(category="data", code="missing_reply", message=NO_REPLY)
    record = entry.record if truth is not None else {}
    calls = tuple(call for each in replies for call in each.tool_calls)
    is_documented = profile == "documented"
    unread = _unread_calls(entry.reply, has_calls=bool(calls)) if is_documented and replies else {}
    return Sample(
        id=entry.id if entry.id is not None else str(row),
        model=entry.model or model,
        run=entry.run,
        input=truth.query if truth is not None else None,
        turns=((*_prompt(record.get("messages")), *replies),) if replies else (),
        calls=calls if replies and not unread else None,
        text=replies[-1].content if replies else None,
        tools=seen.tools,
        expected=Expectation()
        if truth is None
        else Expectation(calls=tuple(map(ExpectedCall.of, truth.calls)), text=truth.answer),
        status=Status.OK if fault is None else Status.MISSING if missing else Status.FAILED,
        error=fault,
        facets=_facets(record.get("metadata")),
        remarks=unread,
        source=source if entry.number is None else replace(source, id=entry.number),
        native=native,
    )


def _unread_calls(reply: JSON, *, has_calls: bool) -> dict[str, int]:
    """Return the remarks on calls in a reply that the document's rules do not decode."""
    turns = reply.get("turns") if isinstance(reply, dict) else None
    messages = []
    for turn in turns if isinstance(turns, list) else [reply]:
        message = turn if isinstance(turn, dict) else {"text": turn}
        content = message.get("content", message.get("text"))
        messages.append({"role": "assistant", **message, "content": content})
    return count_unread(messages, has_calls=has_calls, read=_DECODED_KEYS)


def _conversation(case: Entry, seen: Seen, profile: Profile) -> list[Message]:
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
        calls = tuple(
            call.made() for call in each.calls or ((each.call,) if each.call is not None else ())
        )
        calls = tuple(replace(call, step=step) for call in calls) if len(found) > 1 else calls
        spoken.append(Message(role="assistant", content=each.content, tool_calls=calls))
    return spoken


def _prompt(messages: JSON) -> Iterable[Message]:
    for message in messages if isinstance(messages, list) else ():
        role = message.get("role") if isinstance(message, dict) else "assistant"
        if role == "assistant":
            return
        yield Message(role=role if isinstance(role, str) else "", content=message.get("content"))


def _facets(metadata: JSON) -> dict[str, JSON]:
    known = as_map(metadata)
    kept = {key: value for key, value in known.items() if type(value) in _SCALARS}
    tags = known.get("tags")
    texts = isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)
    return {**kept, "tags": tags} if texts else kept
