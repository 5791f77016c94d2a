"""What gradestack's own result rows say beside the letta-evals form, so that a run directory can be graded again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from gradestack import JSON, Expectation, ExpectedCall, Fault, Status, ToolCall, ToolSpec, Usage, replace
from gradestack.jsonio import compact
from gradestack_plugins.letta.records import truth_of
from gradestack_plugins.readers import chat

_FAULT = Fault.__struct_fields__
_MADE = ("turn", "step", "author", "server", "kind", "status", "error_type", "started", "seconds")
_EXPECTED = ("names", "rules", "optional", "turn", "group", "requestor")


def is_own(record: Mapping[str, Any]) -> bool:
    """Return whether a result line was written by gradestack."""
    return isinstance(record.get("predicted"), dict) and isinstance(record.get("expected"), dict)


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _fitting(entry: Mapping[str, Any], names: Iterable[str], form: type[msgspec.Struct]) -> dict[str, Any]:
    """Return those fields of a call that a row holds, and as what they should be."""
    found = {}
    for name in names:
        if entry.get(name) is not None:
            with suppress(ValueError):
                found[name] = getattr(msgspec.convert({"name": "", name: entry[name]}, form), name)
    return found


def _arguments(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return name and arguments of a call."""
    arguments, text = entry.get("arguments"), entry.get("raw_arguments")
    if arguments is not None:
        arguments, text = chat.parse_arguments(arguments)
    return {
        "name": _text(entry.get("name")) or "",
        "arguments": arguments,
        "raw_arguments": text if text is None or isinstance(text, str) else compact(text),
    }


def _made_calls(raw: JSON) -> tuple[ToolCall, ...] | None:
    if not isinstance(raw, list):
        return None
    return tuple(
        ToolCall(**_arguments(entry), error=_text(entry.get("error")), **_fitting(entry, _MADE, ToolCall))
        for entry in raw
        if isinstance(entry, dict)
    )


def _expected_calls(raw: JSON) -> tuple[ExpectedCall, ...] | None:
    if not isinstance(raw, list):
        return None
    return tuple(
        ExpectedCall(**_arguments(entry), **_fitting(entry, _EXPECTED, ExpectedCall))
        for entry in raw
        if isinstance(entry, dict)
    )


def made_calls(record: Mapping[str, Any], paired: tuple[ToolCall, ...]) -> tuple[ToolCall, ...] | None:
    """Return the calls a row lists, with id, argument text and result of the trajectory's where the two agree."""
    listed = _made_calls(record["predicted"].get("calls"))
    if listed is None or [call.name for call in listed] != [call.name for call in paired]:
        return listed
    return tuple(
        replace(
            call,
            id=other.id,
            result=other.result,
            raw_arguments=call.raw_arguments or other.raw_arguments,
            error=other.error if call.error is None else call.error,
        )
        for call, other in zip(listed, paired, strict=True)
    )


def expected(record: Mapping[str, Any]) -> Expectation:
    """Return a row's reference."""
    raw = record["expected"]
    text, lists = raw.get("text"), raw.get("alternatives")
    found = map(_expected_calls, lists) if isinstance(lists, list) else ()
    return Expectation(
        calls=_expected_calls(raw.get("calls")),
        alternatives=tuple(calls for calls in found if calls is not None),
        forbidden=_texts(raw.get("forbidden")),
        label=_text(raw.get("label")),
        text=truth_of(text, turns=True) if isinstance(text, list) else _text(text),
        plan=raw.get("plan"),
        state=raw.get("state"),
    )


def rest(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a sample that stand in a row only when they were recorded."""
    trace = record.get("trace")
    found = {
        "cluster": _text(record.get("cluster")),
        "state": record["predicted"].get("state"),
        "ended": _text(record.get("ended")),
        "trace": {key: each for key, each in trace.items() if isinstance(each, str)} if isinstance(trace, dict) else {},
        "children": _texts(record.get("children")),
        "usage": _usage(record.get("usage")),
    }
    return {name: value for name, value in found.items() if value is not None and value not in ({}, ())}


def _usage(raw: JSON) -> Usage | None:
    try:
        return None if raw is None else msgspec.convert(raw, Usage)
    except ValueError:  # edited
        return None


def tools(record: Mapping[str, Any]) -> tuple[ToolSpec, ...] | None:
    """Return the tools a row names; rows hold names only."""
    raw = record.get("tools")
    return tuple(ToolSpec(name=name) for name in raw if isinstance(name, str)) if isinstance(raw, list) else None


def status(record: Mapping[str, Any]) -> tuple[Status, Fault | None]:
    """Return a row's status and fault."""
    try:
        found = Status(str(record.get("status")))
    except ValueError:
        found = Status.OK
    raw = record.get("error")
    if not isinstance(raw, dict):
        return found, None
    texts = {name: raw[name] for name in _FAULT if isinstance(raw.get(name), str)}
    return found, Fault(**{"category": "target", "code": "target_error", **texts})
