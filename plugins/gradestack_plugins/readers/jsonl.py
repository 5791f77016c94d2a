"""gradestack's own input form: one sample per line, easy to write from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Fault,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    Status,
    ToolSpec,
    replace,
    suggest,
)
from gradestack.jsonio import JsonProblem, check_utf8, iter_lines, line_blocks, loads
from gradestack_plugins.readers import chat, jsonl_lines
from gradestack_plugins.readers.jsonl_lines import SAMPLE_SCHEMA, VERSIONS
from gradestack_plugins.readers.jsonl_sides import Wrong, expectation, side, wrong

_KEYS = frozenset(SAMPLE_SCHEMA["properties"])
_OWN = frozenset({"expected", "predicted", "messages", "turns", "error"})
"""Those by one of which, beside the id, a record is known."""


_PROVIDED = """
model run input turns calls label text plan tools cluster expected recorded state ended trace
children agent_id usage agent_usage facets
"""


class _Plain(msgspec.Struct, gc=False):
    """What the form holds in values of one kind."""

    cluster: str | None = None
    model: str | None = None
    run: int | str | None = None
    input: str | tuple[str, ...] | None = None
    ended: str | None = None
    trace: dict[str, str] | None = None
    children: tuple[str, ...] | None = None
    agent_id: str | None = None


_WANTED = {
    "run": "a whole number or text",
    "input": "text or a list of texts",
    "trace": "an object of texts",
    "children": "a list of texts",
}


def _plain(record: Mapping[str, Any]) -> _Plain:
    try:
        return msgspec.convert(record, _Plain)
    except ValueError:  # of msgspec's own kind, or a lone surrogate
        given = {key: record[key] for key in _Plain.__struct_fields__ if key in record}
        key = next(key for key, value in given.items() if not jsonl_lines.fits(key, value, _Plain))
        raise wrong(key, _WANTED.get(key, "text"), given[key]) from None


def _identified(value: Any, source: Source) -> tuple[str, Source]:
    """Return an id as text, and the place with the number it was recorded as."""
    if isinstance(value, str):
        return value, source
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value), replace(source, id=value)
    raise wrong("id", "text or a whole number", value)


def _talk(record: Mapping[str, Any]) -> Any:
    """Return the conversation of a record; None where it has none."""
    turns, messages = record.get("turns"), record.get("messages")
    if turns is None and messages is None:
        return None
    if turns is not None and not isinstance(turns, list):
        raise wrong("turns", "a list of lists of messages", turns)
    for turn in [messages] if turns is None else turns:
        if not isinstance(turn, list) or not all(isinstance(each, chat.OBJECT) for each in turn):
            raise wrong("messages", "a list of messages", turn)
    try:
        from gradestack_plugins.readers.chat.conversation import conversation_of  # noqa: PLC0415 - many files have none

        return conversation_of(messages, turns=turns)
    except ValueError as error:
        raise Wrong(str(error)) from None


def _tools(value: Any) -> tuple[ToolSpec, ...] | None:
    if value is None:
        return None
    specs = [chat.tool_spec(each) for each in value] if isinstance(value, list) else [None]
    if not all(specs):
        raise wrong("tools", "a list of tools with a name", value)
    return tuple(spec for spec in specs if spec is not None)


def _error(value: Any) -> Fault | None:
    if value is None:
        return None
    if isinstance(value, chat.OBJECT):
        kind, message = value.get("type"), value.get("message")
        return Fault(category="target", code="target_error", message=str(message or ""), type=str(kind or ""))
    if isinstance(value, str):
        return Fault(category="target", code="target_error", message=value)
    raise wrong("error", "text or an object with type and message", value)


def _mapping(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = record.get(key)
    if value is None:
        return {}
    if isinstance(value, chat.OBJECT):
        return value
    raise wrong(key, "an object", value)


def _version_problem(record: Any) -> str | None:
    version = record.get("version", VERSIONS[0]) if isinstance(record, chat.OBJECT) else VERSIONS[0]
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
    ``{"name", "arguments"}`` or in OpenAI's form; arguments are an object or JSON text, also under ``args``, ``input``
    or ``parameters``. Without ``predicted``, calls and answer are taken from ``messages``, of whatever dialect each
    of them is. The form has versions; the key ``version`` is optional and means 1 when absent. Version 2 differs in
    that ``null`` as the arguments of an expected call means that they are not compared, and in that details of calls
    made that are of another kind than the form's, and unknown keys of expected calls, are refused, not left out. The
    JSON Schema is printed by ``gradestack schema sample``.
    """

    version = "2"
    provides = frozenset(_PROVIDED.split())
    stack = "auto"
    empty_answers = True
    layout = "lines"
    behind_others = 0.0

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, chat.OBJECT):
            return None
        own = _OWN & set(record)
        identified = "id" in record and not isinstance(record["id"], list | Mapping)  # else it holds columns
        return 0.5 if identified and own and not set(record) - _KEYS else 0.0

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        if not ("id" in record and _OWN & record.keys()):
            return None
        found = cls().record(record, file="", ordinal=0)
        return found.reason if isinstance(found, BadRecord) else None

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
                raise DataError(f"{path}:{line.number}: {problem}")
            return

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        for block in self.blocks(shard, index):
            yield from block

    @override
    def blocks(self, shard: Shard, index: Any) -> Iterator[list[Sample | BadRecord]]:
        shown, sample_of = shard.input.shown, jsonl_lines.sample_of
        for first, lines in line_blocks(shard.input.path, shard.start, shard.end, shard.first_line):
            block: list[Sample | BadRecord] = []
            plain = all(map(bytes.isascii, lines))
            lines.reverse()
            for number in range(first, first + len(lines)):
                data = lines.pop()  # which may be long, and is not needed while somebody works on what it holds
                try:
                    if not plain:
                        check_utf8(data)  # what is kept raw, or overridden by a later key, is not looked at otherwise
                    record: Sample | BadRecord = sample_of(data, shown, number)
                except (ValueError, RecursionError, jsonl_lines.Unusual):
                    if not data or data.isspace():
                        continue
                    record = self._thorough(data, Source(file=shown, ordinal=number - 1, line=number))
                if self.ids is not None and isinstance(record, Sample):
                    (record,) = self.identified((record,), loads(data))
                block.append(record)
                del data
            if block:
                yield block

    def _thorough(self, data: bytes, source: Source) -> Sample | BadRecord:
        data = data.removesuffix(b"\n")  # of which messages count the characters
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
        except Wrong as error:
            return BadRecord(source=source, reason=str(error), native=record)
        except RecursionError:
            return BadRecord(source=source, reason="nested too deeply")


