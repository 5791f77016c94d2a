"""Extractors of assistant messages, tool calls and memory: what text graders are given."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache

import attrs
from typing_extensions import override

from gradestack import JSON, Extractor, Message, Sample, ToolCall
from gradestack.jsonio import as_map, as_text, compact
from gradestack_plugins.readers.chat import answers, text_of


def speech(messages: Iterable[Message]) -> list[str]:
    """Return what the assistant said, in order: "" of an empty message, nothing of one that only carries calls.

    Content given as parts is joined with spaces.
    """
    said = [(text_of(message.content), message) for message in messages if message.role == "assistant"]
    return [text for text, message in said if text or not message.tool_calls]


def messages_of(sample: Sample) -> list[Message]:
    """Return the messages of all turns."""
    return [message for turn in sample.turns for message in turn]


def assistant_texts(sample: Sample) -> list[str]:
    """Return what the assistant said; without any recorded message, the sample's answer text alone."""
    if messages := messages_of(sample):
        return speech(messages)
    return [] if sample.text is None else [sample.text]


def first_call(sample: Sample, tool: str) -> tuple[ToolCall, list[Message]] | None:
    """Return the first call of a tool with the messages behind it, None when there is none.

    Calls are those of the messages; where no message carries any, the sample's own list of calls is used.
    """
    messages = messages_of(sample)
    if not any(message.tool_calls for message in messages):
        return next(((call, messages) for call in sample.calls or () if call.name == tool), None)
    numbered = enumerate(messages, 1)
    return next(
        ((call, messages[at:]) for at, message in numbered for call in message.tool_calls if call.name == tool), None
    )


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
    answer = next((message for message in later if answers(message, call)), None)
    if answer is not None and call.id is not None:
        return written(answer.content)
    if call.result is not None:
        return written(call.result)
    if call.error is not None:
        return call.error
    return "" if answer is None else written(answer.content)


