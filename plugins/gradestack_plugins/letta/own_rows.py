"""What gradestack's own result rows say beside the letta-evals form, so that a run directory can be graded again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack import JSON, Expectation, Fault, Status, ToolCall, ToolSpec, replace
from gradestack.jsonio import compact
from gradestack_plugins.letta.references import truth_of
from gradestack_plugins.readers import chat

_FAULT = Fault.__struct_fields__


def is_own(record: Mapping[str, Any]) -> bool:
    """Return whether a result line was written by gradestack."""
    return isinstance(record.get("predicted"), dict) and isinstance(record.get("expected"), dict)


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


def _calls(raw: JSON) -> tuple[ToolCall, ...] | None:
    if not isinstance(raw, list):
        return None
    found = []
    for entry in raw:
        if not isinstance(entry, dict):
            continue
        arguments, text = entry.get("arguments"), entry.get("raw_arguments")
        if arguments is not None:
            arguments, text = chat.parse_arguments(arguments)
        found.append(
            ToolCall(
                name=_text(entry.get("name")) or "",
                arguments=arguments,
                raw_arguments=text if text is None or isinstance(text, str) else compact(text),
                error=_text(entry.get("error")),
            )
        )
    return tuple(found)


def made_calls(record: Mapping[str, Any], paired: tuple[ToolCall, ...]) -> tuple[ToolCall, ...] | None:
    """Return the calls a row lists, with id, argument text and result of the trajectory's where the two agree."""
    listed = _calls(record["predicted"].get("calls"))
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
    text = raw.get("text")
    return Expectation(
        calls=None if (calls := _calls(raw.get("calls"))) is None else chat.expected_calls(calls),
        label=_text(raw.get("label")),
        text=truth_of(text, turns=True) if isinstance(text, list) else _text(text),
        plan=raw.get("plan"),
    )


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