def _sample(record: Any, source: Source) -> Sample:
    if not isinstance(record, chat.OBJECT):
        raise wrong("record", "an object", record)
    if problem := _version_problem(record):
        raise Wrong(problem)
    if not _KEYS.issuperset(record):
        key = next(each for each in record if each not in _KEYS)
        raise Wrong(f"{key}: unknown key{suggest(key, _KEYS) or '; put your own data under facets'}")
    if "id" not in record:
        raise Wrong("id is missing")
    talk = _talk(record)
    version = record.get("version", VERSIONS[0])
    predicted = side(record.get("predicted"), "predicted", version)
    error = _error(record.get("error"))
    said = {} if talk is None else talk.said(("calls", "text") if "predicted" in record else ())
    predicted |= {name: said[name] for name in ("calls", "text") if name in said}
    answer = predicted.get("text")
    plain, usage = _plain(record), record.get("usage")
    identifier, place = _identified(record["id"], source)
    sample = Sample(
        id=identifier,
        cluster=plain.cluster,
        model=said.get("model") if plain.model is None else plain.model,
        run=plain.run,
        input=said.get("input") if plain.input is None else plain.input,
        turns=said.get("turns", ()),
        calls=predicted.get("calls"),
        label=predicted.get("label"),
        text="\n".join(answer) if isinstance(answer, tuple) else answer,
        plan=predicted.get("plan"),
        tools=_tools(record.get("tools")),
        expected=expectation(record.get("expected"), version),
        recorded=_mapping(record, "recorded"),
        status=Status.OK if error is None else Status.FAILED,
        error=error,
        state=record.get("state"),
        ended=plain.ended,
        trace=plain.trace or {},
        children=plain.children or (),
        agent_id=plain.agent_id,
        usage=said.get("usage") if usage is None else jsonl_lines.usage_of(usage),
        agent_usage=said.get("agent_usage") if usage is None else usage,
        facets=_mapping(record, "facets"),
        source=place,
    )
    return replace(sample, remarks=talk.remarks) if talk is not None and talk.remarks else sample
