"""Rows that platforms export, by a table of the paths of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from gradestack import JSON, replace
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.readers.bodies import answers_in, asked_in, model_in, usage_in
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.calls import decoded
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.declared import Items, Text, convert_record
from gradestack_plugins.readers.rows import Kind, Row

Id = str | int | None


class Span(msgspec.Struct, kw_only=True):
    """A row of a platform, its values under the names that all platforms share."""

    trace: Id = None
    """The id that the rows of one run share."""
    own: Id = None
    parent: Id = None
    group: Id = None
    """The id that several traces share."""
    task: Id = None
    kind: Text = None
    name: Text = None
    started: Any = None
    input: Any = None
    output: Any = None
    model: Text = None
    usage: Any = None
    prompt_tokens: Any = None
    completion_tokens: Any = None
    cost: Any = None
    tools: Items = None
    error: Any = None
    expected: Any = None
    scores: Any = None


class FieldPaths(NamedTuple):
    """The places of a span's values in a row."""

    keys: list[tuple[str, str]]
    """Fields of ``Span`` whose value stands under a key, with that key."""
    paths: list[tuple[str, list[list[str]]]]
    """Other fields, with the steps of the paths to their value."""


def field_paths(places: Mapping[str, str]) -> FieldPaths:
    """Return the paths of the values of a span.

    Args:
        places: Field of ``Span`` -> the paths of its value in a row, its own name by default. Of
            several paths the first one with a value counts; of a list the first entry.
    """
    found = FieldPaths([], [])
    for field in Span.__struct_fields__:
        listed = places.get(field, field)
        if listed.isidentifier():
            found.keys.append((field, listed))
        else:
            found.paths.append((field, [path.split(".") for path in listed.split()]))
    return found


def read_row(
    recorded: Mapping[str, Any], paths: FieldPaths, kind_of: Callable[[Span], Kind]
) -> Row:
    """Return a platform's row as a row of its trace.

    Args:
        recorded: The row.
        paths: The paths of the values of a span in it.
        kind_of: Returns the kind of a row.
    """
    values = {field: recorded[key] for field, key in paths.keys if key in recorded}
    for field, alternatives in paths.paths:
        value = value_at(recorded, alternatives)
        if value is not None:
            values[field] = value
    span, remarks = convert_record(values, Span)
    row = Row(
        kind=kind_of(span),
        trace=_id_text(span.trace),
        own=_id_text(span.own),
        parent=_id_text(span.parent),
        group=_id_text(span.group),
        started=_sortable(span.started),
        error=span.error,
        remarks=remarks,
    )
    if row.kind == "model":
        _add_answer(row, span)
    elif row.kind == "root":
        row.task = _id_text(span.task)
        row.request = _question(span.input)
        row.text = _root_text(span.output)
        row.expected = _root_text(span.expected)
        row.recorded = scores_by_name(span.scores)
    else:
        row.name = span.name or ""
        row.arguments = decoded(span.input)
        row.result = span.output
    return row


def value_at(row: Mapping[str, Any], paths: Iterable[list[str]]) -> Any:
    """Return the value at the first of some paths that leads to more than an empty one."""
    value: Any = None
    for steps in paths:
        value = row
        for step in steps:
            if isinstance(value, dict):
                value = value.get(step)
            else:
                listed = as_list(value)
                value = listed[0] if listed else None
        if value:
            break
    return value


def _id_text(identifier: Id) -> str:
    """Return an id as text, "" where there is none."""
    return "" if identifier is None else str(identifier)


def _sortable(moment: Any) -> str:
    """Return a time as text that sorts like it: text as it is, seconds with leading zeros."""
    number = as_number(moment)
    return as_text(moment) if number is None else f"{number:020.6f}"


def _add_answer(row: Row, span: Span) -> None:
    """Add the request and the answer of a model, its model, usage and tools."""
    request = decoded(span.input)
    response = decoded(span.output)
    row.request = asked_in(request)
    row.response = answers_in(response)
    row.model = span.model or model_in(response, request)
    row.tools = span.tools
    usage = usage_of(span.usage or usage_in(response, *row.response))
    if usage is None:
        prompt, completion = span.prompt_tokens, span.completion_tokens
        usage = usage_of({"prompt_tokens": prompt, "completion_tokens": completion})
    cost = as_number(span.cost)
    if usage is not None and cost is not None:
        usage = replace(usage, cost_usd=cost)
    row.usage = usage


def _question(value: Any) -> list[Any]:
    """Return the question of a root: messages, a text, or the only text of an object."""
    value = decoded(value)
    if isinstance(value, dict) and "messages" not in value and "input" not in value:
        value = _only_text(value)
    return asked_in(value)


def _root_text(value: Any) -> str | None:
    """Return the answer of a root: a text, or the only text of an object."""
    value = decoded(value)
    if isinstance(value, str):
        return value
    return _only_text(as_map(value))


def _only_text(holder: Mapping[str, Any]) -> str | None:
    texts = [text for text in holder.values() if isinstance(text, str)]
    if len(texts) == 1:
        return texts[0]
    return None


def scores_by_name(listed: Any) -> dict[str, JSON]:
    """Return scores by name: of a list of named scores, or of an object of them."""
    named = as_map(listed).items() or [(word(score, "name"), score) for score in as_list(listed)]
    scores: dict[str, JSON] = {}
    for name, score in named:
        about = as_map(score) or {"value": score}
        value = next((about[key] for key in _SCORES if about.get(key) is not None), None)
        if name and isinstance(value, bool | int | float | str):
            scores[name] = value
    return scores


_SCORES: Final = ("value", "score", "avg")
"""Keys of a score's value."""
