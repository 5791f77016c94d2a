"""Dataset records: the rules a record must obey, and the ground truth it holds.

A record that breaks a rule cannot be graded as recorded: it becomes a processing error, never the end of the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from gradestack import JSON, ToolCall
from gradestack.jsonio import JsonProblem, compact, loads

RECORD_KEYS: Final = frozenset(
    {
        "messages",
        "metadata",
        "reasoning",
        "tool_context",
        "tools",
        "agent_context",
        "structured_data",
        "question",
        "final_answer",
    }
)
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_MESSAGE_KEYS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_EXECUTION_KEYS: Final = frozenset({"function_name", "arguments", "reasoning", "result"})
_TEXTS: Final = frozenset({"question", "final_answer"})
_CHECKED: Final = frozenset({"messages", "tool_context"})
_CALL_ID: Final = re.compile(r"^[a-zA-Z0-9]{9}$")
_CALL_SHAPE: Final = re.compile(r"\b[a-z_][a-z0-9_]*\s*\([^)]*\)")
_METADATA_WORDS: Final = (
    ("conversation_type", frozenset({"basic", "chain_of_thought"})),
    ("reasoning_style", frozenset({"freetext", "agent", "structured", "hybrid", None})),
    ("agent_mode", frozenset({"single_turn", "multi_turn", None})),
)
_decoder: Final = json.JSONDecoder()
NO_QUERY: Final = "No user query found in conversation"


class RecordProblem(ValueError):
    """A record without usable ground truth: a processing error, with nothing known of the sample."""


class Truth(NamedTuple):
    """What a record says should happen."""

    query: str
    calls: tuple[ToolCall, ...]
    """All recorded executions; the first is the expected call, none means that no call is expected."""
    answer: str | None


def _refuse(where: str, wanted: str, value: JSON = None) -> NoReturn:
    msg = f"{where}: {wanted}, got {compact(value)[:80]}"
    raise RecordProblem(msg)


def strict_truth(record: JSON) -> Truth:
    """Return the ground truth of a record that obeys every rule of the dataset format.

    Raises:
        RecordProblem: A rule is broken, or there is no query.
    """
    if not isinstance(record, dict):
        _refuse("record", "must be an object", record)
    if not record.keys() <= RECORD_KEYS:
        unknown = sorted(record.keys() - RECORD_KEYS)
        msg = f"unknown keys {', '.join(map(repr, unknown))} (extra inputs are not permitted)"
        raise RecordProblem(msg)
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        _refuse("messages", "must be a list of at least one message", messages)
    for message in messages:
        if not _is_plain(message):
            _check_message(message)
    context = record.get("tool_context")
    calls = _executions(context) if context is not None else []
    _check_rest(record)
    query = _query(record, messages)
    if calls:
        _check_first(calls[0])
    answer = record.get("final_answer", "") or _answer(messages, with_tools=context is not None)
    if not isinstance(query, str):
        _refuse("messages", "the first user message must have text content", query)
    _check_metadata(record.get("metadata"))
    return Truth(query, tuple(calls), answer)


def _query(record: Mapping[str, Any], messages: list[dict[str, Any]]) -> JSON:
    for message in messages:
        if message["role"] == "user":
            return message.get("content")
    question = record.get("question", "")
    if question:
        return question
    raise RecordProblem(NO_QUERY)


def _is_plain(message: JSON) -> bool:
    """Return whether a message is of the common shape, text with a role, which breaks no rule."""
    return (
        type(message) is dict
        and len(message) == 2
        and type(message.get("content")) is str
        and type(role := message.get("role")) is str
        and role in _ROLES
    )


def _check_message(message: JSON) -> None:
    if not isinstance(message, dict):
        _refuse("messages", "every message must be an object", message)
    if not message.keys() <= _MESSAGE_KEYS:
        _refuse("messages", "a message may have role, content, tool_calls and tool_call_id only", sorted(message))
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in _ROLES:
        _refuse("messages.role", "must be system, user, assistant or tool", role)
    if content is not None and not isinstance(content, str):
        _refuse("messages.content", "must be text or null", content)
    _check_calls(message.get("tool_calls"))
    identifier = message.get("tool_call_id")
    if identifier is not None and not (isinstance(identifier, str) and _CALL_ID.match(identifier)):
        _refuse("messages.tool_call_id", "must be exactly 9 letters or digits", identifier)


def _check_calls(calls: JSON) -> None:
    if calls is None:
        return
    if not isinstance(calls, list):
        _refuse("messages.tool_calls", "must be a list", calls)
    for call in calls:
        if not isinstance(call, dict) or not call.keys() <= {"id", "type", "function"}:
            _refuse("messages.tool_calls", "a call is an object of id, type and function", call)
        identifier, function = call.get("id"), call.get("function")
        if not isinstance(identifier, str) or len(identifier) != 9 or not _CALL_ID.match(identifier):
            _refuse("messages.tool_calls.id", "must be exactly 9 letters or digits", identifier)
        if call.get("type", "function") != "function":
            _refuse("messages.tool_calls.type", "must be 'function'", call.get("type"))
        if not isinstance(function, dict) or function.keys() != {"name", "arguments"}:
            _refuse("messages.tool_calls.function", "must be an object of name and arguments", function)
        if not isinstance(function["name"], str) or not function["name"]:
            _refuse("messages.tool_calls.function.name", "must be text of at least 1 character", function["name"])
        _check_unicode("messages.tool_calls.function.name", function["name"])
        arguments = function["arguments"]
        if not isinstance(arguments, dict):
            _json_text("messages.tool_calls.function.arguments", arguments)


def _check_unicode(where: str, text: str) -> None:
    """Refuse lone surrogates where the original measures a text's length, which it does on valid Unicode only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(where, "must be text without lone surrogates", text)


