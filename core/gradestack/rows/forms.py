"""What a row of results.jsonl consists of, and what may be put into it.

The fields of the structures stand in the order of their names, so that the keys of a row are sorted without sorting;
UNSET ones are left out.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec
from msgspec import UNSET

from gradestack.jsonio.values import dumps
from gradestack.rows.read import plain

write = msgspec.json.Encoder(order="deterministic").encode
"""Encodes rows and their parts. Beware: NaN becomes null."""


class RowPart(msgspec.Struct, gc=False):
    """Written key by key in the order of the fields; UNSET ones are left out."""


class CallForm(RowPart):
    """A call made or expected."""

    arguments: Any = UNSET
    error: Any = UNSET
    name: Any = UNSET
    raw_arguments: Any = UNSET


class FunctionForm(RowPart, kw_only=True):
    """The function of a call in a conversation."""

    arguments: Any
    name: str


class ChatCallForm(RowPart, kw_only=True):
    """A call in a conversation."""

    function: FunctionForm
    id: str | None
    type: str = "function"


class MessageForm(RowPart, kw_only=True):
    """A message."""

    content: Any
    name: Any = UNSET
    role: str
    tool_call_id: Any = UNSET
    tool_calls: Any = UNSET


class ExpectedForm(RowPart, kw_only=True):
    """What was expected, or predicted."""

    calls: Any
    label: str | None
    plan: Any
    text: Any


class ReasonForm(RowPart):
    """Why points were lost."""

    actual: Any = UNSET
    code: Any = UNSET
    expected: Any = UNSET
    message: Any = UNSET
    pointer: Any = UNSET
    subject: Any = UNSET


class ItemForm(RowPart):
    """A graded thing inside a sample."""

    counts: Any = UNSET
    fault: Any = UNSET
    gold: Any = UNSET
    id: Any = UNSET
    label: Any = UNSET
    metadata: Any = UNSET
    outcome: Any = UNSET
    parts: Any = UNSET
    reasons: Any = UNSET
    score: Any = UNSET


class GradeForm(RowPart):
    """A grade."""

    counts: Any = UNSET
    fault: Any = UNSET
    gold: Any = UNSET
    items: Any = UNSET
    label: Any = UNSET
    metadata: Any = UNSET
    parts: Any = UNSET
    passed: Any = UNSET
    rationale: Any = UNSET
    reasons: Any = UNSET
    score: Any = UNSET
    state: Any = UNSET


class TaskForm(RowPart, kw_only=True):
    """The dataset row."""

    ground_truth: Any
    id: str
    input: Any


class SourceForm(RowPart):
    """Where the record was read."""

    file: str
    line: int | None
    ordinal: int


class RowForm(RowPart, kw_only=True):
    """A row."""

    agent_id: str | None
    agent_usage: Any
    error: Any
    expected: Any
    facets: Any
    grade: Any
    grades: dict[str, Any]
    model_name: str | None
    passed: bool | None
    predicted: ExpectedForm
    recorded: Any
    run: int | str | None
    sample: TaskForm
    source: Any
    state: str
    status: str
    submission: str
    submissions: dict[str, str] | None
    tools: list[str] | None
    trajectory: Any


_SAFE = frozenset({str, int, bool, type(None)})
_LONG = 16
"""Lists longer than this are looked at by their kinds first."""


def _check(value: Any) -> None:
    """Refuse what JSON lacks, and what msgspec would write in a form of its own (sets, bytes, dates, ...).

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: Something is not of the kinds JSON has.
        ValueError: Something is NaN or infinite.
    """
    kind = type(value)
    if kind is dict:
        for item in value.values():
            if type(item) not in _SAFE:
                _check(item)
    elif kind is list or kind is tuple:
        if len(value) > _LONG and _SAFE.issuperset(map(type, value)):
            return
        for item in value:
            if type(item) not in _SAFE:
                _check(item)
    elif kind is not float:
        msg = f"Object of type {kind.__name__} is not JSON serializable"
        raise TypeError(msg)
    elif not isfinite(value):
        msg = "NaN"
        raise ValueError(msg)


def foreign(value: Any) -> Any:
    """Return data of others, which msgspec may write as it is.

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: It is not JSON, or not of the plain kinds.
        ValueError: It holds NaN or an infinity.
    """
    if type(value) not in _SAFE:
        _check(value)
    return value


def own(value: Any) -> Any:
    """Return a grader's data likewise; attrs objects become mappings without their absent fields."""
    try:
        return foreign(value)
    except TypeError:
        return foreign(plain(value))


def encode(value: Any) -> bytes:
    """Return JSON data as bytes, in the form of a row.

    Raises:
        RecursionError: It is nested too deeply.
        TypeError: It is not JSON.
        ValueError: The same.
    """
    try:
        return write(foreign(value))
    except (TypeError, ValueError):  # for the standard library to judge
        return dumps(value).encode()
