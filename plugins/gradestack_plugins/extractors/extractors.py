"""Extractors of the submission from assistant messages, tool calls and memory."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

import attrs
from typing_extensions import override

from gradestack import JSON, Extractor, Message, Sample, ToolCall
from gradestack.jsonio import as_map, as_text, compact
from gradestack_plugins.readers.chat import answers, text_of


def speech(messages: Iterable[Message]) -> list[str]:
    """Return the texts of the assistant's messages, in order.

    "" for an empty message, nothing for one that only carries calls. Content that is a list of
    parts is joined with spaces.
    """
    replies = [message for message in messages if message.role == "assistant"]
    texts = [(text_of(reply.content), reply) for reply in replies]
    return [text for text, reply in texts if text or not reply.tool_calls]


def assistant_texts(sample: Sample) -> list[str]:
    """Return the texts of the assistant's messages; without messages the sample's answer text."""
    if any(sample.turns):
        return speech(chain(*sample.turns))
    return [] if sample.text is None else [sample.text]


def first_call(sample: Sample, tool: str) -> tuple[ToolCall, list[Message]] | None:
    """Return the first call of a tool with the messages behind it, None when there is none.

    Calls are those of the messages; where no message carries any, the sample's own list of calls is
    used.
    """
    messages = list(chain(*sample.turns))
    calls = [
        (position, call)
        for position, message in enumerate(messages, 1)
        for call in message.tool_calls
    ]
    if not calls:
        calls = [(0, call) for call in sample.calls or ()]
    for position, call in calls:
        if call.name == tool:
            return call, messages[position:]
    return None


def output_text(call: ToolCall, later: Iterable[Message]) -> str:
    """Return the result of a call as text, "" when nothing was recorded.

    A tool message with the call's id; else the result noted with the call; else, for a call without
    id, the next tool message that has none either and does not name another tool. Values that are
    no text are written as JSON.
    """
    message = next((message for message in later if answers(message, call)), None)
    has_own = call.result is not None or call.error is not None
    if message is None or (call.id is None and has_own):
        output = call.error if call.result is None else call.result
    else:
        output = message.content
    if output is None or isinstance(output, str):
        return output or ""
    return text_of(output) or compact(output)


class LastAssistant(Extractor):
    """Takes the text of the last assistant message, "" when there is none.

    Messages that only carry tool calls are no texts. Content given as parts is joined with spaces.
    A sample without any recorded message gives its answer text.
    """

    @override
    def extract(self, sample: Sample) -> str:
        return (assistant_texts(sample) or [""])[-1]


class FirstAssistant(Extractor):
    """Takes the text of the first assistant message, "" when there is none."""

    @override
    def extract(self, sample: Sample) -> str:
        return (assistant_texts(sample) or [""])[0]


@attrs.frozen(kw_only=True)
class AllAssistant(Extractor):
    """Takes the texts of all assistant messages of all turns, with ``separator`` between two of
    them.
    """

    separator: str = "\n"

    @override
    def extract(self, sample: Sample) -> str:
        return self.separator.join(assistant_texts(sample))


@attrs.frozen(kw_only=True)
class LastTurn(Extractor):
    """Takes the texts of the last turn's assistant messages, joined by ``separator``.

    "" when it has none.
    """

    separator: str = "\n"

    @override
    def extract(self, sample: Sample) -> str:
        if any(sample.turns):
            messages = sample.turns[-1]
            return self.separator.join(speech(messages))
        return sample.text or ""


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # meanings in a later Python are no concern of the run
        return re.compile(pattern)


@attrs.frozen(kw_only=True)
class Pattern(Extractor):
    """Takes the match of a regular expression, "" when it matches no assistant message.

    The newest message it matches anywhere counts. By default the text of ``group`` of the first
    match, 0 being the whole match; with ``search_all`` all matches of that message, joined by a
    space. A pattern with several groups gives one tuple per match there, of which ``group`` is the
    element, counted from zero. A pattern with one group gives that group, one without groups the
    whole match. A group that takes no part in the match is "".

    A pattern that backtracks without end costs its grade, which takes too long
    (``limits.seconds_per_grade``).
    """

    pattern: str
    group: int = 0
    search_all: bool = False

    def __attrs_post_init__(self) -> None:
        """Check that the pattern is a regular expression and has the chosen group."""
        try:
            groups = _compiled(self.pattern).groups
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(
                f"pattern {self.pattern!r} is not a regular expression: {error}"
            ) from error
        if self.search_all and groups > 1:
            highest = max(groups - 1, 0)
        else:
            highest = groups
        ignored = self.search_all and groups <= 1
        if not ignored and not 0 <= self.group <= highest:
            counted = "element of the tuples" if self.search_all else "group of the pattern"
            raise ValueError(f"group {self.group} is no {counted}; there are 0 to {highest}")

    @override
    def extract(self, sample: Sample) -> str:
        pattern = _compiled(self.pattern)
        for text in reversed(assistant_texts(sample)):
            if not self.search_all:
                match = pattern.search(text)
                if match is not None:
                    return match.group(self.group) or ""
            elif matches := pattern.findall(text):
                return " ".join(x[self.group] if isinstance(x, tuple) else x for x in matches)
        return ""


@attrs.frozen(kw_only=True)
class AfterMarker(Extractor):
    """Takes the text behind the first occurrence of a marker, stripped.

    "" when no assistant message holds it.

    The newest message that holds ``marker``, case included, counts; ``include_marker`` keeps the
    marker itself.
    """

    marker: str
    include_marker: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.marker:
            raise ValueError("marker is empty: name the text before the answer")

    @override
    def extract(self, sample: Sample) -> str:
        for text in reversed(assistant_texts(sample)):
            _before, marker, after = text.partition(self.marker)
            if marker:
                return (marker + after if self.include_marker else after).strip()
        return ""


@attrs.frozen(kw_only=True)
class ToolArguments(Extractor):
    """Takes the argument text of the first call of a tool in the whole conversation, "{}" when it
    was never called.

    The text is the recorded one; where an object was recorded, its JSON in its own key order.
    """

    tool_name: str

    @override
    def extract(self, sample: Sample) -> str:
        call_and_messages = first_call(sample, self.tool_name)
        if call_and_messages is None:
            return "{}"
        call, _ = call_and_messages
        if call.raw_arguments is not None:
            return call.raw_arguments
        if call.arguments is None:
            return ""
        return compact(dict(call.arguments))


@attrs.frozen(kw_only=True)
class ToolOutput(Extractor):
    """Takes the result of the first call of a tool, "" when it was never called or has none.

    Call and return belong together by the call's id; without ids, the next return is taken. Values
    that are no text are written as JSON.
    """

    tool_name: str

    @override
    def extract(self, sample: Sample) -> str:
        call_and_messages = first_call(sample, self.tool_name)
        return "" if call_and_messages is None else output_text(*call_and_messages)


PATHS: tuple[tuple[str, ...], ...] = (
    ("memory_blocks",),
    ("agent_state", "memory", "blocks"),
    ("agent_state", "blocks"),
)
"""Paths in ``Sample.recorded`` of memory: a list of ``{label, value}``, or label -> value."""


@attrs.frozen(kw_only=True)
class MemoryBlock(Extractor):
    """Takes a memory block of the agent's final state, "" when the agent has no block of that
    label.

    The state is not part of a recorded result as letta-evals writes it: it was read from the live
    agent. So extraction fails, sample by sample, unless the recording carries the memory:
    ``memory_blocks`` or ``agent_state`` in its ``recorded`` values, as a list of
    ``{"label": ..., "value": ...}`` or as an object label -> value.
    """

    block_label: str

    @override
    def extract(self, sample: Sample) -> str:
        label = self.block_label
        for path in PATHS:
            blocks: JSON = sample.recorded
            for key in path:
                blocks = as_map(blocks).get(key)
            if isinstance(blocks, list | tuple):
                labelled = [block for block in map(as_map, blocks) if block.get("label") == label]
                if labelled:
                    return as_text(labelled[0].get("value"))
                return ""
            if isinstance(blocks, Mapping):
                return as_text(blocks.get(label))
        raise LookupError(
            f"memory block {label!r} needs the agent's state, which this recording does not hold; "
            "record it as memory_blocks or extract from messages instead"
        )
