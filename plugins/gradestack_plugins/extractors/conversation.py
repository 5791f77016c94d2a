"""What extractors look at: the assistant's messages, the calls, and what the tools returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradestack import JSON, Message, Sample, ToolCall
from gradestack.jsonio import compact
from gradestack_plugins.readers.chat import text_of


def assistant_text(message: Message) -> str | None:
    """Return what an assistant message says: "" for an empty one, None when it is no speech of the assistant.

    Content given as parts is joined with spaces. A message that only carries tool calls says nothing.
    """
    if message.role != "assistant":
        return None
    text = text_of(message.content)
    return None if not text and message.tool_calls else text


def assistant_texts(sample: Sample) -> list[str]:
    """Return what the assistant said, in order; without any recorded message, the sample's answer text alone."""
    messages = [message for turn in sample.turns for message in turn]
    if not messages:
        return [] if sample.text is None else [sample.text]
    return [text for message in messages if (text := assistant_text(message)) is not None]


def turn_texts(turn: Iterable[Message]) -> list[str]:
    """Return what the assistant said in one turn."""
    return [text for message in turn if (text := assistant_text(message)) is not None]


def calls_in_turns(sample: Sample) -> Iterator[tuple[ToolCall, Message, list[Message]]]:
    """Yield every call with its message and all messages behind that one, over all turns."""
    messages = [message for turn in sample.turns for message in turn]
    for position, message in enumerate(messages):
        for call in message.tool_calls:
            yield call, message, messages[position + 1 :]


def first_call(sample: Sample, tool: str) -> tuple[ToolCall, list[Message]] | None:
    """Return the first call of a tool with the messages behind it, None when there is none.

    Calls are those of the messages; where no message carries any, the sample's own list of calls is used.
    """
    some = False
    for call, _, later in calls_in_turns(sample):
        some = True
        if call.name == tool:
            return call, later
    if not some:
        for call in sample.calls or ():
            if call.name == tool:
                return call, [message for turn in sample.turns for message in turn]
    return None


def argument_text(call: ToolCall) -> str:
    """Return a call's arguments as recorded, or as JSON in their own key order where an object was recorded."""
    if call.raw_arguments is not None:
        return call.raw_arguments
    return "" if call.arguments is None else compact(dict(call.arguments))


def output_text(call: ToolCall, later: Iterable[Message]) -> str:
    """Return what a call returned, "" when nothing was recorded.

    A tool message with the call's id; else the result noted with the call; else, for a call without id, the next tool
    message that has none either and does not name another tool.
    """
    answers = [message for message in later if message.role == "tool"]
    if call.id is not None:
        for message in answers:
            if message.tool_call_id == call.id:
                return as_text(message.content)
    if call.result is not None:
        return as_text(call.result)
    if call.error is not None:
        return call.error
    if call.id is None:
        for message in answers:
            if message.tool_call_id is None and message.name in (None, call.name):
                return as_text(message.content)
    return ""


def as_text(value: JSON) -> str:
    """Return text as it is, a list with text parts as those parts, None as "", any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else text_of(value) or compact(value)
