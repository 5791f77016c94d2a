"""gradestack's own input form: one sample per line, easy to write from anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Inputs,
    Message,
    RecordFile,
    RecordReader,
    Rule,
    Sample,
    Shard,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    replace,
    suggest,
)
from gradestack.jsonio import JsonProblem, iter_lines, loads, numbered_lines
from gradestack_plugins.readers import chat, jsonl_fast
from gradestack_plugins.readers.jsonl_schema import SAMPLE_SCHEMA, VERSIONS

_KEYS = frozenset(SAMPLE_SCHEMA["properties"])
_SIDE_KEYS = ("calls", "label", "text", "plan")
_EXPECTED_KEYS = ("calls", "alternatives", "forbidden", "label", "text", "plan", "state")


class _Wrong(ValueError):
    """A record that does not follow the form; the message names the key."""


def _wrong(key: str, wanted: str, value: Any) -> _Wrong:
    shown = json.dumps(value, default=str)
    return _Wrong(f"{key}: expected {wanted}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")


def _text(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _wrong(key, "text", value)


def _identifier(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _wrong("id", "text or a whole number", value)


def _named(value: Any, key: str, *, several: bool = False) -> list[Mapping[str, Any]]:
    """Return the entries of a list of calls, each of which names its tool."""
    if not isinstance(value, list):
        raise _wrong(key, "a list of calls", value)
    for position, entry in enumerate(value):
        function = entry.get("function") if isinstance(entry, Mapping) else None
        named = function if isinstance(function, Mapping) else entry
        given = isinstance(named, Mapping) and (isinstance(named.get("name"), str) or (several and named.get("names")))
        if not given:
            raise _wrong(f"{key}[{position}]", "a call with a name", entry)
    return value


def _details(entry: Mapping[str, Any], form: type[Details], key: str) -> dict[str, Any]:
    """Return what a call says beyond name and arguments.

    Raises:
        _Wrong: It is of another kind than the form's.
    """
    given = {name: entry[name] for name in form.__struct_fields__ if entry.get(name) is not None}
    return _converted(given, form, key) if given else {}


def _converted(given: Any, form: type[Details], key: str) -> dict[str, Any]:
    try:
        return msgspec.structs.asdict(msgspec.convert(given, form))
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        msg = f"{key}{where.rstrip('`')}: {what[:1].lower()}{what[1:]}"
        raise _Wrong(msg) from error


def _made(value: Any, key: str) -> tuple[ToolCall, ...]:
    found = []
    for position, entry in enumerate(_named(value, key)):
        call = chat.tool_call(entry)
        details = {} if "function" in entry else _details(entry, jsonl_fast.CallDetails, f"{key}[{position}]")
        if call is not None:
            found.append(replace(call, **details) if details else call)
    return tuple(found)


class _Expected(msgspec.Struct):
    """What the form may say of an expected call, beyond name and arguments."""

    names: tuple[str, ...] = ()
    rules: dict[str, Rule] | None = None
    optional: bool = False
    turn: int | None = None
    group: int | None = None


Details = TypeVar("Details", jsonl_fast.CallDetails, _Expected)


def _expected(value: Any, key: str, version: int) -> tuple[ExpectedCall, ...]:
    found = []
    for position, entry in enumerate(_named(value, key, several=True)):
        call = chat.tool_call(entry)
        if call is None:
            continue
        open_ = version > 1 and "arguments" in entry and entry["arguments"] is None
        requestor = entry.get("requestor")
        found.append(
            ExpectedCall(
                name=call.name,
                arguments=None if open_ else call.arguments,
                raw_arguments=call.raw_arguments if call.arguments is None else None,
                requestor=requestor if isinstance(requestor, str) else None,
                **_details(entry, _Expected, f"{key}[{position}]"),
            )
        )
    return tuple(found)


Calls = Callable[[Any, str], tuple[Any, ...]]


def _side(value: Any, key: str, calls: Calls, known: tuple[str, ...] = _SIDE_KEYS) -> dict[str, Any]:
    """Return calls, label, text and plan of ``expected`` or ``predicted``, from any of its short forms."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"label": value, "text": value}
    if isinstance(value, list):
        return {"calls": calls(value, key)}
    if not isinstance(value, Mapping):
        raise _wrong(key, "calls, text or an object", value)
    if "name" in value or "function" in value or ("names" in value and "names" not in known):
        return {"calls": calls([value], key)}
    for name in value:
        if name not in known:
            hint = suggest(name, known) or f"; known: {', '.join(known)}"
            msg = f"{key}.{name}: unknown key{hint}"
            raise _Wrong(msg)
    found: dict[str, Any] = {name: value[name] for name in ("label", "text", "plan") if value.get(name) is not None}
    for name in ("label", "text"):
        turns = name == "text" and isinstance(found.get(name), list) and all(isinstance(t, str) for t in found[name])
        if name in found and not isinstance(found[name], str) and not turns:
            raise _wrong(f"{key}.{name}", "text", found[name])
        if turns:
            found[name] = tuple(found[name])
    if value.get("calls") is not None:
        found["calls"] = calls(value["calls"], f"{key}.calls")
    return found


