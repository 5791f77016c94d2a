"""Reader ``otel``: traces of agents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    Input,
    Inputs,
    RecordReader,
    Sample,
    Shard,
    Source,
    read_document,
    read_records,
    reading,
)
from gradestack.jsonio import (
    SHARD_BYTES,
    Element,
    JsonProblem,
    Member,
    Range,
    iter_members,
    line_ranges,
    list_ranges,
    loads,
    open_regular,
    read_regular,
    whole_line,
)
from gradestack_plugins.otel.dialects import kind_of
from gradestack_plugins.otel.spans import KEYS, Log, Record, Span, log_of, records_of
from gradestack_plugins.otel.trace import recorded_of, sample_of_trace, session_of
from gradestack_plugins.readers.chat.identity import NOTHING
from gradestack_plugins.readers.chat.samples import PROVIDES

_PIECE: Final = 64 * 1024
"""Bytes of a piece of a file; the pieces of each trace are known."""
_OTLP: Final = (b'"resourceSpans"', b'"resourceLogs"', b'"batches"')
_MARK: Final = b"\xef\xbb\xbf"
_WITHIN: Final = (
    {"scopeSpans", "instrumentationLibrarySpans", "scopeLogs"},
    {"spans", "logRecords"},
)
"""Keys of the lists in a resource, and of those in a scope."""
_JAEGER: Final = (b'"traceID"', b'"spans"')
_CONSOLE: Final = (b'"context"', b'"span_id"', b'"parent_id"', b'"trace_state"')
"""Keys of a span as the console exporter prints it."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a file.

    Attributes:
        input_number: The number of its input.
        within: Of a part of a large resource, the keys its list stands under.
        about: The rest of that resource.
    """

    input_number: int
    range: Range
    layout: Literal["lines", "list", "whole", "documents"]
    within: tuple[str, ...] = ()
    about: Mapping[str, Any] = NOTHING


class Index(msgspec.Struct):
    """The pieces of traces.

    Attributes:
        pieces: All pieces, in the order of the files.
        places: The pieces of each trace or session that has a model's answer or a call, in the
            order of the first ones.
        sessions: The session of each trace, where traces are put together.
        others: How many traces have neither an answer nor a call.
        lost_scores: Scores in log records of these.
    """

    inputs: tuple[Input, ...]
    pieces: list[Piece] = []
    places: dict[str, list[int]] = {}
    sessions: dict[str, str] = {}
    bad: list[BadRecord] = []
    others: int = 0
    lost_scores: int = 0


@attrs.frozen(kw_only=True)
class Traces(RecordReader):
    """Reads traces of agents.

    OTLP as JSON or JSON Lines, also with log records, exports of Tempo and Jaeger, and spans as the
    console's exporter prints them.

    One sample per trace, or per session with ``unit: session``. Each span has its own dialect:
    GenAI conventions (current ones, and those whose messages are events or log records),
    OpenInference, Traceloop, ADK. Calls are those that answers make, in the order of spans. An
    execution of a tool gives its result to its call, by the call's id or else by name and order. It
    is a call of its own where no answer made it. Usage is summed over answers, each once. A trace
    without answer and execution is left out and counted. A trace whose root ended in an error is a
    failed run.
    """

    example_file = "traces.json"
    version: ClassVar[str] = "1"
    provides = PROVIDES - {"agent_usage", "run", "expected"}
    stack: ClassVar[str | None] = "scores"

    unit: Literal["trace", "session"] = "trace"
    """What one sample is."""

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        start = head.removeprefix(_MARK).lstrip()[:4096]
        if not start.startswith((b"{", b"[")):
            return 0.0
        if any(key in start for key in _OTLP):
            return 0.95
        marks = (_JAEGER, _CONSOLE)
        if any(all(key in start for key in keys) for keys in marks):
            return 0.9
        return 0.0

    @override
    def index(self, inputs: Inputs) -> Index:
        """Find the pieces of every trace, in one pass over the files."""
        states = [file.path.stat() for file in inputs.data]
        versions = tuple([(state.st_ino, state.st_size, state.st_mtime_ns) for state in states])
        return _index(self.unit, inputs.data, versions)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield the number of traces that are left out, and of scores with them."""
        index = self.index(inputs)
        others = index.others
        if others:
            traces = "trace" if others == 1 else "traces"
            reason = "no model's answer and no call of a tool in them"
            yield f"{others:,} {traces} left out: {reason}"
        if index.lost_scores:
            reason = "of traces without a model call in the data"
            yield f"scores not recorded: {index.lost_scores:,}, {reason}"

    @override
    def plan(self, inputs: Inputs, index: Index) -> Iterator[Shard]:
        position = 0
        for ordinal, (names, size) in enumerate(_groups_of_traces(index)):
            first = 0
            if names:
                piece = index.pieces[index.places[names[0]][0]]
                first = piece.input_number
            extra = [position, position + len(names)]
            end = max(1, size)
            bad_count = len(index.bad)
            yield Shard(
                ordinal=ordinal,
                input=index.inputs[first],
                end=end,
                position=position + bad_count * (ordinal > 0),
                extra=extra,
            )
            position += len(names)

    @override
    def read(self, shard: Shard, index: Index) -> Iterator[Sample | BadRecord]:
        if not shard.ordinal:
            yield from index.bad
        first, end = shard.extra
        places = list(index.places)
        names = places[first:end]
        records: dict[str, list[Span | Log]] = {name: [] for name in names}
        sources: dict[str, Source] = {}
        numbers = {number for name in names for number in index.places[name]}
        for number in sorted(numbers):
            piece = index.pieces[number]
            file = index.inputs[piece.input_number]
            for element in _elements(file, piece):
                for record in records_of(element.value) if element.problem is None else ():
                    name = index.sessions.get(record.trace, record.trace)
                    if name in records:
                        form = record.form(record)
                        records[name].append(form)
                        sources.setdefault(name, _source_of(file, element))
        for name in names:
            read = partial(_read_trace, name, records.pop(name))
            yield from self.guarded(read, {}, sources[name])


