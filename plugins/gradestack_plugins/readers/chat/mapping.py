"""Columns by field.

What is read of a record and its cells, what is left, and the sample it makes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import inf, isfinite
from typing import Any, Final, NamedTuple

import msgspec

from gradestack import BadRecord, Sample, Source, Usage, replace, suggest
from gradestack.jsonio import (
    JsonProblem,
    Query,
    compact,
    loads,
    path_exists,
    path_steps,
    path_value,
)
from gradestack_plugins.readers.chat.conversation import conversation_of, kind_of
from gradestack_plugins.readers.chat.dialect import of_entries
from gradestack_plugins.readers.chat.names import (
    JSON_TEXT,
    VERDICTS,
    calls_of,
    decoded,
    talk_of,
    unread_of,
    with_names,
)
from gradestack_plugins.readers.chat.unread import not_read
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.readers.jsonl_form import USAGE_NOT_READ

_WRITTEN_BY_PYTHON: Final = re.compile(r"\s*(?:\[\s*)?\{\s*'")
_WHOLE: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_MANY_DIGITS: Final = re.compile(r"\s*[-+]?\d{400,}\s*")
_EMPTY: Final = re.compile(r"\s*")


def _number_or(value: Any) -> Any:
    """Return a whole float as the whole number it is.

    Tables hold counts so where a cell of the column is empty.
    """
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
        if _MANY_DIGITS.fullmatch(value):
            return inf  # an amount that cannot be one: the record keeps its run
        with suppress(JsonProblem):
            value = loads(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        # what makes a bad record
        raise ValueError(f"{field}: expected a number, got {compact(value)[:60]}")
    return _number_or(value)


def _count(value: Any, field: str) -> Any:
    found = _number(value, field)
    if isinstance(found, float) and isfinite(found):
        raise ValueError(f"{field}: expected a whole number, got {compact(found)}")
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
        advice = "; it is written as Python shows it: write it with json.dumps" * bool(
            _WRITTEN_BY_PYTHON.match(value)
        )
        raise ValueError(
            f"{field}: expected JSON, got {compact(value)[:60]} ({problem}){advice}"
        ) from problem


def _talk(value: Any, field: str) -> Any:
    """Return the messages of a conversation, or the text that is one of them."""
    return _text_or_data(talk_of(value), field)


def _text_or_data(value: Any, field: str) -> Any:
    """Return text as it is, unless it is that of a JSON list or object."""
    return _data(value, field) if isinstance(value, str) and JSON_TEXT.match(value) else value


class _Unread(list[str]):
    """What holds calls that are not decoded, in place of the calls of a record."""


def _made(value: Any, field: str) -> Any:
    """Return calls that were made: without arguments where none are recorded."""
    value = with_names(value)
    kinds = unread_of(value)
    if kinds:
        return _Unread(kinds)
    found = calls_of(_text_or_data(value, field))
    if not isinstance(found, list):
        return found
    return [
        each
        if not isinstance(each, dict) or each.get("arguments") is not None
        else {**each, "arguments": {}}
        for each in found
    ]


def _due(value: Any, field: str) -> Any:
    """Return calls that are expected: without arguments, these are not compared.

    Of messages the calls that are made in them are expected.
    """
    value = with_names(value)
    talk = talk_of(value)
    if isinstance(talk, list) and of_entries(talk) is not None:
        made = conversation_of(talk).calls
        return [{"name": call.name, "arguments": call.arguments} for call in made]
    if "text" in unread_of(value):
        raise ValueError(
            f"{field}: expected calls, or the name of a tool, got the text {compact(value)[:60]}"
        )
    return calls_of(_text_or_data(value, field))


def _side(value: Any, field: str) -> Any:
    """Return a reference or a prediction.

    Calls, an object, or the name of a class, which may be a number.
    """
    return _text(_text_or_data(value, field))


def _anything(value: Any, _: str = "") -> Any:
    return decoded(value)


def _is_nothing(text: str) -> bool:
    """Return whether a text is how programs write that nothing is there."""
    return text.strip().lower() in _NOTHING


def _error(value: Any, _: str = "") -> Any:
    """Return a recorded error; None of a text that says that there is none."""
    return None if isinstance(value, str) and _is_nothing(value) else decoded(value)


def _score(value: Any, _: str = "") -> Any:
    """Return a recorded value.

    A number, a word for true or false, a list or an object written as text is decoded.
    """
    if isinstance(value, str):
        if _is_nothing(value):
            return None
        try:
            return loads(value)
        except JsonProblem:
            return VERDICTS.get(value.strip().lower(), value)
    return value


_NOTHING: Final = frozenset({"", "none", "null", "nan", "n/a", "na", "<na>", "nil"})
"""Texts in place of an error or a score that nobody recorded, in lower case."""
Cell = Callable[[Any, str], Any]
FIELDS: Final[Mapping[str, Cell]] = {
    **dict.fromkeys(("cluster", "model", "agent_id", "ended", "text", "label"), _text),
    **dict.fromkeys(("messages", "prior_messages"), _talk),
    **dict.fromkeys(("turns", "tools", "children"), _data),
    "calls": _made,
    **dict.fromkeys(("facets", "trace", "usage", "recorded"), _data),
    **dict.fromkeys(("input", "plan", "state"), _anything),
    "error": _error,
    **dict.fromkeys(("expected", "predicted"), _side),
    "id": _id,
    "run": _run,
    **{
        f"usage.{name}": _number
        if name in {"cost_usd", "seconds", "first_token_seconds"}
        else _count
        for name in Usage.__struct_fields__
    },
    "expected.calls": _due,
    **dict.fromkeys(("expected.alternatives", "expected.forbidden"), _data),
    **dict.fromkeys(("expected.plan", "expected.state"), _anything),
    "expected.label": _text,
    "expected.text": _side,
}
"""Fields of the jsonl form, and those a prediction has there, with what reads a cell of each."""
BELOW: Final[Mapping[str, Cell]] = {"facets": _anything, "recorded": _score, "trace": _text}
"""Fields that hold anything by name: ``facets.domain``."""
SEVERAL: Final = frozenset({_data, _talk, _made, _due, _side, _anything, _error})
"""What reads a list: all that a path with wildcards leads to."""
_OF_CALLS: Final = frozenset({_made, _due})  # what reads calls: an empty cell is none
PREDICTED: Final = ("calls", "label", "text", "plan")


def reader_of(field: str) -> Cell | None:
    """Return what reads a cell of a field, None when there is no such field."""
    known = FIELDS.get(field)
    if known is None:
        parent, dot, name = field.partition(".")
        known = BELOW.get(parent) if dot and name else None
    return known


def as_json(value: Any) -> Any:
    """Return a cell of a data frame as a JSON value.

    Arrays as lists, what is missing as None, times as text.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # NaN is how a frame says that nothing is there
        return None if value != value else value  # noqa: PLR0124
    if isinstance(value, Mapping):
        entries = {}
        for (
            key,
            each,
        ) in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            entries[str(key)] = as_json(each)
        return entries
    if isinstance(value, list | tuple):
        items = []
        for each in value:
            items.append(as_json(each))
        return items
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


