"""What a cell holds, by the field it is mapped to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, Final

from gradestack import Usage
from gradestack.jsonio import JsonProblem, compact, loads

_JSON: Final = re.compile(r"""\s*(?:\{\s*["}]|\[\s*[\[{"\]\d-])""")
"""How text begins that is a JSON list or object, and not prose in brackets."""
_WRITTEN_BY_PYTHON: Final = re.compile(r"\s*(?:\[\s*)?\{\s*'")
_WHOLE: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_EMPTY: Final = re.compile(r"\s*")


def _number_or(value: Any) -> Any:
    """Return a whole float as the whole number it is: tables hold counts so where a cell of the column is empty."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any, _: str = "") -> Any:
    value = _number_or(value)
    return compact(value) if isinstance(value, bool | int | float) else value


def _id(value: Any, _: str = "") -> Any:
    return _number_or(value) if value != "" else None


def _run(value: Any, _: str = "") -> Any:
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else value or None
    return _number_or(value)


def _number(value: Any, field: str) -> Any:
    if isinstance(value, str):
        if _EMPTY.fullmatch(value):
            return None
        with suppress(JsonProblem):
            value = loads(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{field}: expected a number, got {compact(value)[:60]}")
    if value < 0:
        raise ValueError(f"{field}: expected a number of at least 0, got {compact(value)}")
    return _number_or(value)


def _count(value: Any, field: str) -> Any:
    found = _number(value, field)
    if isinstance(found, float):
        raise ValueError(f"{field}: expected a whole number, got {compact(found)}")  # noqa: TRY004 - what makes a bad record
    return found


def _data(value: Any, field: str) -> Any:
    """Return a list or an object; text is decoded."""
    if not isinstance(value, str):
        return value
    if _EMPTY.fullmatch(value):
        return None
    try:
        return loads(value)
    except JsonProblem as problem:
        advice = "; it is written as Python shows it: write it with json.dumps" * bool(_WRITTEN_BY_PYTHON.match(value))
        raise ValueError(f"{field}: expected JSON, got {compact(value)[:60]} ({problem}){advice}") from problem


def _text_or_data(value: Any, field: str) -> Any:
    """Return text as it is, unless it is that of a JSON list or object."""
    return _data(value, field) if isinstance(value, str) and _JSON.match(value) else value


def _side(value: Any, field: str) -> Any:
    """Return a reference or a prediction: calls, an object, or the name of a class, which may be a number."""
    return _text(_text_or_data(value, field))


def _anything(value: Any, _: str = "") -> Any:
    if isinstance(value, str) and _JSON.match(value):
        try:
            return loads(value)
        except JsonProblem:
            return value
    return value


def _score(value: Any, _: str = "") -> Any:
    """Return a recorded value; a number, true, false, a list or an object written as text is decoded."""
    if isinstance(value, str):
        try:
            return loads(value)
        except JsonProblem:
            return value
    return value


Cell = Callable[[Any, str], Any]
FIELDS: Final[Mapping[str, Cell]] = {
    **dict.fromkeys(("cluster", "model", "agent_id", "ended", "text", "label"), _text),
    **dict.fromkeys(("messages", "turns", "calls", "tools", "children"), _data),
    **dict.fromkeys(("facets", "trace", "usage", "recorded"), _data),
    **dict.fromkeys(("input", "plan", "state", "error"), _anything),
    **dict.fromkeys(("expected", "predicted"), _side),
    "id": _id,
    "run": _run,
    **{
        f"usage.{name}": _number if name in {"cost_usd", "seconds", "first_token_seconds"} else _count
        for name in Usage.__struct_fields__
    },
    **dict.fromkeys(("expected.calls", "expected.alternatives", "expected.forbidden"), _data),
    **dict.fromkeys(("expected.plan", "expected.state"), _anything),
    "expected.label": _text,
    "expected.text": _side,
}
"""Fields of the jsonl form, and those a prediction has there, with what reads a cell of each."""
BELOW: Final[Mapping[str, Cell]] = {"facets": _anything, "recorded": _score, "trace": _text}
"""Fields that hold anything by name: ``facets.domain``."""
SEVERAL: Final = frozenset({_data, _side, _anything})
"""What reads a list: all that a path with wildcards leads to."""
PREDICTED: Final = ("calls", "label", "text", "plan")


def reader_of(field: str) -> Cell | None:
    """Return what reads a cell of a field, None when there is no such field."""
    known = FIELDS.get(field)
    if known is None:
        parent, dot, name = field.partition(".")
        known = BELOW.get(parent) if dot and name else None
    return known


def as_json(value: Any) -> Any:
    """Return a cell of a data frame as a JSON value: arrays as lists, what is missing as None, times as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if value != value else value  # noqa: PLR0124 - NaN is how a frame says that nothing is there
    if isinstance(value, Mapping):
        entries = {}
        for key, each in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            entries[str(key)] = as_json(each)
        return entries
    if isinstance(value, list | tuple):
        items = []
        for each in value:
            items.append(as_json(each))  # noqa: PERF401 - likewise
        return items
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
