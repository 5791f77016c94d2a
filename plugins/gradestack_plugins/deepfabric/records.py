"""Dataset records: the rules a record must obey, and the ground truth it holds.

A record that breaks a rule cannot be graded as recorded: it becomes a processing error, never the end of the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from gradestack import JSON, ToolCall
from gradestack.jsonio import JsonProblem, compact, decoded_at, loads, standard_loads
from gradestack_plugins.deepfabric.options import NEWEST, OLD, Rules
from gradestack_plugins.deepfabric.schemas import SchemaProblem

RECORD_KEYS: Final = frozenset(
    {"messages", "metadata", "reasoning", "tool_context", "tools", "agent_context", "structured_data"}
    | {"question", "final_answer"}
)
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_MESSAGE_KEYS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_EXECUTION_KEYS: Final = frozenset({"function_name", "arguments", "reasoning", "result"})
_CALL_ID: Final = re.compile(r"^[a-zA-Z0-9]{9}$")
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


def refuse(where: str, wanted: str, value: JSON = None) -> NoReturn:
    """Refuse a record, naming the place, what belongs there and what stands there."""
    raise RecordProblem(f"{where}: {wanted}, got {compact(value)[:80]}")


def checked_calls(record: JSON, rules: Rules) -> list[ToolCall]:
    """Return the recorded executions of a record that obeys every rule of the dataset format."""
    if not isinstance(record, dict):
        refuse("record", "must be an object", record)
    if not record.keys() <= RECORD_KEYS:
        unknown = sorted(record.keys() - RECORD_KEYS)
        raise RecordProblem(f"unknown keys {', '.join(map(repr, unknown))} (extra inputs are not permitted)")
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        refuse("messages", "must be a list of at least one message", messages)
    for message in messages:
        _check_message(message)
    calls = _executions(record.get("tool_context"), rules)
    _check_rest(record, rules)
    return calls


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


def _check_message(message: JSON) -> None:
    if not isinstance(message, dict):
        refuse("messages", "every message must be an object", message)
    role, content = message.get("role"), message.get("content")
    if len(message) == 2 and type(role) is str and type(content) is str and role in _ROLES:
        return  # nearly always
    if not message.keys() <= _MESSAGE_KEYS:
        refuse("messages", "a message may have role, content, tool_calls and tool_call_id only", sorted(message))
    if not isinstance(role, str) or role not in _ROLES:
        refuse("messages.role", "must be system, user, assistant or tool", role)
    if content is not None and not isinstance(content, str):
        refuse("messages.content", "must be text or null", content)
    _check_calls(message.get("tool_calls"))
    identifier = message.get("tool_call_id")
    if identifier is not None and not (isinstance(identifier, str) and _CALL_ID.match(identifier)):
        refuse("messages.tool_call_id", "must be exactly 9 letters or digits", identifier)


def _check_calls(calls: JSON) -> None:
    if calls is None:
        return
    if not isinstance(calls, list):
        refuse("messages.tool_calls", "must be a list", calls)
    for call in calls:
        if not isinstance(call, dict) or not call.keys() <= {"id", "type", "function"}:
            refuse("messages.tool_calls", "a call is an object of id, type and function", call)
        identifier, function = call.get("id"), call.get("function")
        if not isinstance(identifier, str) or len(identifier) != 9 or not _CALL_ID.match(identifier):
            refuse("messages.tool_calls.id", "must be exactly 9 letters or digits", identifier)
        if call.get("type", "function") != "function":
            refuse("messages.tool_calls.type", "must be 'function'", call.get("type"))
        if not isinstance(function, dict) or function.keys() != {"name", "arguments"}:
            refuse("messages.tool_calls.function", "must be an object of name and arguments", function)
        if not isinstance(function["name"], str) or not function["name"]:
            refuse("messages.tool_calls.function.name", "must be text of at least 1 character", function["name"])
        _check_unicode("messages.tool_calls.function.name", function["name"])
        arguments = function["arguments"]
        if not isinstance(arguments, dict):
            json_text("messages.tool_calls.function.arguments", arguments)


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
        value, end = decoded_at(text)
    except (ValueError, RecursionError):
        end = -1
    if end == len(text):
        return value
    try:
        return loads(text)  # surrounding white space, or a problem to be worded
    except JsonProblem as error:
        msg = f"{where}: must be valid JSON ({error})"
        raise (RunStops if isinstance(error.__cause__, RecursionError) else RecordProblem)(msg) from error


def _executions(context: JSON, rules: Rules) -> list[ToolCall]:
    """Return every execution as a call; arguments are None where the text does not hold an object."""
    if context is None:
        return []
    known = {"executions"} if rules == OLD else {"executions", "available_tools"}
    if not isinstance(context, dict) or not context.keys() <= known:
        refuse("tool_context", f"must be an object with no key but {' and '.join(sorted(known))}", context)
    executions, offered = context.get("executions", []), context.get("available_tools")
    if not isinstance(executions, list):
        refuse("tool_context.executions", "must be a list", executions)
    if offered is not None and not (isinstance(offered, list) and all(isinstance(each, dict) for each in offered)):
        refuse("tool_context.available_tools", "must be a list of objects or null", offered)
    return [_execution(execution) for execution in executions]


def _execution(execution: JSON) -> ToolCall:
    where = "tool_context.executions"
    if not isinstance(execution, dict) or execution.keys() != _EXECUTION_KEYS:
        refuse(where, "must be an object of function_name, arguments, reasoning and result", execution)
    for key, value in execution.items():
        if not isinstance(value, str) or not value:
            refuse(f"{where}.{key}", "must be text that is not empty", value)
        if not value.isascii():
            _check_unicode(f"{where}.{key}", value)
    text = execution["arguments"]
    if len(text) < 2:
        refuse(f"{where}.arguments", "must be text of at least 2 characters", text)
    arguments = json_text(f"{where}.arguments", text.strip())
    if not isinstance(arguments, dict):
        return ToolCall(name=execution["function_name"], arguments=None, raw_arguments=text)
    if None in arguments.values() or "" in arguments.values():
        refuse(f"{where}.arguments", "must have an actual value for every name", text)
    return ToolCall(name=execution["function_name"], arguments=arguments, raw_arguments=text)


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


def _check_rest(record: Mapping[str, Any], rules: Rules) -> None:
    """Check the keys that are validated whether or not grading needs them."""
    for key, value in record.items():
        if key in {"question", "final_answer"}:
            if not isinstance(value, str):
                refuse(key, "must be text", value)
        elif value is None or key in {"messages", "tool_context"}:
            continue
        elif key == "tools":
            if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                refuse(key, "must be a list of objects or null", value)
        elif key == "agent_context":
            _check_agent(value, rules, with_tools=record.get("tool_context") is not None)
        elif key == "reasoning":
            _check_reasoning(value)
        elif not isinstance(value, dict):
            refuse(key, "must be an object or null", value)


def _check_agent(context: JSON, rules: Rules, *, with_tools: bool) -> None:
    if not with_tools:
        raise RecordProblem("agent_context requires tool_context to be present")
    if not isinstance(context, dict) or not context.keys() <= {"mode", "planning_trace", "execution_summary"}:
        refuse("agent_context", "must be an object of mode, planning_trace and execution_summary", context)
    if rules == OLD or "mode" in context:
        _check_word(context.get("mode"), "agent_context.mode", _MODES[rules])
    for key in ("planning_trace", "execution_summary"):
        if context.get(key) is not None and not isinstance(context[key], str):
            refuse(f"agent_context.{key}", "must be text or null", context[key])


def _check_reasoning(reasoning: JSON) -> None:
    if not isinstance(reasoning, dict) or reasoning.keys() != {"style", "content"}:
        refuse("reasoning", "must be an object of style and content", reasoning)
    style, content = reasoning["style"], reasoning["content"]
    wanted: dict[str, Callable[[JSON], bool]] = {
        "freetext": lambda value: isinstance(value, str),
        "agent": lambda value: isinstance(value, list) and all(map(_is_step, value)),
    }
    if not isinstance(style, str) or style not in wanted:
        refuse("reasoning.style", "must be freetext or agent", style)
    if not wanted[style](content):
        refuse("reasoning.content", f"must be {'text' if style == 'freetext' else 'a list of steps'}", content)


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
