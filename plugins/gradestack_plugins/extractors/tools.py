"""Extractors of tool calls: what a tool was given, and what it returned."""

from __future__ import annotations

import attrs
from typing_extensions import override

from gradestack import Extractor, Sample
from gradestack_plugins.extractors.conversation import argument_text, first_call, output_text


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
