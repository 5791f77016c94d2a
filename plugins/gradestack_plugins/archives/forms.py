"""Samples written down: as lines of the ``jsonl`` form, and as ATIF trajectories."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
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
"""Fields about the reading of a record."""
_PREDICTED: Final = ("calls", "label", "text", "plan")
_FIELDS: Final = tuple(name for name in Sample.__struct_fields__ if name not in _NO_PLACE)
_VERSION: Final = 2
_NOTHING: Final = Sample(id="")
_SOURCE: Final = Source(file="")
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@cache
def _defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the defaults of a struct's fields."""
    fields = msgspec.structs.fields(kind)
    return {field.name: field.default for field in fields}


def encoded(row: Row) -> bytes:
    """Return a line of valid JSON, with lone surrogates escaped.

    NaN and infinities, which JSON lacks, are the texts "NaN", "Infinity" and "-Infinity".
    """
    try:
        text = _encode(row)
    except ValueError:
        document = json.loads(json.dumps(row), parse_constant=str)
        text = _encode(document)
    return text.encode(errors="backslashreplace")


def as_jsonl(sample: Sample) -> tuple[bytes, list[str]]:
    """Return a sample's line, and the fields that it does not give back.

    The line has a prediction where the conversation does not give it back.
    """
    fields = [name for name in _FIELDS if name not in _PREDICTED]
    row = _line(sample, fields)
    read_back = _read(row)
    if set(_PREDICTED) & set(_different(sample, read_back)):
        row |= _line(sample, _PREDICTED)
        read_back = _read(row)
    return encoded(row), _different(sample, read_back)


def _read(row: Row) -> Sample:
    sample = JsonLines().sample(loads(encoded(row)), _SOURCE)
    if isinstance(sample, BadRecord):
        raise ValueError(sample.reason)
    return sample


def _different(sample: Sample, read_back: Sample) -> list[str]:
    unequal = [name for name in _FIELDS if getattr(sample, name) != getattr(read_back, name)]
    return [name for name in unequal if _shown(sample, name) != _shown(read_back, name)]


def _shown(sample: Sample, name: str) -> str:
    """Return the part of a field that is to be given back, as text.

    The text of arguments counts only where they are no object.
    """
    value = getattr(sample, name)
    if name == "calls" and value:
        value = tuple(map(_without_text, value))
    elif name == "turns":
        turns = [tuple(map(_as_said, turn)) for turn in value]
        value = tuple(turns)
    return json.dumps(_plain(value), sort_keys=True)


def _without_text(call: ToolCall) -> ToolCall:
    if call.arguments is None:
        return call
    return replace(call, raw_arguments=None)


def _as_said(message: Message) -> Message:
    """Return a message with the names and arguments of its calls, without ids."""
    calls = []
    for call in message.tool_calls:
        arguments, raw = call.arguments, call.raw_arguments
        predicted_fields = ToolCall(name=call.name, arguments=arguments, raw_arguments=raw)
        calls.append(_without_text(predicted_fields))
    content = message.content or None
    return replace(message, name=None, tool_call_id=None, content=content, tool_calls=tuple(calls))


def _line(sample: Sample, fields: Iterable[str]) -> Row:
    """Return some fields of a sample in the jsonl form, with its id."""
    names = set(fields)
    number = None
    if sample.source is not None:
        number = sample.source.id
    row: Row = {"version": _VERSION, "id": sample.id if str(number) != sample.id else number}
    for name in fields:
        value = getattr(sample, name)
        if name not in _WRITTEN_APART and value != getattr(_NOTHING, name):
            row[name] = _plain(value)
    if sample.usage is None and sample.agent_usage is not None:
        row["usage"] = sample.agent_usage
    if "calls" in names:
        predicted_fields = {name: getattr(sample, name) for name in _PREDICTED}
        known = {
            name: _plain(value) for name, value in predicted_fields.items() if value is not None
        }
        row["predicted"] = known
    if "error" in names and sample.status is not Status.OK:
        error = sample.error
        row["error"] = "" if error is None else {"type": error.type, "message": error.message}
    return row


_WRITTEN_APART: Final = (*_PREDICTED, "status", "error", "id")


