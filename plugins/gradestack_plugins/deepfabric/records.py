"""Dataset records: the rules a record must obey, and the ground truth it holds.

A record that breaks a rule cannot be graded as recorded: it becomes a processing error, never the end of the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, NoReturn

import msgspec

from gradestack import JSON, ToolCall
from gradestack.jsonio import JsonProblem, compact, loads, standard_loads
from gradestack_plugins.deepfabric.options import NEWEST, OLD, Rules
from gradestack_plugins.deepfabric.schemas import SchemaProblem

_CALL_ID: Final = "^[a-zA-Z0-9]{9}"
_CALL_SHAPE: Final = re.compile(r"\b[a-z_][a-z0-9_]*\s*\([^)]*\)")
_STYLES: Final = frozenset({"freetext", "agent", "structured", "hybrid"})
_TYPES: Final[Mapping[Rules, frozenset[str]]] = {
    "documented": frozenset({"basic", "chain_of_thought", "cot"}),
    "4.13": frozenset({"basic", "chain_of_thought", "cot"}),
    "4.3": frozenset({"basic", "chain_of_thought"}),
}
_MODES: Final[Mapping[Rules, frozenset[str]]] = {
    "documented": frozenset({"single_turn", "multi_turn"}),
    "4.13": frozenset({"single_turn"}),
    "4.3": frozenset({"single_turn", "multi_turn"}),
}
NO_QUERY: Final = "No user query found in conversation"


class RecordProblem(ValueError):
    """A record without usable ground truth: a processing error, with nothing known of the sample."""

    stops = False
    """Whether the newest program stops on it instead of counting it."""


class RunStops(RecordProblem):
    """A record that ends a run of the newest program, which then writes no result."""

    stops = True


class Truth(NamedTuple):
    """What a record says should happen."""

    query: str
    calls: tuple[ToolCall, ...]
    """All recorded executions; the first is the expected call, none means that no call is expected."""
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
    available_tools: list[dict[str, Any]] | msgspec.UnsetType | None = msgspec.UNSET
    """Unknown to version 4.3."""


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
    """A record, but for what its texts hold; of an object that is only looked at, that it is one, is checked apart."""

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
    """Return the executions of a record that obeys the format; arguments are None where their text holds no object."""
    if not isinstance(record, dict):
        refuse("record", "must be an object", record)
    if not record.keys() <= RECORD_KEYS:
        unknown = sorted(record.keys() - RECORD_KEYS)
        raise RecordProblem(f"unknown keys {', '.join(map(repr, unknown))} (extra inputs are not permitted)")
    tools = record.get("tools")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(each, dict) for each in tools)):
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
        refuse("tool_context", "must be an object with no key but executions", record["tool_context"])
    calls = [_execution(each) for each in context.executions] if context is not None else []
    _check_rest(record, found, rules)
    return calls


def _check_rest(record: Mapping[str, Any], found: _Record, rules: Rules) -> None:
    """Check what is validated though grading does not need it."""
    agent, reasoning = found.agent_context, found.reasoning
    if agent is not None and found.tool_context is None:
        raise RecordProblem("agent_context requires tool_context to be present")
    if agent is not None and (rules == OLD or agent.mode is not msgspec.UNSET):
        _check_word(record["agent_context"].get("mode"), "agent_context.mode", _MODES[rules])
    if reasoning is not None:
        steps = reasoning.content
        listed = not isinstance(steps, str) and all(_is_whole(each.step_number) for each in steps)
        if not (listed if reasoning.style == "agent" else isinstance(steps, str)):
            wanted = "text" if reasoning.style == "freetext" else "a list of numbered steps"
            refuse("reasoning.content", f"must be {wanted}", record["reasoning"]["content"])


def _check_unicode(where: str, text: str) -> None:
    """Refuse lone surrogates where the original measures a text's length, which it does on valid Unicode only."""
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
        msg = f"{where}: must be valid JSON ({error})"
        raise (RunStops if isinstance(error.__cause__, RecursionError) else RecordProblem)(msg) from error


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
    record: Mapping[str, Any], calls: list[ToolCall], rules: Rules, conversion: SchemaProblem | None = None
) -> Truth:
    """Return the ground truth of a record that obeys the rules of the dataset format."""
    messages, context = record["messages"], record.get("tool_context")
    metadata = record.get("metadata") or {}
    if rules == NEWEST and isinstance(word := metadata.get("conversation_type"), list | dict):
        raise RunStops(f"unhashable type: '{type(word).__name__}'")
    asked = [message.get("content") for message in messages if message["role"] == "user"]
    query: JSON = asked[0] if asked else record.get("question", "")
    if not asked and not query:
        raise RunStops(NO_QUERY)
    for call in calls if rules == NEWEST else calls[:1]:
        _check_expected(call)
    if conversion is not None and calls:
        raise (RunStops if conversion.stops else RecordProblem)(str(conversion))
    answer = record.get("final_answer", "") or _answer(messages, with_tools=context is not None)
    if not isinstance(query, str):
        refuse("messages", "the first user message must have text content", query)
    if metadata:
        _check_word(metadata.get("conversation_type", "basic"), "metadata.conversation_type", _TYPES[rules])
    for key, words in (("reasoning_style", _STYLES), ("agent_mode", _MODES[rules])):
        if metadata.get(key) is not None:
            _check_word(metadata[key], f"metadata.{key}", words)
    return Truth(query, tuple(calls), answer)


