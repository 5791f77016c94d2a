"""Mappings of columns to fields, and the samples of mapped records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gradestack import BadRecord, Sample, Source, Usage, replace, suggest
from gradestack.jsonio import Query, path_exists, path_steps, path_value
from gradestack_plugins.readers.chat.cells import (
    BELOW,
    FIELDS,
    OF_CALLS,
    OF_LISTS,
    Cell,
    UnreadCalls,
    read_data,
    reader_of,
)
from gradestack_plugins.readers.chat.conversation import conversation_of, kind_of
from gradestack_plugins.readers.chat.unread import not_read
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.readers.jsonl_form import USAGE_NOT_READ

PREDICTED: Final = ("calls", "label", "text", "plan")
_VERSION: Final = 2
form_sample: Final = JsonLines().sample
"""Returns the sample of an object of the jsonl form, or its bad record."""


class Mapped(msgspec.Struct, frozen=True):
    """One field, and its column or path."""

    field: str
    path: str
    steps: tuple[str | int | Query, ...]
    cell: Cell
    holder: str | None
    """The object of the jsonl form that has it; None for the form itself."""
    key: str


class Columns(msgspec.Struct, frozen=True):
    """All fields of a mapping."""

    fields: tuple[Mapped, ...]
    used: frozenset[Any]
    """The columns of the fields."""
    has_messages: bool
    has_steps: bool


def check_columns(columns: Mapping[str, str]) -> None:
    """Check a mapping of fields to columns or paths.

    Raises:
        ValueError: A field or a path is none.
    """
    for field, column in columns.items():
        if reader_of(field) is None:
            known = [*FIELDS, *(f"{name}.NAME" for name in BELOW)]
            hint = suggest(field, known) or f"; known: {', '.join(known)}"
            advice = f"put your own data under facets.{field.rpartition('.')[2]}"
            raise ValueError(f"{field!r} is no field of a sample{hint}; {advice}")
        if not column:
            raise ValueError(f"{field}: no column or path is given")
        try:
            path_steps(column)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from error


def mapped(columns: Mapping[str, str]) -> Columns:
    """Return the fields of a mapping to columns or paths."""
    fields = []
    for field, column in columns.items():
        cell = reader_of(field)
        if cell is None:
            continue
        parent, dot, name = field.partition(".")
        holder = "predicted" if field in PREDICTED else None
        holder, key = (parent, name) if dot else (holder, field)
        fields.append(Mapped(field, column, path_steps(column), cell, holder, key))
    used = frozenset(field.steps[0] for field in fields)
    return Columns(tuple(fields), used, "messages" in columns, "prior_messages" in columns)


def missing(fields: Iterable[Mapped], records: Iterable[Any]) -> list[Mapped]:
    """Return the fields that stand in none of some records."""
    absent = list(fields)
    for record in records:
        absent = [field for field in absent if not _has_value(record, field)]
        if not absent:
            break
    return absent


def _has_value(record: Any, field: Mapped) -> bool:
    """Return whether a path leads to a value in a record, or reading it will say why not."""
    try:
        return path_exists(record, field.steps)
    except (ValueError, RecursionError):
        return True


def lead_nowhere(fields: Iterable[Mapped], rows: Iterable[Mapping[str, Any]]) -> list[Mapped]:
    """Return the fields whose paths lead to nothing in any row, although their cells are filled."""
    is_filled = {field: False for field in fields if len(field.steps) > 1}
    for row in rows if is_filled else ():
        for field in list(is_filled):
            column = field.steps[0]
            cell = None
            if isinstance(column, str):
                cell = row.get(column)
            if cell is None or cell == "":
                continue
            if _has_value(row, field):
                del is_filled[field]
            else:
                is_filled[field] = True
    return [field for field, filled in is_filled.items() if filled]


def fields_of(record: Mapping[str, Any], columns: Columns, *, table: bool) -> dict[str, Any]:
    """Return a record in the jsonl form: the value of every mapped cell that is not empty.

    An empty cell of calls says that there are none, unless the messages say which.
    """
    form: dict[str, Any] = {"version": _VERSION}
    for field in columns.fields:
        raw = path_value(record, field.steps)
        last_step = field.steps[-1]
        if isinstance(last_step, Query) and field.cell not in OF_LISTS:
            raw = _only(raw, field.field)
        is_empty = raw is None or (table and raw == "")
        if is_empty and not _says_no_calls(record, field, columns):
            continue
        value = field.cell(raw, field.field)
        if value is None:
            continue
        if field.holder is None:
            _put(form, field.key, value)
        else:
            _holder_in(form, field)[field.key] = value
    return form


def _says_no_calls(record: Mapping[str, Any], field: Mapped, columns: Columns) -> bool:
    """Return whether an empty cell says that there are no calls."""
    is_in_messages = field.field == "calls" and columns.has_messages
    return field.cell in OF_CALLS and not is_in_messages and path_exists(record, field.steps)


def _holder_in(form: dict[str, Any], field: Mapped) -> dict[str, Any]:
    """Return the object of a form that has a field."""
    holder = form.setdefault(str(field.holder), {})
    if not isinstance(holder, dict):
        shown = str(holder)[:60]
        what = f"{field.holder} is mapped as well, and is no object: {shown!r}"
        raise ValueError(f"{field.field}: {what}")
    return holder


def _only(values: list[Any] | None, field: str) -> Any:
    """Return the one value that a query leads to, for a field that holds one."""
    if values is not None and len(values) > 1:
        raise ValueError(f"{field}: the path leads to {len(values)} values, where one is meant")
    return values[0] if values else None


def _put(form: dict[str, Any], field: str, value: Any) -> None:
    """Set a whole field; parts of it that are mapped win."""
    parts = form.get(field)
    if not isinstance(parts, dict):
        form[field] = value
    elif isinstance(value, dict):
        form[field] = {**value, **parts}
    else:
        what = f"parts of it are mapped as well, and it is no object: {str(value)[:60]!r}"
        raise ValueError(f"{field}: {what}")


def _remarks_on_columns(record: Iterable[str], used: frozenset[Any]) -> dict[str, int]:
    """Return a remark for every column that is not mapped."""
    unmapped = sorted(name for name in record if name not in used)
    if unmapped:
        return dict(Counter(kind_of("column", name) for name in unmapped))
    return {}


def sample_of(
    record: Mapping[str, Any], columns: Columns, source: Source, *, fallback_id: str, table: bool
) -> Sample | BadRecord:
    """Return the sample of a record, or its bad record.

    Args:
        record: The record.
        columns: Its fields.
        source: Its place.
        fallback_id: The id of a sample whose record has none.
        table: Whether the record is a row of a table, whose empty cells are empty texts.
    """
    form = fields_of(record, columns, table=table)
    remarks = _remarks_on_columns(record, columns.used)
    if "id" not in form:
        form["id"], remarks["id_made"] = fallback_id, 1
    unread = _take_unread_calls(form)
    if unread:
        remarks |= Counter(map(not_read, unread))
    before = form.pop("prior_messages", None)
    messages = _joined_messages(before, form.pop("messages", None))
    sample = form_sample(form, source)
    if isinstance(sample, BadRecord):
        return replace(sample, native=record)
    changes: dict[str, Any] = {}
    if messages is not None:
        talk = conversation_of(messages)
        predicted = form.get("predicted", {})
        is_side = isinstance(predicted, dict)
        fields = talk.fields_beside(predicted if is_side else ("calls", "text"))
        changes = {name: fields[name] for name in fields if not getattr(sample, name)}
        remarks |= talk.remarks
    if unread and not changes.get("calls"):
        changes["calls"] = None  # messages without calls do not say that there were none
    sample = _with_usage_of_api(sample, changes, remarks)
    if "id_made" in remarks:
        changes["facets"] = {**sample.facets, "id_made": True}
    if remarks:
        changes["remarks"] = {**sample.remarks, **remarks}
    return replace(sample, **changes) if changes else sample


def _take_unread_calls(form: dict[str, Any]) -> UnreadCalls:
    """Return calls that are not decoded, which the form then does not have."""
    predicted = form.get("predicted")
    if isinstance(predicted, dict) and isinstance(predicted.get("calls"), UnreadCalls):
        return predicted.pop("calls")  # type: ignore[no-any-return]
    return UnreadCalls()


def _with_usage_of_api(sample: Sample, changes: dict[str, Any], remarks: dict[str, int]) -> Sample:
    """Add usage in the keys of an API to changes, or a remark where it is in no known form.

    Returns:
        The sample, without remarks on keys of usage that are an API's.
    """
    recorded, known = sample.agent_usage, sample.usage
    has_tokens = known and (known.input_tokens is not None or known.output_tokens is not None)
    if not isinstance(recorded, dict) or not recorded or has_tokens:
        return sample
    usage = usage_of(recorded)
    if usage is None:
        if known is None:
            remarks["usage:other"] = 1
        return sample
    changes["usage"] = _with_known(usage, known)
    others = {
        kind: times for kind, times in sample.remarks.items() if not kind.startswith(USAGE_NOT_READ)
    }
    return replace(sample, remarks=others)


def _with_known(usage: Usage, known: Usage | None) -> Usage:
    """Return usage in the keys of an API, with the amounts in the form's own keys."""
    if known is None:
        return usage
    amounts = msgspec.structs.asdict(known).items()
    amounts_by_name = {name: amount for name, amount in amounts if amount is not None}
    return replace(usage, **amounts_by_name)


def _joined_messages(before: Any, messages: Any) -> Any:
    """Return the messages of a conversation: those before an answer, and the answer."""
    if before is None:
        return read_data(messages, "messages") if isinstance(messages, str) else messages
    history = _as_messages(before, "user")
    reply = _as_messages(messages, "assistant")
    if reply[: len(history)] == history:
        return reply
    return [*history, *reply]


def _as_messages(value: Any, role: str) -> list[Any]:
    """Return messages, or a text as the message of a role."""
    if value is None:
        return []
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if not isinstance(value, list):
        raise ValueError("messages: expected a list of messages")
    return value
