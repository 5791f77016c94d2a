"""Samples written down: as lines of the ``jsonl`` form, and as ATIF trajectories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from gradestack import (
    BadRecord,
    Expectation,
    ExpectedCall,
    Message,
    Rule,
    Sample,
    Source,
    Status,
    ToolCall,
    replace,
)
from gradestack.jsonio import compact, loads
from gradestack_plugins.archives.atif import Atif
from gradestack_plugins.readers.chat import parse_arguments, text_of
from gradestack_plugins.readers.jsonl import JsonLines

Row = dict[str, Any]

_NO_PLACE: Final = ("source", "remarks", "native", "agent_usage")
"""Fields that say how a record was read, not what happened."""
_PREDICTED: Final = ("calls", "label", "text", "plan")
_FIELDS: Final = tuple(name for name in Sample.__struct_fields__ if name not in _NO_PLACE)
_VERSION: Final = 2
_NOTHING: Final = Sample(id="")
_defaults: Final = cache(
    lambda kind: {each.name: each.default for each in msgspec.structs.fields(kind)}
)
_PLACE: Final = Source(file="")
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encoded(row: Row) -> bytes:
    """Return a line of valid JSON, with lone surrogates escaped.

    NaN and infinities, which JSON lacks, are the texts "NaN", "Infinity" and "-Infinity".
    """
    try:
        text = _encode(row)
    except ValueError:
        text = _encode(json.loads(json.dumps(row), parse_constant=str))
    return text.encode(errors="backslashreplace")


def as_jsonl(sample: Sample) -> tuple[bytes, list[str]]:
    """Return a sample's line, which predicts what its conversation does not say, and fields it does
    not give back.
    """
    row = _line(sample, [name for name in _FIELDS if name not in _PREDICTED])
    again = _read(row)
    if set(_PREDICTED) & set(_different(sample, again)):
        row |= _line(sample, _PREDICTED)
        again = _read(row)
    return encoded(row), _different(sample, again)


def _read(row: Row) -> Sample:
    found = JsonLines().sample(loads(encoded(row)), _PLACE)
    if isinstance(found, BadRecord):
        raise ValueError(found.reason)
    return found


def _different(sample: Sample, again: Sample) -> list[str]:
    unequal = [name for name in _FIELDS if getattr(sample, name) != getattr(again, name)]
    return [name for name in unequal if _shown(sample, name) != _shown(again, name)]


def _shown(sample: Sample, name: str) -> str:
    """Return what is to be kept of a field, as text.

    The text of arguments only where they are no object.
    """
    value = getattr(sample, name)
    if name == "calls" and value:
        value = tuple(map(_without_text, value))
    elif name == "turns":
        value = tuple([tuple([_as_said(message) for message in turn]) for turn in value])
    return json.dumps(_plain(value), sort_keys=True)


def _without_text(call: ToolCall) -> ToolCall:
    return call if call.arguments is None else replace(call, raw_arguments=None)


def _as_said(message: Message) -> Message:
    calls = [
        ToolCall(name=each.name, arguments=each.arguments, raw_arguments=each.raw_arguments)
        for each in message.tool_calls
    ]
    said = {"content": message.content or None, "tool_calls": tuple(map(_without_text, calls))}
    return replace(message, name=None, tool_call_id=None, **said)


def _line(sample: Sample, fields: Any) -> Row:
    number = sample.source.id if sample.source is not None else None
    row: Row = {"version": _VERSION, "id": sample.id if str(number) != sample.id else number}
    for name in fields:
        value = getattr(sample, name)
        if name not in (*_PREDICTED, "status", "error", "id") and value != getattr(_NOTHING, name):
            row[name] = _plain(value)
    if sample.usage is None and sample.agent_usage is not None:
        row["usage"] = sample.agent_usage
    if "calls" in fields:
        said = {name: getattr(sample, name) for name in _PREDICTED}
        row["predicted"] = {
            name: _plain(value) for name, value in said.items() if value is not None
        }
    if "error" in fields and sample.status is not Status.OK:
        error = sample.error
        row["error"] = "" if error is None else {"type": error.type, "message": error.message}
    return row


def _plain(value: Any) -> Any:
    """Return a part of a sample as JSON, without what is as if nobody had said it."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {
            key: _plain(each) if isinstance(each, Rule) else each for key, each in value.items()
        }
    if not isinstance(value, msgspec.Struct):
        return value
    defaults = _defaults(type(value))
    known = ((name, getattr(value, name)) for name in value.__struct_fields__)
    row = {name: _plain(each) for name, each in known if each != defaults[name]}
    if isinstance(value, Message):
        if value.tool_calls:
            ids = [{} if each.id is None else {"id": each.id} for each in value.tool_calls]
            calls = zip(ids, map(_function, value.tool_calls), strict=True)
            row["tool_calls"] = [
                {**named, "type": "function", "function": call} for named, call in calls
            ]
        return {"role": value.role, "content": value.content, **row}
    if isinstance(value, Expectation):  # the calls behind the rest
        return row | {name: row.pop(name) for name in ("calls", "alternatives") if name in row}
    if isinstance(value, ToolCall | ExpectedCall):
        row = {**(called := _function(value)), **row, **called}
        row.pop("raw_arguments", None)
        if not value.name and "names" in row:
            del row["name"]
    return row


