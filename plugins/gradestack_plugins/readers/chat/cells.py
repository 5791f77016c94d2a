"""Cells of records: the value of a field, as the jsonl form has it, in a cell of any kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf, isfinite
from typing import Any, Final

from gradestack import Usage, compile_later
from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers.chat.calls import (
    JSON_TEXT,
    calls_of,
    decoded,
    unread_of,
    with_names,
)
from gradestack_plugins.readers.chat.conversation import conversation_of
from gradestack_plugins.readers.chat.dialect import of_entries
from gradestack_plugins.readers.chat.names import VERDICTS, talk_of

_WRITTEN_BY_PYTHON: Final = compile_later(r"\s*(?:\[\s*)?\{\s*'")
_WHOLE: Final = compile_later(r"-?(?:0|[1-9]\d{0,17})")
_MANY_DIGITS: Final = compile_later(r"\s*[-+]?\d{400,}\s*")
_EMPTY: Final = compile_later(r"\s*")
_NOTHING: Final = frozenset({"", "none", "null", "nan", "n/a", "na", "<na>", "nil"})
"""Texts in place of an error or a score that nobody recorded, in lower case."""


def _whole_number(value: Any) -> Any:
    """Return a whole float as an int: tables hold counts so beside empty cells."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _read_text(value: Any, _: str = "") -> Any:
    value = _whole_number(value)
    if isinstance(value, bool | int | float):
        return compact(value)
    return value


def _read_id(value: Any, _: str = "") -> Any:
    return _whole_number(value) if value != "" else None


def _read_run(value: Any, _: str = "") -> Any:
    if isinstance(value, str):
        if _WHOLE.fullmatch(value):
            return int(value)
        return value or None
    return _whole_number(value)