class Mapped(NamedTuple):
    """One field, and where it stands."""

    field: str
    place: str
    steps: tuple[str | int | Query, ...]
    cell: Cell
    holder: str | None  # the object of the jsonl form that has it; None for the form itself
    key: str


class Columns(NamedTuple):
    """All fields of a mapping."""

    fields: tuple[Mapped, ...]
    taken: frozenset[Any]  # the columns they stand in
    has_messages: bool
    has_steps: bool


def check_columns(columns: Mapping[str, str]) -> None:
    """Check a mapping."""
    for field, place in columns.items():
        if reader_of(field) is None:
            known = [*FIELDS, *(f"{name}.NAME" for name in BELOW)]
            hint = suggest(field, known) or f"; known: {', '.join(known)}"
            raise ValueError(
                f"{field!r} is no field of a sample{hint}; put your own data under "
                f"facets.{field.rpartition('.')[2]}"
            )
        if not place:
            raise ValueError(f"{field}: no column or path is given")
        try:
            path_steps(place)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from error


def mapped(columns: Mapping[str, str]) -> Columns:
    """Return what a mapping maps."""
    fields = []
    for field, place in columns.items():
        parent, dot, name = field.partition(".")
        holder = parent if dot else "predicted" if field in PREDICTED else None
        if (cell := reader_of(field)) is not None:
            fields.append(
                Mapped(field, place, path_steps(place), cell, holder, name if dot else field)
            )
    taken = frozenset(each.steps[0] for each in fields)
    return Columns(tuple(fields), taken, "messages" in columns, "prior_messages" in columns)


def missing(fields: Iterable[Mapped], records: Iterable[Any]) -> list[Mapped]:
    """Return the fields that stand in none of some records."""
    left = list(fields)
    for record in records:
        left = [each for each in left if not _leads_on(record, each)]
        if not left:
            break
    return left


def _leads_on(record: Any, field: Mapped) -> bool:
    """Return whether a path leads to something in a record.

    Where that cannot be known, reading it says so.
    """
    try:
        return path_exists(record, field.steps)
    except (ValueError, RecursionError):
        return True


def lead_nowhere(fields: Iterable[Mapped], rows: Iterable[Mapping[str, Any]]) -> list[Mapped]:
    """Return the fields whose path leads to nothing in any of some rows, although their cells hold
    something.
    """
    left = {each: False for each in fields if len(each.steps) > 1}
    for row in rows if left else ():
        for each in list(left):
            held = row.get(each.steps[0]) if isinstance(each.steps[0], str) else None
            if held is not None and held != "":
                if _leads_on(row, each):
                    del left[each]
                else:
                    left[each] = True
    return [each for each, held in left.items() if held]