def _check_expected(call: ToolCall) -> None:
    """Check that an expected call's arguments are an object, and no white space but JSON's surrounds them."""
    text = call.raw_arguments or ""
    if not (text[0] == "{" and text[-1] == "}") and text.strip() != text.strip(" \t\n\r"):
        try:
            json_text("tool_context.executions.arguments", text)
        except RecordProblem as problem:
            raise RunStops(str(problem)) from problem
    if call.arguments is None:
        refuse("tool_context.executions.arguments", "must hold a JSON object", text)


def _answer(messages: list[dict[str, Any]], *, with_tools: bool) -> str | None:
    """Return the last assistant message; with tools, the last one that does not look like a call, if there is one."""
    spoken = [message.get("content") for message in messages if message["role"] == "assistant"]
    spoken.reverse()
    if with_tools:
        for content in spoken:
            if not isinstance(content, str):
                raise RunStops(f"argument of type '{type(content).__name__}' is not iterable")
            if not looks_like_call(content):
                return content
    return spoken[0] if spoken else None


def looks_like_call(content: str) -> bool:
    """Return whether an assistant message reads as a tool call.

    It does when it holds ``tool_call`` tags, is JSON with ``tool_calls`` (or names them and has ``function_call``), or
    holds an identifier followed by parentheses, so that "Cost (net) is 4" counts too.
    """
    if "<tool_call>" in content or "</tool_call>" in content:
        return True
    if "{" in content and "tool_calls" in content:
        try:
            data = standard_loads(content)
        except json.JSONDecodeError:
            pass
        except (RecursionError, ValueError) as error:
            raise RunStops(str(error)) from error
        else:
            if "tool_calls" in data or "function_call" in data:
                return True
    return "(" in content and _CALL_SHAPE.search(content.lower()) is not None


def _check_word(word: JSON, where: str, words: frozenset[str]) -> None:
    if not isinstance(word, str) or word not in words:
        refuse(where, f"must be one of {', '.join(sorted(words))}", word)


def lenient_truth(record: JSON) -> Truth:
    """Return the ground truth as far as the record has one; rules that grading does not depend on are not checked.

    Expected arguments may be an object too.
    """
    if not isinstance(record, dict):
        refuse("record", "must be an object", record)
    listed = record.get("messages")
    messages = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    asked = [entry.get("content") for entry in messages if entry.get("role") == "user"]
    query = next((text for text in (*asked[:1], record.get("question")) if isinstance(text, str)), "")
    spoken = [entry.get("content") for entry in reversed(messages) if entry.get("role") == "assistant"]
    texts = [text for text in spoken if isinstance(text, str)]
    context = record.get("tool_context")
    executions = context.get("executions") if isinstance(context, dict) else None
    calls = tuple(_lenient_call(entry) for entry in executions) if isinstance(executions, list) else ()
    answer = record.get("final_answer")
    if not isinstance(answer, str) or not answer:
        plain = (text for text in texts if not looks_like_call(text)) if context else iter(())
        answer = next(plain, texts[0] if texts else None)
    return Truth(query, calls, answer)


def _lenient_call(execution: JSON) -> ToolCall:
    name = execution.get("function_name") if isinstance(execution, dict) else None
    if not isinstance(name, str) or not name:
        refuse("tool_context.executions", "an execution must name its function", execution)
    raw = execution.get("arguments")
    arguments = json_text("tool_context.executions.arguments", raw) if isinstance(raw, str) else raw
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        refuse("tool_context.executions.arguments", "must hold a JSON object", raw)
    return ToolCall(name=name, arguments=arguments, raw_arguments=raw if isinstance(raw, str) else None)