def written(value: JSON) -> str:
    """Return text as it is, a list with text parts as those parts, None as "", any other value as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else text_of(value) or compact(value)


@attrs.frozen(kw_only=True)
class LastAssistant(Extractor):
    """Takes the text of the last assistant message, "" when there is none.

    Messages that only carry tool calls are no texts. Content given as parts is joined with spaces. A sample without
    any recorded message gives its answer text.
    """

    @override
    def extract(self, sample: Sample) -> str:
        return next(reversed(assistant_texts(sample)), "")


@attrs.frozen(kw_only=True)
class FirstAssistant(Extractor):
    """Takes the text of the first assistant message, "" when there is none."""

    @override
    def extract(self, sample: Sample) -> str:
        return next(iter(assistant_texts(sample)), "")


@attrs.frozen(kw_only=True)
class AllAssistant(Extractor):
    """Takes the texts of all assistant messages of all turns, joined.

    Attributes:
        separator: Stands between two messages.
    """

    separator: str = "\n"

    @override
    def extract(self, sample: Sample) -> str:
        return self.separator.join(assistant_texts(sample))


@attrs.frozen(kw_only=True)
class LastTurn(Extractor):
    """Takes the texts of the last turn's assistant messages, joined; "" when that turn has none.

    Attributes:
        separator: Stands between two messages.
    """

    separator: str = "\n"

    @override
    def extract(self, sample: Sample) -> str:
        if not any(sample.turns):
            return sample.text or ""
        return self.separator.join(speech(sample.turns[-1]))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a pattern may come to mean in a later Python is no concern of the run
        return re.compile(pattern)


@attrs.frozen(kw_only=True)
class Pattern(Extractor):
    """Takes what a regular expression finds, "" when it matches no assistant message.

    The newest message it matches anywhere counts. By default the text of ``group`` of the first match; with
    ``search_all`` all matches of that message, joined by a space. A pattern with several groups gives one tuple per
    match there, of which ``group`` is the element, counted from zero; a pattern with one group gives that group, one
    without groups the whole match. A group that takes no part in the match is "".

    A pattern that backtracks without end costs its grade, which takes too long (``limits.seconds_per_grade``).

    Attributes:
        pattern: Regular expression, in Python's syntax.
        group: Which group is taken; 0 is the whole match.
        search_all: Take all matches of the message.
    """

    pattern: str
    group: int = 0
    search_all: bool = False

    def __attrs_post_init__(self) -> None:
        try:
            groups = _compiled(self.pattern).groups
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"pattern {self.pattern!r} is not a regular expression: {error}") from error
        highest = max(groups - 1, 0) if self.search_all and groups > 1 else groups
        ignored = self.search_all and groups <= 1
        if not ignored and not 0 <= self.group <= highest:
            counted = "element of the tuples" if self.search_all else "group of the pattern"
            raise ValueError(f"group {self.group} is no {counted}; there are 0 to {highest}")

    @override
    def extract(self, sample: Sample) -> str:
        pattern = _compiled(self.pattern)
        for text in reversed(assistant_texts(sample)):
            if self.search_all:
                matches = pattern.findall(text)
                if matches:
                    return " ".join(match[self.group] if isinstance(match, tuple) else match for match in matches)
            elif match := pattern.search(text):
                return match.group(self.group) or ""
        return ""


@attrs.frozen(kw_only=True)
class AfterMarker(Extractor):
    """Takes what follows the first occurrence of a marker, stripped, "" when no assistant message holds it.

    The newest message that holds the marker counts.

    Attributes:
        marker: Literal text, matched case-sensitively.
        include_marker: Keep the marker itself.
    """

    marker: str
    include_marker: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.marker:
            raise ValueError("marker is empty: name the text that stands before the answer")

    @override
    def extract(self, sample: Sample) -> str:
        for text in reversed(assistant_texts(sample)):
            _before, marker, after = text.partition(self.marker)
            if marker:
                return (marker + after if self.include_marker else after).strip()
        return ""


@attrs.frozen(kw_only=True)
class ToolArguments(Extractor):
    """Takes the argument text of the first call of a tool in the whole conversation, "{}" when it was never called.

    The text is the recorded one; where an object was recorded, its JSON in its own key order.

    Attributes:
        tool_name: Name of the tool.
    """

    tool_name: str

    @override
    def extract(self, sample: Sample) -> str:
        found = first_call(sample, self.tool_name)
        return "{}" if found is None else argument_text(found[0])


@attrs.frozen(kw_only=True)
class ToolOutput(Extractor):
    """Takes what the first call of a tool returned, "" when it was never called or nothing came back.

    Call and return belong together by the call's id; without ids, the next return is taken. Values that are no text are
    written as JSON.

    Attributes:
        tool_name: Name of the tool.
    """

    tool_name: str

    @override
    def extract(self, sample: Sample) -> str:
        found = first_call(sample, self.tool_name)
        return "" if found is None else output_text(*found)


PLACES: tuple[tuple[str, ...], ...] = (
    ("memory_blocks",),
    ("agent_state", "memory", "blocks"),
    ("agent_state", "blocks"),
)
"""Where ``Sample.recorded`` may hold memory: a list of ``{label, value}`` or an object, label -> value."""


@attrs.frozen(kw_only=True)
class MemoryBlock(Extractor):
    """Takes a memory block of the agent's final state, "" when the agent has no block of that label.

    The state is not part of a recorded result as letta-evals writes it: it was read from the live agent. So extraction
    fails, sample by sample, unless the recording carries the memory: ``memory_blocks`` or ``agent_state`` in its
    ``recorded`` values, as a list of ``{"label": ..., "value": ...}`` or as an object label -> value.

    Attributes:
        block_label: Label of the block.
    """

    block_label: str

    @override
    def extract(self, sample: Sample) -> str:
        for place in PLACES:
            blocks: JSON = sample.recorded
            for step in place:
                blocks = as_map(blocks).get(step)
            if isinstance(blocks, list | tuple):
                labelled = (as_map(block) for block in blocks)
                block = next((each for each in labelled if each.get("label") == self.block_label), {})
                return as_text(block.get("value"))
            if isinstance(blocks, Mapping):
                return as_text(blocks.get(self.block_label))
        raise LookupError(
            f"memory block {self.block_label!r} needs the agent's state, which this recording does not hold; "
            "record it as memory_blocks or extract from messages instead"
        )