def _groups_of_traces(index: Index) -> Iterator[tuple[list[str], int]]:
    """Yield the names of traces whose pieces make up a shard, and the bytes of these pieces."""
    names: list[str] = []
    size = 0
    pieces: set[int] = set()
    for name, places in index.places.items():
        if size >= SHARD_BYTES:
            yield names, size
            names, size, pieces = [], 0, set()
        names.append(name)
        numbers = set(places) - pieces
        size += sum(_size(index.pieces[number].range) for number in numbers)
        pieces.update(places)
    yield names, size


def _source_of(file: Input, element: Element) -> Source:
    return Source(file=file.shown, ordinal=element.ordinal, line=element.line)


def _read_trace(name: str, records: list[Span | Log], _: Any, source: Source) -> tuple[Sample]:
    return (sample_of_trace(name, records, source),)


@lru_cache(maxsize=4)
def _index(unit: str, inputs: tuple[Input, ...], _: tuple[tuple[int, ...], ...]) -> Index:
    """Return the pieces of traces.

    It is asked for when the stack is chosen, and again for grading: files are read once.
    """
    index = Index(inputs=inputs)
    pieces: dict[str, list[int]] = {}
    agents: set[str] = set()
    scores = Counter[str]()
    for number, file in enumerate(inputs):
        for piece in _pieces(number, file):
            index.pieces.append(piece)
            for element in _elements(file, piece):
                if element.problem is not None:
                    source = _source_of(file, element)
                    bad_record = BadRecord(source=source, reason=element.problem)
                    index.bad.append(bad_record)
                    continue
                for record in records_of(element.value):
                    own_pieces = pieces.setdefault(record.trace, [])
                    piece_count = len(index.pieces)
                    if own_pieces[-1:] != [piece_count - 1]:
                        own_pieces.append(len(index.pieces) - 1)
                    if record.form is log_of:
                        scores[record.trace] += bool(recorded_of([log_of(record).event]))
                    else:
                        _add_span(record, unit, agents, index.sessions)
    keys = pieces.keys()
    index.others = len(keys - agents)
    index.lost_scores = sum(count for trace, count in scores.items() if trace not in agents)
    for trace, own_pieces in pieces.items():
        if trace in agents:
            name = index.sessions.get(trace, trace)
            index.places[name] = sorted({*index.places.get(name, ()), *own_pieces})
    return index