def _json_text(where: str, text: JSON) -> JSON:
    if not isinstance(text, str):
        _refuse(where, "must be JSON text", text)
    try:
        value, end = _decoder.raw_decode(text)
    except (ValueError, RecursionError):
        end = -1
    if end == len(text):
        return value
    try:
        return loads(text)  # surrounding white space, or a problem to be worded
    except JsonProblem as error:
        msg = f"{where}: must be valid JSON ({error})"
        raise RecordProblem(msg) from error


def _executions(context: JSON) -> list[ToolCall]:
    """Return every execution as a call; arguments are None where the text does not hold an object."""
    if not isinstance(context, dict) or not context.keys() <= {"executions"}:
        _refuse("tool_context", "must be an object with no key but executions", context)
    executions = context.get("executions", [])
    if not isinstance(executions, list):
        _refuse("tool_context.executions", "must be a list", executions)
    return [_execution(execution) for execution in executions]


def _execution(execution: JSON) -> ToolCall:
    where = "tool_context.executions"
    if not isinstance(execution, dict) or execution.keys() != _EXECUTION_KEYS:
        _refuse(where, "must be an object of function_name, arguments, reasoning and result", execution)
    for key, value in execution.items():
        if not isinstance(value, str) or not value:
            _refuse(f"{where}.{key}", "must be text that is not empty", value)
        if not value.isascii():
            _check_unicode(f"{where}.{key}", value)
    text = execution["arguments"]
    if len(text) < 2:
        _refuse(f"{where}.arguments", "must be text of at least 2 characters", text)
    arguments = _json_text(f"{where}.arguments", text.strip())
    if not isinstance(arguments, dict):
        return ToolCall(name=execution["function_name"], arguments=None, raw_arguments=text)
    if None in arguments.values() or "" in arguments.values():
        _refuse(f"{where}.arguments", "must have an actual value for every name", text)
    return ToolCall(name=execution["function_name"], arguments=arguments, raw_arguments=text)


def _check_first(call: ToolCall) -> None:
    """Check that the expected call's arguments are an object, and no white space but JSON's surrounds them."""
    text = call.raw_arguments or ""
    if call.arguments is None:
        _refuse("tool_context.executions[0].arguments", "must hold a JSON object", text)
    if not (text[0] == "{" and text[-1] == "}") and text.strip() != text.strip(" \t\n\r"):
        _json_text("tool_context.executions[0].arguments", text)