def _plain(value: Any) -> Any:
    """Return a part of a sample as JSON, without fields that have their default."""
    if isinstance(value, tuple):
        return list(map(_plain, value))
    if isinstance(value, Mapping):
        inners = value.values()
        are_rules = any(isinstance(inner, Rule) for inner in inners)
        if are_rules:
            return {key: _plain(inner) for key, inner in value.items()}
        return value
    return _plain_struct(value) if isinstance(value, msgspec.Struct) else value


def _plain_struct(value: msgspec.Struct) -> Row:
    """Return a part of a sample as JSON, in the order of the jsonl form."""
    defaults = _defaults(type(value))
    row: Row = {}
    for name in value.__struct_fields__:
        inner = getattr(value, name)
        if inner != defaults[name]:
            row[name] = _plain(inner)
    if isinstance(value, Message):
        if value.tool_calls:
            row["tool_calls"] = list(map(_chat_call, value.tool_calls))
        return {"role": value.role, "content": value.content, **row}
    if isinstance(value, Expectation):  # the calls behind the rest
        return row | {name: row.pop(name) for name in ("calls", "alternatives") if name in row}
    if isinstance(value, ToolCall | ExpectedCall):
        function = _function(value)
        row = {**function, **row, **function}
        row.pop("raw_arguments", None)
        if not value.name and "names" in row:
            del row["name"]
    return row


def _chat_call(call: ToolCall) -> Row:
    """Return the call of a message in the form of the APIs."""
    entry: Row = {} if call.id is None else {"id": call.id}
    return {**entry, "type": "function", "function": _function(call)}


def _function(call: ToolCall | ExpectedCall) -> Row:
    """Return name and arguments of a call; the arguments as text where that is their text."""
    arguments, raw = call.arguments, call.raw_arguments
    is_text = arguments is None
    if raw is not None and not is_text:
        first_argument = parse_arguments(raw)[0]
        is_text = first_argument == arguments
    return {"name": call.name, "arguments": raw if is_text else arguments}


def as_atif(sample: Sample, *, plain: bool = False) -> tuple[bytes, list[str]]:
    """Return a sample's trajectory, and the fields that it does not give back.

    What ATIF lacks stands under ``extra.gradestack`` of trajectory, steps, calls and results,
    unless it is to be plain.
    """
    written = _Trajectory(sample, plain=plain)
    read_back = _read_atif(written.document)
    if plain:
        different = _different(sample, read_back)
        lost_fields = [
            name for name in different if getattr(sample, name) != getattr(_NOTHING, name)
        ]
        return encoded(written.document), [*lost_fields, *written.left_out]
    written.complete(read_back)
    return encoded(written.document), _different(sample, _read_atif(written.document))


def _read_atif(document: Row) -> Sample:
    samples_of_record = Atif().samples_of_record(loads(encoded(document)), _SOURCE, "")
    return next(iter(samples_of_record))


_SOURCES: Final = {"assistant": "agent", "user": "user"}
_TOTALS: Final = {
    "total_prompt_tokens": "input_tokens",
    "total_completion_tokens": "output_tokens",
    "total_cached_tokens": "cached_input_tokens",
    "total_cost_usd": "cost_usd",
}