def _function(call: ToolCall | ExpectedCall) -> Row:
    """Return name and arguments of a call: their text where it is theirs."""
    arguments, raw = call.arguments, call.raw_arguments
    is_text = arguments is None or (raw is not None and parse_arguments(raw)[0] == arguments)
    return {"name": call.name, "arguments": raw if is_text else arguments}


def as_atif(sample: Sample, *, plain: bool = False) -> tuple[bytes, list[str]]:
    """Return a sample's trajectory, and the fields that it does not give back.

    What ATIF lacks stands under ``extra.gradestack`` of trajectory, steps, calls and results,
    unless it is to be plain.
    """
    written = _Trajectory(sample, plain=plain)
    again = _read_atif(written.document)
    if plain:
        lost = [
            name
            for name in _different(sample, again)
            if getattr(sample, name) != getattr(_NOTHING, name)
        ]
        return encoded(written.document), [*lost, *written.left_out]
    written.complete(again)
    return encoded(written.document), _different(sample, _read_atif(written.document))


def _read_atif(document: Row) -> Sample:
    return next(iter(Atif().samples_of_record(loads(encoded(document)), _PLACE, "")))


_SOURCES: Final = {"assistant": "agent", "user": "user"}
_TOTALS: Final = {
    "total_prompt_tokens": "input_tokens",
    "total_completion_tokens": "output_tokens",
    "total_cached_tokens": "cached_input_tokens",
    "total_cost_usd": "cost_usd",
}