def _answer(messages: list[dict[str, Any]], *, with_tools: bool) -> str | None:
    """Return the last assistant message; with tools, the last one that does not look like a call, if there is one."""
    spoken = [message.get("content") for message in messages if message["role"] == "assistant"]
    spoken.reverse()
    if with_tools:
        for content in spoken:
            if not isinstance(content, str):
                msg = f"argument of type '{type(content).__name__}' is not iterable"
                raise RecordProblem(msg)
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
            data = json.loads(content)
        except json.JSONDecodeError:
            pass
        except (RecursionError, ValueError) as error:
            raise RecordProblem(str(error)) from error
        else:
            if "tool_calls" in data or "function_call" in data:
                return True
    return "(" in content and _CALL_SHAPE.search(content.lower()) is not None


def _check_metadata(metadata: JSON) -> None:
    for key, words in _METADATA_WORDS if metadata else ():
        word = metadata.get(key, "basic" if key == "conversation_type" else None)
        if not (isinstance(word, str) or word is None) or word not in words:
            _refuse(f"metadata.{key}", f"must be one of {', '.join(sorted(map(str, words - {None})))}", word)


def _check_rest(record: Mapping[str, Any]) -> None:
    """Check the keys that are validated whether or not grading needs them."""
    for key, value in record.items():
        if key in _TEXTS:
            if not isinstance(value, str):
                _refuse(key, "must be text", value)
        elif value is None or key in _CHECKED:
            continue
        elif key == "tools":
            if not isinstance(value, list):
                _refuse(key, "must be a list or null", value)
        elif key == "agent_context":
            _check_agent(value, with_tools=record.get("tool_context") is not None)
        elif key == "reasoning":
            _check_reasoning(value)
        elif not isinstance(value, dict):
            _refuse(key, "must be an object or null", value)


def _check_agent(context: JSON, *, with_tools: bool) -> None:
    if not with_tools:
        msg = "agent_context requires tool_context to be present"
        raise RecordProblem(msg)
    if not isinstance(context, dict) or not context.keys() <= {"mode", "planning_trace", "execution_summary"}:
        _refuse("agent_context", "must be an object of mode, planning_trace and execution_summary", context)
    if context.get("mode") not in ("single_turn", "multi_turn"):
        _refuse("agent_context.mode", "must be single_turn or multi_turn", context.get("mode"))
    for key in ("planning_trace", "execution_summary"):
        if context.get(key) is not None and not isinstance(context[key], str):
            _refuse(f"agent_context.{key}", "must be text or null", context[key])


def _check_reasoning(reasoning: JSON) -> None:
    if not isinstance(reasoning, dict) or reasoning.keys() != {"style", "content"}:
        _refuse("reasoning", "must be an object of style and content", reasoning)
    style, content = reasoning["style"], reasoning["content"]
    wanted: dict[str, Callable[[JSON], bool]] = {
        "freetext": lambda value: isinstance(value, str),
        "agent": lambda value: isinstance(value, list) and all(map(_is_step, value)),
    }
    if not isinstance(style, str) or style not in wanted:
        _refuse("reasoning.style", "must be freetext or agent", style)
    if not wanted[style](content):
        _refuse("reasoning.content", f"must be {'text' if style == 'freetext' else 'a list of steps'}", content)


def _is_step(step: JSON) -> bool:
    if not isinstance(step, dict) or not isinstance(step.get("thought"), str):
        return False
    number, action = step.get("step_number"), step.get("action")
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    if isinstance(number, str):
        whole = re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0*)?\s*", number) is not None
    return whole and (action is None or isinstance(action, str))


def lenient_truth(record: JSON) -> Truth:
    """Return the ground truth as far as the record has one; rules that grading does not depend on are not checked.

    Expected arguments may be an object too.

    Raises:
        RecordProblem: The record is not an object, or an execution names no tool or holds no argument object.
    """
    if not isinstance(record, dict):
        _refuse("record", "must be an object", record)
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
        _refuse("tool_context.executions", "an execution must name its function", execution)
    raw = execution.get("arguments")
    arguments = _json_text("tool_context.executions.arguments", raw) if isinstance(raw, str) else raw
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        _refuse("tool_context.executions.arguments", "must hold a JSON object", raw)
    return ToolCall(name=name, arguments=arguments, raw_arguments=raw if isinstance(raw, str) else None)