def _expectation(value: Any, version: int) -> Expectation:
    def calls(value: Any, key: str) -> tuple[ExpectedCall, ...]:
        return _expected(value, key, version)

    found = _side(value, "expected", calls, _EXPECTED_KEYS)
    if isinstance(value, Mapping):
        lists = value.get("alternatives")
        if lists is not None and not isinstance(lists, list):
            raise _wrong("expected.alternatives", "a list of lists of calls", lists)
        if lists:
            named = enumerate(lists)
            found["alternatives"] = tuple(calls(each, f"expected.alternatives[{at}]") for at, each in named)
        forbidden = value.get("forbidden")
        if forbidden is not None:
            found["forbidden"] = _texts(forbidden, "expected.forbidden")
        if value.get("state") is not None:
            found["state"] = value["state"]
    return Expectation(**found)


def _texts(value: Any, key: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise _wrong(key, "a list of texts", value)


def _turns(record: Mapping[str, Any]) -> tuple[tuple[Message, ...], ...]:
    turns = record.get("turns")
    if turns is None:
        messages = record.get("messages")
        turns = [] if messages is None else [messages]
    if not isinstance(turns, list):
        raise _wrong("turns", "a list of lists of messages", turns)
    for turn in turns:
        if not isinstance(turn, list) or not all(isinstance(each, Mapping) for each in turn):
            raise _wrong("messages", "a list of messages", turn)
    return tuple(chat.messages(turn) for turn in turns)


def _tools(value: Any) -> tuple[ToolSpec, ...] | None:
    if value is None:
        return None
    specs = [chat.tool_spec(each) for each in value] if isinstance(value, list) else [None]
    if not all(specs):
        raise _wrong("tools", "a list of tools with a name", value)
    return tuple(spec for spec in specs if spec is not None)


def _error(value: Any) -> Fault | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        kind, message = value.get("type"), value.get("message")
        return Fault(category="target", code="target_error", message=str(message or ""), type=str(kind or ""))
    if isinstance(value, str):
        return Fault(category="target", code="target_error", message=value)
    raise _wrong("error", "text or an object with type and message", value)


def _mapping(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = record.get(key)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise _wrong(key, "an object", value)


def _input(value: Any) -> str | tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise _wrong("input", "text or a list of texts", value)


def _run(value: Any) -> int | str | None:
    if value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _wrong("run", "a whole number or text", value)


def _trace(record: Mapping[str, Any]) -> dict[str, str]:
    value = _mapping(record, "trace")
    if all(isinstance(each, str) for each in value.values()):
        return dict(value)
    raise _wrong("trace", "an object of texts", value)


def _version_problem(record: Any) -> str | None:
    version = record.get("version", VERSIONS[0]) if isinstance(record, Mapping) else VERSIONS[0]
    if version in VERSIONS and not isinstance(version, bool):
        return None
    return (
        f"version {version!r} of the sample form is unknown, this gradestack reads versions up to {VERSIONS[-1]}; "
        "upgrade gradestack, or write the file in the form of `gradestack schema sample`"
    )


@attrs.frozen(kw_only=True)
class JsonLines(RecordReader):
    """One JSON object per line: ``id``, ``expected``, ``predicted``, and whatever else is known of the run.

    ``expected`` and ``predicted`` are a list of calls, a text (taken as label and as answer text), or an object with
    ``calls``, ``label``, ``text``, ``plan`` (``expected`` also ``alternatives``, ``forbidden``, ``state``). Calls are
    ``{"name", "arguments"}`` or in OpenAI's form; arguments are an object or JSON text. Without ``predicted``, calls
    and answer are taken from ``messages``. The form has versions; the key ``version`` is optional and means 1 when
    absent. Version 2 differs in that ``null`` as the arguments of an expected call means that they are not compared.
    The JSON Schema is printed by ``gradestack schema sample``.
    """

    provides = frozenset(
        {
            "model",
            "run",
            "input",
            "turns",
            "calls",
            "label",
            "text",
            "plan",
            "tools",
            "cluster",
            "expected",
            "recorded",
            "state",
            "ended",
            "trace",
            "children",
            "agent_id",
            "usage",
            "agent_usage",
            "facets",
        }
    )
    stack = "jsonl"
    layout = "lines"
    behind_others = 0.0

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, Mapping):
            return None
        own = {"expected", "predicted", "messages", "turns"} & set(record)
        return 0.5 if "id" in record and own and not set(record) - _KEYS else 0.0

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of one line."""
        return SAMPLE_SCHEMA

    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        """Yield the inputs.

        Raises:
            DataError: A file says it is of another version of the form.
        """
        for given in inputs.data:
            self._check_version(given.path)
            yield RecordFile(input=given)

    @staticmethod
    def _check_version(path: Path) -> None:
        for line in iter_lines(path):
            try:
                problem = _version_problem(loads(line.data))
            except JsonProblem:
                return
            if problem:
                msg = f"{path}:{line.number}: {problem}"
                raise DataError(msg)
            return

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        shown, sample_of = shard.input.shown, jsonl_fast.sample_of
        for number, data in numbered_lines(shard.input.path, shard.start, shard.end, shard.first_line):
            source = Source(file=shown, ordinal=number - 1, line=number)
            try:
                record: Sample | BadRecord = sample_of(data, source)
            except (ValueError, RecursionError, jsonl_fast.Unusual):
                record = self._thorough(data, source)
            yield record

    def _thorough(self, data: bytes, source: Source) -> Sample | BadRecord:
        try:
            record = loads(data)
        except JsonProblem as problem:
            return BadRecord(source=source, reason=str(problem))
        return self.sample(record, source)

    def record(self, record: Any, *, file: str, ordinal: int) -> Sample | BadRecord:
        """Return the sample of one decoded record."""
        return self.sample(record, Source(file=file, ordinal=ordinal))

    def sample(self, record: Any, source: Source) -> Sample | BadRecord:
        """Return the sample of one decoded record, or what is wrong with it."""
        try:
            return _sample(record, source)
        except _Wrong as wrong:
            return BadRecord(source=source, reason=str(wrong), native=record)
        except RecursionError:
            return BadRecord(source=source, reason="nested too deeply")


def _sample(record: Any, source: Source) -> Sample:
    if not isinstance(record, Mapping):
        raise _wrong("record", "an object", record)
    if problem := _version_problem(record):
        raise _Wrong(problem)
    for key in record:
        if key not in _KEYS:
            msg = f"{key}: unknown key{suggest(key, _KEYS) or '; put your own data under facets'}"
            raise _Wrong(msg)
    if "id" not in record:
        msg = "id is missing"
        raise _Wrong(msg)
    turns = _turns(record)
    predicted = _side(record.get("predicted"), "predicted", _made)
    error = _error(record.get("error"))
    flat = [message for turn in turns for message in turn]
    if "predicted" not in record and flat:
        predicted["calls"] = chat.made_calls(flat)
        answers = [chat.text_of(message.content) for message in flat if message.role == "assistant"]
        predicted["text"] = answers[-1] if answers else None
    answer = predicted.get("text")
    children = record.get("children")
    return Sample(
        id=_identifier(record["id"]),
        cluster=_text(record, "cluster"),
        model=_text(record, "model"),
        run=_run(record.get("run")),
        input=_input(record.get("input")),
        turns=turns,
        calls=predicted.get("calls"),
        label=predicted.get("label"),
        text="\n".join(answer) if isinstance(answer, tuple) else answer,
        plan=predicted.get("plan"),
        tools=_tools(record.get("tools")),
        expected=_expectation(record.get("expected"), record.get("version", VERSIONS[0])),
        recorded=_mapping(record, "recorded"),
        status=Status.OK if error is None else Status.FAILED,
        error=error,
        state=record.get("state"),
        ended=_text(record, "ended"),
        trace=_trace(record),
        children=() if children is None else _texts(children, "children"),
        agent_id=_text(record, "agent_id"),
        usage=jsonl_fast.usage_of(record.get("usage")),
        agent_usage=record.get("usage"),
        facets=_mapping(record, "facets"),
        source=source,
    )