def _read_number(value: Any, field: str) -> Any:
    """Return the number in a cell; an empty text is None, and hundreds of digits are infinity."""
    if isinstance(value, str):
        if _EMPTY.fullmatch(value):
            return None
        if _MANY_DIGITS.fullmatch(value):
            return inf  # an impossible amount: the record keeps its run
        with suppress(JsonProblem):
            value = loads(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{field}: expected a number, got {compact(value)[:60]}")
    return _whole_number(value)


def _read_count(value: Any, field: str) -> Any:
    number = _read_number(value, field)
    if isinstance(number, float) and isfinite(number):
        raise ValueError(f"{field}: expected a whole number, got {compact(number)}")
    return number


def read_data(value: Any, field: str) -> Any:
    """Return a list or an object, also one that is written as text.

    Raises:
        ValueError: It is a text that is no JSON.
    """
    if not isinstance(value, str):
        return value
    if _EMPTY.fullmatch(value):
        return None
    try:
        return loads(value)
    except JsonProblem as problem:
        advice = ""
        if _WRITTEN_BY_PYTHON.match(value):
            advice = "; it is written as Python shows it: write it with json.dumps"
        shown = compact(value)[:60]
        raise ValueError(f"{field}: expected JSON, got {shown} ({problem}){advice}") from problem


def _read_text_or_data(value: Any, field: str) -> Any:
    """Return text as it is, unless it is that of a JSON list or object."""
    is_data = isinstance(value, str) and JSON_TEXT.match(value)
    return read_data(value, field) if is_data else value


def _read_talk(value: Any, field: str) -> Any:
    """Return the messages of a conversation, or the text that is one of them."""
    return _read_text_or_data(talk_of(value), field)


class UnreadCalls(list[str]):
    """Kinds of calls that are not decoded, in place of the calls of a record."""


def _read_calls(value: Any, field: str) -> Any:
    """Return calls that were made; those whose arguments are not recorded have none."""
    value = with_names(value)
    kinds = unread_of(value)
    if kinds:
        return UnreadCalls(kinds)
    calls = calls_of(_read_text_or_data(value, field))
    if isinstance(calls, list):
        return [_with_arguments(call) for call in calls]
    return calls


def _with_arguments(call: Any) -> Any:
    if isinstance(call, dict) and call.get("arguments") is None:
        return {**call, "arguments": {}}
    return call


def _read_expected_calls(value: Any, field: str) -> Any:
    """Return expected calls; arguments that are not recorded are not compared.

    A cell of messages expects the calls in them.
    """
    value = with_names(value)
    talk = talk_of(value)
    if isinstance(talk, list) and of_entries(talk) is not None:
        calls = conversation_of(talk).calls
        return [{"name": call.name, "arguments": call.arguments} for call in calls]
    if "text" in unread_of(value):
        expected = "expected calls, or the name of a tool"
        raise ValueError(f"{field}: {expected}, got the text {compact(value)[:60]}")
    return calls_of(_read_text_or_data(value, field))


def _read_side(value: Any, field: str) -> Any:
    """Return a reference or a prediction: calls, an object, or a class, which may be a number."""
    return _read_text(_read_text_or_data(value, field))


def _read_anything(value: Any, _: str = "") -> Any:
    return decoded(value)


def _is_nothing(text: str) -> bool:
    """Return whether programs write a text where there is nothing."""
    return text.strip().lower() in _NOTHING


def _read_error(value: Any, _: str = "") -> Any:
    """Return a recorded error; None for a text that says that there is none."""
    if isinstance(value, str) and _is_nothing(value):
        return None
    return decoded(value)


def _read_score(value: Any, _: str = "") -> Any:
    """Return a recorded value; numbers, verdicts, lists and objects may be written as text."""
    if not isinstance(value, str):
        return value
    if _is_nothing(value):
        return None
    try:
        return loads(value)
    except JsonProblem:
        return VERDICTS.get(value.strip().lower(), value)


Cell = Callable[[Any, str], Any]
"""Returns the value of a field in a cell; the field is named in errors."""
_MEASURES: Final = frozenset({"cost_usd", "seconds", "first_token_seconds"})
FIELDS: Final[Mapping[str, Cell]] = {
    **dict.fromkeys(("cluster", "model", "agent_id", "ended", "text", "label"), _read_text),
    **dict.fromkeys(("messages", "prior_messages"), _read_talk),
    **dict.fromkeys(("turns", "tools", "children"), read_data),
    "calls": _read_calls,
    **dict.fromkeys(("facets", "trace", "usage", "recorded"), read_data),
    **dict.fromkeys(("input", "plan", "state"), _read_anything),
    "error": _read_error,
    **dict.fromkeys(("expected", "predicted"), _read_side),
    "id": _read_id,
    "run": _read_run,
    **{
        f"usage.{name}": _read_number if name in _MEASURES else _read_count
        for name in Usage.__struct_fields__
    },
    "expected.calls": _read_expected_calls,
    **dict.fromkeys(("expected.alternatives", "expected.forbidden"), read_data),
    **dict.fromkeys(("expected.plan", "expected.state"), _read_anything),
    "expected.label": _read_text,
    "expected.text": _read_side,
}
"""Field of the jsonl form, or of its prediction -> the reader of its cells."""
BELOW: Final[Mapping[str, Cell]] = {
    "facets": _read_anything,
    "recorded": _read_score,
    "trace": _read_text,
}
"""Fields that hold anything by name, as ``facets.domain``."""
OF_LISTS: Final = frozenset(
    {read_data, _read_talk, _read_calls, _read_expected_calls, _read_side}
    | {_read_anything, _read_error}
)
"""Readers of cells that take a list: all values that a path with wildcards leads to."""
OF_CALLS: Final = frozenset({_read_calls, _read_expected_calls})
"""Readers of calls: an empty cell is none."""


def reader_of(field: str) -> Cell | None:
    """Return the reader of the cells of a field, None where there is no such field."""
    read = FIELDS.get(field)
    if read is None:
        parent, dot, name = field.partition(".")
        read = None
        if dot and name:
            read = BELOW.get(parent)
    return read


def as_json(value: Any) -> Any:
    """Return a cell of a data frame as a JSON value.

    Arrays are lists, missing values None, times text.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # NaN is how a frame says that nothing is there
        return None if value != value else value  # noqa: PLR0124
    if isinstance(value, Mapping):
        entries = {}
        # a comprehension is a call more before Python 3.12: half the levels
        for key, entry in value.items():
            entries[str(key)] = as_json(entry)
        return entries
    if isinstance(value, list | tuple):
        items = []
        for entry in value:
            items.append(as_json(entry))
        return items
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