def _add_span(record: Record, unit: str, agents: set[str], sessions: dict[str, str]) -> None:
    """Add the trace of an answer or a call, and the session of a trace."""
    trace = record.trace
    if trace not in agents and kind_of(record.attributes) is not None:
        agents.add(trace)
    if unit == "session" and trace not in sessions:
        session = session_of(record.attributes)
        if session is not None:
            sessions[trace] = session


def _pieces(number: int, file: Input) -> Iterator[Piece]:
    """Yield the pieces of a file."""
    path = file.path
    with reading(file.shown), open_regular(path) as opened:
        is_list = opened.read(_PIECE).removeprefix(_MARK).lstrip().startswith(b"[")
    if is_list:
        parts = list_ranges(path, _PIECE)
        yield from (Piece(number, part, "list") for part in parts)
        return
    members = list(iter_members(path, _PIECE))
    has_more = _has_more(path, members)
    if has_more and not _begins_a_document(path):
        yield from (Piece(number, Range(*part), "lines") for part in line_ranges(path, _PIECE))
        return
    lists = [
        member.ranges for member in members if member.key in KEYS and member.ranges is not None
    ]
    for part in (part for ranges in lists for part in ranges):
        piece = Piece(number, part, "list")
        yield from _parts(path, piece)
    if not lists:
        layout: Literal["whole", "documents"] = "documents" if has_more else "whole"
        status = path.stat()
        yield Piece(number, Range(0, status.st_size), layout)


def _parts(path: Path, piece: Piece) -> Iterator[Piece]:
    """Yield a range of resources, the scopes of a large one, or the spans of a large scope."""
    depth = len(piece.within)
    size = _size(piece.range)
    if size < SHARD_BYTES or depth == len(_WITHIN):
        yield piece
        return
    for part in list_ranges(path, 1, piece.range):
        if _size(part) >= SHARD_BYTES:
            members = list(iter_members(path, _PIECE, part))
        else:
            members = []
        resources = [member for member in members if member.key == "resource"]
        documents_by_key = {member.key: loads(member.read(path)) for member in resources}
        about = documents_by_key or piece.about
        lists = [member for member in members if member.key in _WITHIN[depth] and member.ranges]
        for member in lists:
            within = (*piece.within, member.key)
            for inner in member.ranges or ():
                yield from _parts(path, Piece(piece.input_number, inner, "list", within, about))
        if not lists:
            yield msgspec.structs.replace(piece, range=part)


def _size(part: Range) -> int:
    return max(1, (part.end or 0) - part.start)


def _has_more(path: Path, members: list[Member]) -> bool:
    """Return whether another document stands behind the first of a file, or in its second line."""
    end = members[-1].end if members else None
    with open_regular(path) as file:
        if end is not None:
            file.seek(end)
            return file.read(_PIECE).lstrip().removeprefix(b"}").lstrip() != b""
        whole_line(file)
        return _is_object(whole_line(file))


def _begins_a_document(path: Path) -> bool:
    """Return whether the first lines of a file are parts of an object over several lines."""
    with open_regular(path) as file:
        lines = [whole_line(file).removeprefix(_MARK), whole_line(file)]
    return not any(map(_is_object, lines))


def _is_object(line: bytes) -> bool:
    with suppress(JsonProblem):
        return isinstance(loads(line), dict)
    return False


def _documents(file: Input) -> Iterator[Element]:
    """Yield JSON documents that stand one after the other, each over several lines."""
    with reading(file.shown):
        text = read_regular(file.path).decode(errors="replace").lstrip("\ufeff")
    decoder = json.JSONDecoder()
    position = _skip_space(text, 0)
    ordinal = 0
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError as problem:
            yield Element(ordinal, line, problem=f"not JSON: {problem}")
            return
        yield Element(ordinal, line, value)
        position = _skip_space(text, position)
        ordinal += 1


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _elements(file: Input, piece: Piece) -> Iterator[Element]:
    if piece.layout == "whole":
        return read_document(file)
    if piece.layout == "documents":
        return _documents(file)
    elements = read_records(file, piece.range, piece.layout)
    if piece.within:
        return map(partial(_in_resource, piece), elements)
    return elements


def _in_resource(piece: Piece, element: Element) -> Element:
    """Return an element of a part of a resource in the resource."""
    value = element.value
    for key in reversed(piece.within):
        value = {key: [value]}
    return msgspec.structs.replace(element, value={**piece.about, **value})