class _Trajectory:
    """Writes the trajectory of a sample.

    Attributes:
        document: The trajectory.
        left_out: The parts of messages and results that a plain one leaves out.
    """

    def __init__(self, sample: Sample, *, plain: bool) -> None:
        """Write a sample as the document of an ATIF trajectory; a plain one has no extras."""
        self.sample, self.plain = sample, plain
        self.left_out: list[str] = []
        self._steps: list[Row] = []
        self._entries: list[Row] = []
        self._open: list[tuple[ToolCall, Row, str]] = []
        self._ids: set[str] = set()
        self._has_audio = False
        self._write_steps()
        self.document = self._document()

    def _document(self) -> Row:
        """Return the ATIF document: ids, agent, steps and final metrics."""
        sample = self.sample
        schema_version = f"ATIF-v1.{8 if self._has_audio else 7}"
        document: Row = {"schema_version": schema_version}
        if "session_id" in sample.trace:
            document["session_id"] = sample.trace["session_id"]
        names = [str(part) for part in (sample.id, sample.model, sample.run) if part is not None]
        document["trajectory_id"] = sample.id if sample.run is None else "/".join(names)
        document["agent"] = self._agent_object()
        document["steps"] = self._steps
        totals: Row = {}
        for key, name in _TOTALS.items():
            amount = getattr(sample.usage, name, None)
            if amount is not None:
                totals[key] = amount
        total_steps = len(self._steps)
        document["final_metrics"] = {**totals, "total_steps": total_steps}
        return document

    def _agent_object(self) -> Row:
        """Return ATIF's ``agent`` object: name, version, model and tool definitions."""
        sample = self.sample
        agent: Row = {}
        for field in ("name", "version"):
            facet = sample.facets.get(f"agent_{field}")
            agent[field] = facet if isinstance(facet, str) else "unknown"  # ATIF requires both
        if sample.model is not None:
            agent["model_name"] = sample.model
        if sample.tools is not None:
            functions = map(_plain, sample.tools)
            agent["tool_definitions"] = [
                {"type": "function", "function": function} for function in functions
            ]
        return agent

    def _add_own(self, holder: Row, **lacking: Any) -> None:
        """Add what ATIF lacks to a part of the trajectory; a plain one leaves it out."""
        if self.plain:
            self.left_out += lacking
        elif lacking:
            extra = holder.get("extra", {})
            holder["extra"] = {**extra, "gradestack": lacking}

    def _content(self, content: Any) -> tuple[Any, Row]:
        """Return a content as ATIF has it, and the content itself where that is not given back."""
        if content is None or isinstance(content, str):
            return content, {}
        if isinstance(content, list) and content and all(map(_is_part, content)):
            self._has_audio |= any(part["type"] == "audio" for part in content)
            return content, {}
        text = text_of(content)
        return text or compact(content), {"content": content}

    def _add_step(self, source: str, content: Any, **lacking: Any) -> Row:
        message, extra_fields = self._content(content)
        step_count = len(self._steps)
        step_id = step_count + 1
        step: Row = {"step_id": step_id, "source": source}
        step["message"] = "" if message is None else message
        self._add_own(step, **lacking, **extra_fields)
        self._steps.append(step)
        return step

    def _write_steps(self) -> None:
        """Write messages, questions and calls as steps, and the results of calls into them."""
        sample = self.sample
        messages = [message for turn in sample.turns for message in turn]
        calls = [call for call in sample.calls or () if call.requestor == "assistant"]
        calls_of_messages: list[ToolCall] = []
        for message in messages:
            if message.role == "assistant":
                calls_of_messages += message.tool_calls
        names = [call.name for call in calls_of_messages]
        if names == [call.name for call in calls]:
            calls_of_messages = calls  # the same ones, with their results
        waiting = iter(calls_of_messages)
        for message in messages:
            self._add_message(message, waiting)
        if not messages:
            questions = (sample.input,) if isinstance(sample.input, str) else sample.input or ()
            for text in questions:
                self._add_step("user", text)
        has_answer = sample.calls is not None or sample.text is not None
        if (calls and not calls_of_messages) or (not messages and has_answer):
            last_answer = self._last_answer(None if messages else sample.text)
            self._add_calls(last_answer, calls)
        for call, step, identifier in self._open:
            if call.status in {"ok", "error"} or call.result is not None:
                has_failed = call.status == "error"
                self._add_result(step, identifier, call.result, has_failed=has_failed)

    def _last_answer(self, text: str | None) -> Row:
        """Return the last step where that is an answer, else a new one with a text."""
        if self._steps and self._steps[-1]["source"] == "agent":
            return self._steps[-1]
        return self._add_step("agent", text)

    def _add_message(self, message: Message, waiting: Iterator[ToolCall]) -> None:
        """Add a message as a step, or as the result of a call.

        Args:
            message: The message.
            waiting: The calls of answers that are not yet written.
        """
        if message.role in {"tool", "function"}:
            self._add_result_message(message)
            return
        lacking: Row = {}
        if message.role not in {"system", *_SOURCES}:
            lacking["role"] = message.role
        if message.name is not None:
            lacking["name"] = message.name
        source = _SOURCES.get(message.role, "system")
        step = self._add_step(source, message.content, **lacking)
        if message.role == "assistant":
            if message.reasoning is not None:
                step["reasoning_content"] = message.reasoning
            calls = [next(waiting) for _ in message.tool_calls]
            self._add_calls(step, calls)

    def _add_calls(self, step: Row, calls: list[ToolCall]) -> None:
        """Add calls to a step under unique ids, and keep them open for their results."""
        for call in calls:
            identifier = call.id or ""
            while not identifier or identifier in self._ids:
                suffix = f"_{identifier}" if identifier else ""
                identifier = f"call_{len(self._ids) + 1}{suffix}"
            self._ids.add(identifier)
            if call.arguments is None:
                arguments = {}
            else:
                arguments = dict(call.arguments)
            entry = {"tool_call_id": identifier, "function_name": call.name, "arguments": arguments}
            step.setdefault("tool_calls", []).append(entry)
            self._entries.append(entry)
            self._open.append((call, step, identifier))

    def _add_result_message(self, message: Message) -> None:
        """Add the result in a message beside its call.

        That is the call of its id, else the oldest open one of its name.
        """
        for number, (call, step, identifier) in enumerate(self._open):
            if message.tool_call_id is None:
                is_own = message.name in {None, call.name}
            else:
                is_own = message.tool_call_id == call.id
            if is_own:
                name = None if self.plain else message.name  # it is the call's
                has_failed = call.status == "error"
                self._add_result(
                    step, identifier, message.content, has_failed=has_failed, name=name
                )
                del self._open[number]
                return
        if self._steps:
            step = self._steps[-1]
        else:
            step = self._add_step("system", None)
        self._add_result(step, None, message.content, name=message.name)

    def _add_result(
        self,
        step: Row,
        identifier: str | None,
        content: Any,
        *,
        has_failed: bool = False,
        name: str | None = None,
    ) -> None:
        """Add a tool's result to the observation of a step."""
        predicted_fields, extra_fields = self._content(content)
        result: Row = {} if identifier is None else {"source_call_id": identifier}
        if predicted_fields is not None:
            result["content"] = predicted_fields
        if has_failed:
            result["extra"] = {"is_error": True}
        if name is not None:
            extra_fields["name"] = name
        self._add_own(result, **extra_fields)
        results = step.setdefault("observation", {"results": []})["results"]
        results.append(result)

    def complete(self, read_back: Sample) -> None:
        """Add the fields that the trajectory does not give back.

        Args:
            read_back: The sample that it gives.
        """
        different = _different(self.sample, read_back)
        predicted = [name for name in _PREDICTED if name in different]
        if "calls" in predicted and self._add_own_of_calls(read_back):
            predicted.remove("calls")
        fields = [name for name in different if name not in _PREDICTED]
        row = _line(self.sample, fields)
        extra_fields: Row = {name: row.get(name) for name in fields if name != "status"}
        if "status" in fields:
            extra_fields["error"] = row.get("error")
        if predicted:
            predicted_fields = _line(self.sample, _PREDICTED)["predicted"]
            extra_fields["predicted"] = {name: predicted_fields.get(name) for name in predicted}
        if extra_fields:
            self._add_own(self.document, version=_VERSION, **extra_fields)

    def _add_own_of_calls(self, read_back: Sample) -> bool:
        """Add the fields of calls that differ; return False where calls do not correspond."""
        calls = self.sample.calls or ()
        others = read_back.calls or ()
        names = [call.name for call in calls]
        if not calls or names != [call.name for call in others] or len(names) != len(self._entries):
            return False
        for call, other, entry in zip(calls, others, self._entries, strict=True):
            extra_fields: Row = {}
            for name in call.__struct_fields__:
                value = getattr(call, name)
                is_given = name == "raw_arguments" and call.arguments is not None
                if not is_given and value != getattr(other, name):
                    extra_fields[name] = value
            self._add_own(entry, **extra_fields)
        return True


def _is_part(part: Any) -> bool:
    """Return whether a value is a part of a content as ATIF writes it."""
    kind = None
    if isinstance(part, dict):
        kind = part.get("type")
    if kind == "text":
        keys = part.keys()
        return keys == {"type", "text"} and isinstance(part["text"], str)
    is_medium = kind in ("image", "audio") and part.keys() == {"type", "source"}
    return is_medium and isinstance(part["source"], dict)
