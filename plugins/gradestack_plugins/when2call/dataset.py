"""Rows of the When2Call dataset: question, gold behaviour, candidate answers and the tools at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack import Expectation, ExpectedCall, ToolSpec
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers.chat import tool_call, tool_spec
from gradestack_plugins.when2call.labels import LABELS


@attrs.frozen(kw_only=True)
class Row:
    """What a dataset row says about one task."""

    question: str | None = None
    gold: str | None = None
    answers: tuple[str, ...] = ()
    """Names of the candidate answers, in the row's own order: what a choice's number refers to."""
    tools: tuple[ToolSpec, ...] | None = None
    no_tools: bool | None = None
    """Whether the model had no tool at all; None when the row is unknown."""
    expected: Expectation = attrs.field(factory=Expectation)
    source: str = ""

    @property
    def facets(self) -> dict[str, Any]:
        """What results may be grouped by."""
        return {"source": self.source} if self.source else {}


UNKNOWN = Row()
"""Nothing is known but the prediction."""


def _decoded(value: Any) -> Any:
    """Return an object given as JSON text or as itself."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except JsonProblem:
        return None


def _tools(raw: Any) -> tuple[ToolSpec, ...]:
    """Return the tools of a row; each is a JSON text or an object, and one that cannot be understood is left out."""
    entries = raw if isinstance(raw, list) else []
    return tuple(spec for entry in entries if (spec := tool_spec(_decoded(entry))) is not None)


def _calls(gold: str, answers: Mapping[str, Any]) -> tuple[ExpectedCall, ...] | None:
    """Return the calls a row wants: the candidate's for ``tool_call``, none for the other behaviours."""
    if gold != "tool_call":
        return ()
    call = tool_call(_decoded(answers.get("tool_call")))
    return (ExpectedCall.of(call),) if call is not None and call.name else None


def _problem(record: Mapping[str, Any], *, strict: bool) -> str | None:
    for name in ("question", "correct_answer") if strict else ():
        if name not in record:
            return f"{name} is missing"
    gold = record.get("correct_answer")
    if gold not in LABELS and (strict or gold is not None):
        return f"correct_answer must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}"
    return None


def read_row(record: Mapping[str, Any], *, strict: bool = True) -> Row:
    """Return a dataset row; ``tools`` may hold JSON texts or objects, missing optional fields are empty.

    A row without tools (missing, null or empty list) is one without any tool at hand: such rows are the denominator of
    the tool hallucination rate.

    Args:
        record: The row.
        strict: Require question and gold label, as the evaluation suite does; a row inside a prediction may lack them.

    Raises:
        ValueError: A required field is missing, or the gold label is none of the four.
    """
    if (problem := _problem(record, strict=strict)) is not None:
        raise ValueError(problem)
    question, gold = record.get("question"), record.get("correct_answer")
    answers = record.get("answers")
    answers = answers if isinstance(answers, dict) else {}
    tools, source = record.get("tools"), record.get("source")
    text = answers.get(gold) if isinstance(gold, str) else None
    return Row(
        question=question if isinstance(question, str) else None,
        gold=gold,
        answers=tuple(answers),
        tools=_tools(tools),
        no_tools=not tools,
        expected=Expectation(
            calls=None if gold is None else _calls(gold, answers),
            label=gold,
            text=text if isinstance(text, str) else None,
        ),
        source=source if isinstance(source, str) else "",
    )


def row_uuid(record: Any) -> str | None:
    """Return a row's identifier, None unless it is non-empty text."""
    found = record.get("uuid") if isinstance(record, dict) else None
    return found if isinstance(found, str) and found else None


def usable_uuid(record: Any) -> str | None:
    """Return the identifier of a row that predictions can be joined with; None when there is none or it is unusable."""
    uuid = row_uuid(record)
    return uuid if uuid is not None and _problem(record, strict=True) is None else None


def other_uuid(record: Mapping[str, Any]) -> str | None:
    """Return, as JSON text, an identifier that is no non-empty text, so that no prediction can have it.

    The evaluation suite counts such a row as one without a prediction. None when there is none, or it is a list or an
    object, which the suite stops at.
    """
    found = record.get("uuid", [])
    return None if isinstance(found, list | dict) else compact(found)