def fields_of(record: Mapping[str, Any], columns: Columns, *, table: bool) -> dict[str, Any]:
    """Return a record in the jsonl form: of every mapped cell that is not empty its value.

    An empty cell of calls is that there are none, unless the messages say which.
    """
    found: dict[str, Any] = {"version": _VERSION}
    for each in columns.fields:
        raw = path_value(record, each.steps)
        if isinstance(each.steps[-1], Query) and each.cell not in SEVERAL:
            raw = _only(raw, each.field)
        if (raw is None or (table and raw == "")) and not (
            each.cell in _OF_CALLS
            and path_exists(record, each.steps)
            and not (each.field == "calls" and columns.has_messages)
        ):
            continue
        value = each.cell(raw, each.field)
        if value is None:
            continue
        if each.holder is None:
            _put(found, each.key, value)
            continue
        inner = found.setdefault(each.holder, {})
        if not isinstance(inner, dict):
            raise ValueError(
                f"{each.field}: {each.holder} is mapped as well, and is no object: "
                f"{str(inner)[:60]!r}"
            )
        inner[each.key] = value
    return found


def _only(found: list[Any] | None, field: str) -> Any:
    """Return the one value a query found for a field that holds one."""
    if found is not None and len(found) > 1:
        raise ValueError(f"{field}: the path leads to {len(found)} values, where one is meant")
    return found[0] if found else None


def _put(form: dict[str, Any], field: str, value: Any) -> None:
    """Set a whole field; parts of it that were mapped go before."""
    parts = form.get(field)
    if not isinstance(parts, dict):
        form[field] = value
    elif isinstance(value, dict):
        form[field] = {**value, **parts}
    else:
        raise ValueError(
            f"{field}: parts of it are mapped as well, and it is no object: {str(value)[:60]!r}"
        )


def left_out(record: Iterable[str], taken: frozenset[Any]) -> dict[str, int]:
    """Return a remark for every column that is not mapped."""
    left = [name for name in record if name not in taken]
    return dict(Counter(kind_of("column", name) for name in sorted(left))) if left else {}


_VERSION: Final = 2
form_sample: Final = JsonLines().sample
"""What gives the sample of an object of the jsonl form, or what is wrong with it."""


def sample_of(  # noqa: C901
    record: Mapping[str, Any], columns: Columns, source: Source, *, made: str, table: bool
) -> Sample | BadRecord:
    """Return the sample of a record, or what is wrong with it."""
    form = fields_of(record, columns, table=table)
    remarks = left_out(record, columns.taken)
    if "id" not in form:
        form["id"], remarks["id_made"] = made, 1
    predicted = form.get("predicted")
    calls = predicted.get("calls") if isinstance(predicted, dict) else None
    has_unread_calls = isinstance(calls, _Unread)
    if isinstance(predicted, dict) and isinstance(calls, _Unread):
        del predicted["calls"]
        remarks |= Counter(map(not_read, calls))
    messages = _whole(form.pop("prior_messages", None), form.pop("messages", None))
    sample = form_sample(form, source)
    if isinstance(sample, BadRecord):
        return replace(sample, native=record)
    changes: dict[str, Any] = {}
    if messages is not None:
        talk = conversation_of(messages)
        predicted = form.get("predicted", {})
        told = talk.said(predicted if isinstance(predicted, dict) else ("calls", "text"))
        changes |= {name: each for name, each in told.items() if not getattr(sample, name)}
        remarks |= talk.remarks
    if has_unread_calls and not changes.get("calls"):
        changes["calls"] = None  # messages without calls do not say that there were none
    recorded = sample.agent_usage
    if isinstance(recorded, dict) and recorded and not _has_tokens(sample.usage):
        usage = usage_of(recorded)
        if usage is not None:
            changes["usage"] = _with_known(usage, sample.usage)
            sample = replace(sample, remarks=_without_usage(sample.remarks))
        elif sample.usage is None:
            remarks["usage:other"] = 1
    if "id_made" in remarks:
        changes["facets"] = {**sample.facets, "id_made": True}
    if remarks:
        changes["remarks"] = {**sample.remarks, **remarks}
    return replace(sample, **changes) if changes else sample


def _has_tokens(usage: Usage | None) -> bool:
    """Return whether tokens are recorded in the form's own keys."""
    if usage is None:
        return False
    return usage.input_tokens is not None or usage.output_tokens is not None


def _with_known(usage: Usage, known: Usage | None) -> Usage:
    """Return usage read by the names of APIs, with the amounts in the form's own keys."""
    if known is None:
        return usage
    amounts = msgspec.structs.asdict(known)
    recorded = {name: amount for name, amount in amounts.items() if amount is not None}
    return replace(usage, **recorded)


def _without_usage(remarks: Mapping[str, int]) -> dict[str, int]:
    """Return remarks without those on keys of usage, which are an API's."""
    return {kind: times for kind, times in remarks.items() if not kind.startswith(USAGE_NOT_READ)}


def _whole(before: Any, messages: Any) -> Any:
    """Return the messages of a conversation, those before an answer and the answer."""
    if before is None:
        return _data(messages, "messages") if isinstance(messages, str) else messages
    asked, said = (
        [{"role": role, "content": each}] if isinstance(each, str) else [] if each is None else each
        for role, each in (("user", before), ("assistant", messages))
    )
    if not isinstance(asked, list) or not isinstance(said, list):
        # what makes a bad record
        raise ValueError("messages: expected a list of messages")
    return said if said[: len(asked)] == asked else [*asked, *said]
