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
"""Tool -> the argument that is the answer: of Cline and Roo Code, smolagents, and pydantic-ai, whose
answer is all arguments."""


def final_text(calls: Sequence[ToolCall], step: int) -> str | None:
    """Return the answer that the last call of the last step gives; None of any other call."""
    last = calls[-1] if calls else None
    if last is None or last.step != step or last.name not in _ANSWERS or not last.arguments:
        return None
    values = list(last.arguments.values())
    answer = last.arguments.get(_ANSWERS[last.name], values[0] if len(values) == 1 else None)
    if answer is None:
        return compact(last.arguments)
    return answer if isinstance(answer, str) else compact(answer)