class _Trajectory:
    """The trajectory of a sample, and the parts of messages and results that a plain one leaves
    out.
    """

    def __init__(self, sample: Sample, *, plain: bool) -> None:
        self.sample, self.plain = sample, plain
        self.left_out: list[str] = []
        self.steps: list[Row] = []
        self._entries: list[Row] = []
        self._open: list[tuple[ToolCall, Row, str]] = []
        self._ids: set[str] = set()
        self._audio = False
        self._steps()
        facets, usage = sample.facets, sample.usage
        named = [part for part in (sample.id, sample.model, sample.run) if part is not None]
        known = {key: facets.get(f"agent_{key}") for key in ("name", "version")}
        agent: Row = {
            key: each if isinstance(each, str) else "unknown" for key, each in known.items()
        }
        if sample.model is not None:
            agent["model_name"] = sample.model
        if sample.tools is not None:
            agent["tool_definitions"] = [
                {"type": "function", "function": _plain(tool)} for tool in sample.tools
            ]
        totals = {
            key: getattr(usage, name)
            for key, name in _TOTALS.items()
            if getattr(usage, name, None) is not None
        }
        self.document: Row = {
            "schema_version": f"ATIF-v1.{8 if self._audio else 7}",
            **({"session_id": sample.trace["session_id"]} if "session_id" in sample.trace else {}),
            "trajectory_id": sample.id if sample.run is None else "/".join(map(str, named)),
            "agent": agent,
            "steps": self.steps,
            "final_metrics": {**totals, "total_steps": len(self.steps)},
        }

    def _own(self, holder: Row, **lacking: Any) -> None:
        if self.plain:
            self.left_out += lacking
        elif lacking:
            holder["extra"] = {**holder.get("extra", {}), "gradestack": lacking}

    def _said(self, content: Any) -> tuple[Any, Row]:
        if content is None or isinstance(content, str):
            return content, {}
        parts = content if isinstance(content, list) else []
        if parts and all(map(_is_part, parts)):
            self._audio |= any(each["type"] == "audio" for each in parts)
            return parts, {}
        return text_of(content) or compact(content), {"content": content}

    def _step(self, source: str, content: Any, **lacking: Any) -> Row:
        said, apart = self._said(content)
        step: Row = {
            "step_id": len(self.steps) + 1,
            "source": source,
            "message": "" if said is None else said,
        }
        self._own(step, **lacking, **apart)
        self.steps.append(step)
        return step

    def _steps(self) -> None:  # noqa: C901
        sample = self.sample
        messages = [message for turn in sample.turns for message in turn]
        made = [call for each in messages if each.role == "assistant" for call in each.tool_calls]
        calls = [call for call in sample.calls or () if call.requestor == "assistant"]
        if [call.name for call in made] == [call.name for call in calls]:
            made = calls
        waiting = iter(made)
        for each in messages:
            if each.role in {"tool", "function"}:
                self._result_message(each)
                continue
            role = each.role if each.role not in {"system", *_SOURCES} else None
            lacking = {
                key: value
                for key, value in (("role", role), ("name", each.name))
                if value is not None
            }
            step = self._step(_SOURCES.get(each.role, "system"), each.content, **lacking)
            if each.role == "assistant":
                if each.reasoning is not None:
                    step["reasoning_content"] = each.reasoning
                self._made(step, [next(waiting) for _ in each.tool_calls])
        if not messages:
            asked = (sample.input,) if isinstance(sample.input, str) else sample.input or ()
            for text in asked:
                self._step("user", text)
        if (calls and not made) or (not messages and (sample.calls, sample.text) != (None, None)):
            last = self.steps[-1] if self.steps and self.steps[-1]["source"] == "agent" else None
            self._made(last or self._step("agent", None if messages else sample.text), calls)
        for call, step, identifier in self._open:
            if call.status in {"ok", "error"} or call.result is not None:
                self._result(step, identifier, call.result, failed=call.status == "error")

    def _made(self, step: Row, calls: list[ToolCall]) -> None:
        for call in calls:
            identifier = call.id or ""
            while not identifier or identifier in self._ids:
                identifier = f"call_{len(self._ids) + 1}{identifier and '_'}{identifier}"
            self._ids.add(identifier)
            arguments = {} if call.arguments is None else dict(call.arguments)
            entry = {"tool_call_id": identifier, "function_name": call.name, "arguments": arguments}
            step.setdefault("tool_calls", []).append(entry)
            self._entries.append(entry)
            self._open.append((call, step, identifier))

    def _result_message(self, message: Message) -> None:
        """Put the result in a message beside its call.

        The one of its id, else the oldest open one of its name.
        """
        for number, (call, step, identifier) in enumerate(self._open):
            named = message.name in {None, call.name} if message.tool_call_id is None else False
            if named or (message.tool_call_id is not None and message.tool_call_id == call.id):
                name = None if self.plain else message.name  # it is the call's
                self._result(
                    step, identifier, message.content, failed=call.status == "error", name=name
                )
                del self._open[number]
                return
        step = self.steps[-1] if self.steps else self._step("system", None)
        self._result(step, None, message.content, name=message.name)

    def _result(
        self,
        step: Row,
        identifier: str | None,
        content: Any,
        *,
        failed: bool = False,
        name: str | None = None,
    ) -> None:
        said, apart = self._said(content)
        result: Row = {} if identifier is None else {"source_call_id": identifier}
        if said is not None:
            result["content"] = said
        if failed:
            result["extra"] = {"is_error": True}
        self._own(result, **apart, **({} if name is None else {"name": name}))
        step.setdefault("observation", {"results": []})["results"].append(result)

    def complete(self, again: Sample) -> None:
        sample = self.sample
        different = _different(sample, again)
        predicted = [name for name in _PREDICTED if name in different]
        names = [[call.name for call in each.calls or ()] for each in (sample, again)]
        if (
            "calls" in predicted
            and sample.calls
            and names[0] == names[1]
            and len(names[0]) == len(self._entries)
        ):
            predicted.remove("calls")
            for call, other, entry in zip(
                sample.calls, again.calls or (), self._entries, strict=True
            ):
                keep = ("raw_arguments",) if call.arguments is not None else ()
                known = (
                    (name, getattr(call, name))
                    for name in call.__struct_fields__
                    if name not in keep
                )
                self._own(
                    entry, **{name: value for name, value in known if value != getattr(other, name)}
                )
        fields = [name for name in different if name not in _PREDICTED]
        row = _line(sample, fields)
        own = {
            name: row.get(name)
            for name in (*fields, *(("error",) if "status" in fields else ()))
            if name != "status"
        }
        if predicted:
            said = _line(sample, _PREDICTED)["predicted"]
            own["predicted"] = {name: said.get(name) for name in predicted}
        if own:
            self._own(self.document, version=_VERSION, **own)


def _is_part(part: Any) -> bool:
    key, kind = (
        ("text", str) if isinstance(part, dict) and part.get("type") == "text" else ("source", dict)
    )
    named = isinstance(part, dict) and part.keys() == {"type", key} and isinstance(part[key], kind)
    return named and part["type"] in {"text", "image", "audio"}
