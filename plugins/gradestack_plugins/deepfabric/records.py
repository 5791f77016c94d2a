"""Dataset records: the rules of the format, and the ground truth in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec

from gradestack import JSON, ToolCall, compile_later
from gradestack.jsonio import JsonProblem, compact, loads, standard_loads

CALL_ID: Final = "^[a-zA-Z0-9]{9}"
CALL_SHAPE: Final = compile_later(r"\b[a-z_][a-z0-9_]*\s*\([^)]*\)")
METADATA_WORDS: Final = {
    "conversation_type": ("basic", "chain_of_thought", "cot"),
    "reasoning_style": (None, "agent", "freetext", "hybrid", "structured"),
    "agent_mode": (None, "multi_turn", "single_turn"),
}


class RecordProblem(ValueError):
    """A broken rule of a record, which makes its sample a processing error."""


class GroundTruth(msgspec.Struct, frozen=True):
    """Query, expected calls and expected answer of a record."""

    query: str
    calls: tuple[ToolCall, ...]
    """All recorded executions.

    The first is the expected call, none means that no call is expected.
    """
    answer: str | None


Text = Annotated[str, msgspec.Meta(min_length=1)]
Objects = list[dict[str, Any]]


class Function(msgspec.Struct, forbid_unknown_fields=True):
    """The function of a recorded call."""

    name: Text
    arguments: Any


class RecordedCall(msgspec.Struct, forbid_unknown_fields=True):
    """A call in a message, which is not what is expected."""

    id: Annotated[str, msgspec.Meta(pattern=CALL_ID, max_length=9)]
    function: Function
    type: Literal["function"] = "function"


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """A message of a record; its content may be missing, which is not null."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | msgspec.UnsetType | None = msgspec.UNSET
    tool_calls: list[RecordedCall] | None = None
    tool_call_id: Annotated[str, msgspec.Meta(pattern=f"{CALL_ID}$")] | None = None

    @property
    def text(self) -> str | None:
        """The content, None where it is missing."""
        return self.content if isinstance(self.content, str) else None


class Execution(msgspec.Struct, forbid_unknown_fields=True):
    """An expected call."""

    function_name: Text
    arguments: Annotated[str, msgspec.Meta(min_length=2)]
    reasoning: Text
    result: Text


class ToolContext(msgspec.Struct, forbid_unknown_fields=True):
    """The expected calls, and the deprecated place of tools."""

    executions: list[Execution] = []
    available_tools: Objects | None = None


class Step(msgspec.Struct):
    """A step of an agent's reasoning."""

    thought: str
    step_number: bool | float | str
    action: str | None = None


class FreeText(msgspec.Struct, forbid_unknown_fields=True, tag_field="style", tag="freetext"):
    """Reasoning in words."""

    content: str


class Steps(msgspec.Struct, forbid_unknown_fields=True, tag_field="style", tag="agent"):
    """Reasoning in numbered steps."""

    content: list[Step]


class Agent(msgspec.Struct, forbid_unknown_fields=True):
    """The way an agent worked."""

    mode: Literal["multi_turn", "single_turn"] = "single_turn"
    planning_trace: str | None = None
    execution_summary: str | None = None


class Record(msgspec.Struct, forbid_unknown_fields=True):
    """A record of a dataset."""

    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    metadata: dict[str, Any] | None = None
    reasoning: FreeText | Steps | None = None
    tool_context: ToolContext | None = None
    tools: Objects | None = None
    agent_context: Agent | None = None
    structured_data: dict[str, Any] | None = None
    question: str = ""
    final_answer: str = ""

    @property
    def prompt(self) -> Iterator[Message]:
        """The messages that are sent to the model: those before the first assistant message."""
        return takewhile(lambda message: message.role != "assistant", self.messages)


RECORD_KEYS: Final = frozenset(Record.__struct_fields__)


def parse_record(value: JSON) -> Record:
    """Return a record that obeys the rules of the format, but for its texts.

    Raises:
        RecordProblem: It does not.
    """
    try:
        record = msgspec.convert(value, Record)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise RecordProblem(str(error)) from error
    for message in record.messages:
        for call in message.tool_calls or ():
            where, arguments = "messages.tool_calls.function", call.function.arguments
            _check_unicode(f"{where}.name", call.function.name)
            if not isinstance(arguments, dict):
                parse_text(f"{where}.arguments", arguments)
    if record.agent_context is not None and record.tool_context is None:
        raise RecordProblem("agent_context requires tool_context to be present")
    if isinstance(record.reasoning, Steps):
        for step in record.reasoning.content:
            if not _is_whole(step.step_number):
                refuse("reasoning.content", "must be a list of numbered steps", step.step_number)
    return record


