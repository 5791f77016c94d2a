"""Calls by which an agent gives its answer: their argument is the text of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gradestack import ToolCall
from gradestack.jsonio import compact

_ANSWERS: Final = {
    "attempt_completion": "result",
    "final_answer": "answer",
    "final_result": "",
}
"""Tool -> the argument that is the answer: of Cline and Roo Code, smolagents, and pydantic-ai,
whose answer is all arguments."""
_COMPUTED: Final = "final_answer"
"""The tool whose answer may be computed of its argument, which the message then has."""


def final_text(calls: Sequence[ToolCall], step: int, text: str | None) -> str | None:
    """Return the answer of a conversation, which its last call may give.

    Args:
        calls: All calls.
        step: The index of the last step: a call before it gives no answer.
        text: The text of the last answer.
    """
    last = calls[-1] if calls else None
    if last is None or last.step != step or last.name not in _ANSWERS or not last.arguments:
        return text
    if last.name == _COMPUTED and text:
        return text
    values = list(last.arguments.values())
    argument = last.arguments.get(_ANSWERS[last.name], values[0] if len(values) == 1 else None)
    if argument is None:
        return compact(last.arguments)
    return argument if isinstance(argument, str) else compact(argument)