def _is_whole(number: Any) -> bool:
    if isinstance(number, str):
        return re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0*)?\s*", number) is not None
    return bool(number % 1 == 0)


def refuse(where: str, wanted: str, value: JSON = None) -> NoReturn:
    """Refuse a record: the place, what belongs there, and what stands there."""
    raise RecordProblem(f"{where}: {wanted}, got {compact(value)[:80]}")


def _check_unicode(where: str, text: str) -> None:
    """Refuse lone surrogates where DeepFabric measures a text's length, of valid Unicode only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        refuse(where, "must be text without lone surrogates", text)


def parse_text(where: str, text: JSON) -> JSON:
    """Decode JSON text; refuse the record, naming the field, where it is not valid."""
    if not isinstance(text, str):
        refuse(where, "must be JSON text", text)
    try:
        return loads(text)
    except JsonProblem as error:
        raise RecordProblem(f"{where}: must be valid JSON ({error})") from error


ARGUMENTS: Final = "tool_context.executions.arguments"


def read_calls(record: Record) -> list[ToolCall]:
    """Return the executions of a record, without arguments where their text holds no object.

    Raises:
        RecordProblem: One breaks a rule of the format.
    """
    calls = []
    for execution in record.tool_context.executions if record.tool_context is not None else ():
        for key in execution.__struct_fields__:
            _check_unicode(f"tool_context.executions.{key}", getattr(execution, key))
        text = execution.arguments
        arguments: Any = parse_text(ARGUMENTS, text.strip())
        if not isinstance(arguments, dict):
            arguments = None
        elif None in arguments.values() or "" in arguments.values():
            refuse(ARGUMENTS, "must have an actual value for every name", text)
        name = execution.function_name
        tool_call = ToolCall(name=name, arguments=arguments, raw_arguments=text)
        calls.append(tool_call)
    return calls


def check_expected(call: ToolCall) -> None:
    """Refuse expected arguments that are no object; JSON's own white space may surround them."""
    text = call.raw_arguments or ""
    if text.strip() != text.strip(" \t\n\r"):
        parse_text(ARGUMENTS, text)
    if call.arguments is None:
        refuse(ARGUMENTS, "must hold a JSON object", text)


def read_truth(record: Record, calls: list[ToolCall]) -> GroundTruth:
    """Return the ground truth of a record.

    Raises:
        RecordProblem: It has no query, or a word that is not known.
    """
    questions = [message.text for message in record.messages if message.role == "user"]
    if not questions and not record.question:
        raise RecordProblem("No user query found in conversation")
    query = questions[0] if questions else record.question
    for call in calls[:1]:
        check_expected(call)
    answer = record.final_answer or _last_answer(record)
    if query is None:
        refuse("messages", "the first user message must have text content")
    metadata = record.metadata or {}
    for key, words in METADATA_WORDS.items():
        word = metadata.get(key, words[0])
        check_word(f"metadata.{key}", word, words)
    return GroundTruth(query, tuple(calls), answer)


def check_word(where: str, word: JSON, words: tuple[JSON, ...]) -> None:
    """Refuse a word that is none of those known."""
    if word not in words:
        known = ", ".join(filter(None, words))
        refuse(where, f"must be one of {known}", word)


def _last_answer(record: Record) -> str | None:
    """Return the last assistant message.

    Where there are tools, the last one that does not look like a call, if there is one.
    """
    messages = reversed(record.messages)
    contents = [message.text for message in messages if message.role == "assistant"]
    if record.tool_context is not None:
        for content in contents:
            if content is None:
                raise RecordProblem("argument of type 'NoneType' is not iterable")
            if not looks_like_call(content):
                return content
    return contents[0] if contents else None


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
            data = ()
        except (RecursionError, ValueError) as error:
            raise RecordProblem(str(error)) from error
        if "tool_calls" in data or "function_call" in data:
            return True
    return "(" in content and CALL_SHAPE.search(content.lower()) is not None
