"""Reader ``otel``: traces of agents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from itertools import pairwise
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
from gradestack_plugins.otel.spans import KEYS, Log, Span, log_of, records_of
from gradestack_plugins.otel.trace import recorded_of, sample_of, session_of
from gradestack_plugins.readers.chat.identity import NOTHING

_PIECE: Final = (
    64 * 1024
)  # bytes of a file that are looked at together: what a trace needs is told by such pieces
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
    """A part of a file."""

    given: int  # the number of its input
    range: Range
    layout: Literal["lines", "list", "whole", "documents"]
    within: tuple[str, ...] = ()
    about: Mapping[str, Any] = NOTHING
    """Of a part of a large resource.

    The keys its list stands under, and what else is said of the resource.
    """


class Index(msgspec.Struct):
    """Where traces stand."""

    given: tuple[Input, ...]
    pieces: list[Piece] = msgspec.field(default_factory=list)
    places: dict[str, list[int]] = msgspec.field(default_factory=dict)
    """The pieces of each trace or session that has a model's answer or a call, in the order of the
    first ones.
    """
    sessions: dict[str, str] = msgspec.field(default_factory=dict)
    """The session of each trace, where those are put together."""
    bad: list[BadRecord] = msgspec.field(default_factory=list)
    others: int = 0  # traces without an answer or a call
    lost: int = 0  # scores in log records of these


@attrs.frozen(kw_only=True)
class Traces(RecordReader):
    """Reads traces of agents.

    OTLP as JSON or JSON Lines, also with log records, exports of Tempo and Jaeger.

    One sample per trace, or per session with ``unit: session``. The dialect is told span by span:
    GenAI conventions (current ones, and those whose messages are events or log records),
    OpenInference, Traceloop, ADK. Calls are those that answers make, in the order of spans; an
    execution of a tool gives its result to its call, by the call's id or else by name and order,
    and is a call of its own where no answer made it. Usage is summed over answers, each once. A
    trace without answer and execution is left out and counted. A trace whose root ended in an error
    is a failed run.
    """

    example_file = "traces.json"
    version: ClassVar[str] = "1"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            "model",
            "input",
            "turns",
            "calls",
            "text",
            "tools",
            "recorded",
            "status",
            "error",
            "ended",
            "usage",
            "trace",
        }
        | {"cluster", "facets", "remarks", "source"}
    )
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
        return 0.9 if any(all(key in start for key in keys) for keys in marks) else 0.0

    @override
    def index(self, inputs: Inputs) -> Index:
        """Find the pieces of every trace, in one pass over the files."""
        given = (each.path.stat() for each in inputs.data)
        return _index(
            self.unit,
            inputs.data,
            tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in given),
        )

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield how many traces are left out, and how many scores with them."""
        index = self.index(inputs)
        if others := index.others:
            yield (
                f"{others:,} trace{'s' * (others > 1)} left out: no model's answer and no call "
                "of a tool in them"
            )
        if index.lost:
            yield f"scores not recorded: {index.lost:,}, of traces without a model call in the data"

    @override
    def plan(self, inputs: Inputs, index: Index) -> Iterator[Shard]:
        names, cuts, sizes, used = list(index.places), [0], [0], set[int]()
        for at, name in enumerate(names):
            places = index.places[name]
            if sizes[-1] >= SHARD_BYTES:
                cuts.append(at)
                sizes.append(0)
                used = set()
            sizes[-1] += sum(
                _size(index.pieces[place].range) for place in places if place not in used
            )
            used.update(places)
        for ordinal, (first, end) in enumerate(pairwise([*cuts, len(names)])):
            given = index.given[index.pieces[index.places[names[first]][0]].given if names else 0]
            position = first + len(index.bad) * (ordinal > 0)
            extra = [first, end]
            yield Shard(
                ordinal=ordinal,
                input=given,
                end=max(1, sizes[ordinal]),
                position=position,
                extra=extra,
            )

    @override
    def read(self, shard: Shard, index: Index) -> Iterator[Sample | BadRecord]:
        if not shard.ordinal:
            yield from index.bad
        first, end = shard.extra
        found: dict[str, tuple[Source, list[Span | Log]]] = {}
        names = list(index.places)[first:end]
        wanted = set(names)
        for place in sorted({place for name in names for place in index.places[name]}):
            piece = index.pieces[place]
            given = index.given[piece.given]
            for element in _elements(given, piece):
                source = Source(file=given.shown, ordinal=element.ordinal, line=element.line)
                for record in records_of(element.value) if element.problem is None else ():
                    name = index.sessions.get(record.trace, record.trace)
                    if name in wanted:
                        found.setdefault(name, (source, []))[1].append(record.form(record))
        for name in names:
            source, records = found.pop(name)
            yield from self.guarded(partial(_alone, name, records), {}, source)


@lru_cache(maxsize=4)
def _index(unit: str, inputs: tuple[Input, ...], _: tuple[tuple[int, ...], ...]) -> Index:  # noqa: C901
    """Return where traces stand.

    Asked for when the stack is chosen, and again for grading, files are read once.
    """
    found, agents, traces, scores = (
        Index(given=inputs),
        set[str](),
        dict[str, list[int]](),
        Counter[str](),
    )
    for number, given in enumerate(inputs):
        for piece in _pieces(number, given):
            found.pieces.append(piece)
            for element in _elements(given, piece):
                if element.problem is not None:
                    source = Source(file=given.shown, ordinal=element.ordinal, line=element.line)
                    found.bad.append(BadRecord(source=source, reason=element.problem))
                    continue
                for record in records_of(element.value):
                    places = traces.setdefault(record.trace, [])
                    if not places or places[-1] != len(found.pieces) - 1:
                        places.append(len(found.pieces) - 1)
                    if record.form is log_of:
                        scores[record.trace] += bool(recorded_of([log_of(record).event]))
                        continue
                    if record.trace not in agents and kind_of(record.attributes) is not None:
                        agents.add(record.trace)
                    if unit == "session" and (session := session_of(record.attributes)) is not None:
                        found.sessions.setdefault(record.trace, session)
    found.others = len(traces.keys() - agents)
    found.lost = sum(count for trace, count in scores.items() if trace not in agents)
    for trace, places in traces.items():
        if trace in agents:
            name = found.sessions.get(trace, trace)
            found.places[name] = sorted({*found.places.get(name, ()), *places})
    return found


def _alone(name: str, records: list[Span | Log], _: Any, source: Source) -> tuple[Sample]:
    return (sample_of(name, records, source),)


def _pieces(number: int, given: Input) -> Iterator[Piece]:
    path = given.path
    with reading(given.shown), open_regular(path) as file:
        listed = file.read(_PIECE).removeprefix(_MARK).lstrip().startswith(b"[")
    members = [] if listed else list(iter_members(path, _PIECE))
    goes_on = not listed and _goes_on(path, members)
    lists = [each.ranges for each in members if each.key in KEYS and each.ranges is not None]
    if listed:
        yield from (Piece(number, part, "list") for part in list_ranges(path, _PIECE))
    elif goes_on and not _begins_a_document(path):
        yield from (Piece(number, Range(*part), "lines") for part in line_ranges(path, _PIECE))
    elif lists:
        yield from (
            each
            for ranges in lists
            for part in ranges
            for each in _parts(path, Piece(number, part, "list"))
        )
    else:
        layout: Literal["whole", "documents"] = "documents" if goes_on else "whole"
        yield Piece(number, Range(0, path.stat().st_size), layout)


def _parts(path: Path, piece: Piece) -> Iterator[Piece]:
    """Yield a range of resources as it is, of a large one the ranges of its scopes, and of a large
    one its spans'.
    """
    if _size(piece.range) < SHARD_BYTES or len(piece.within) == len(_WITHIN):
        yield piece
        return
    for part in list_ranges(path, 1, piece.range):
        members = list(iter_members(path, _PIECE, part)) if _size(part) >= SHARD_BYTES else []
        about = {
            each.key: loads(each.read(path)) for each in members if each.key == "resource"
        } or piece.about
        lists = (each for each in members if each.key in _WITHIN[len(piece.within)])
        held = [((*piece.within, each.key), inner) for each in lists for inner in each.ranges or ()]
        for within, inner in held:
            yield from _parts(path, Piece(piece.given, inner, "list", within, about))
        if not held:
            yield msgspec.structs.replace(piece, range=part)


def _size(part: Range) -> int:
    return max(1, (part.end or 0) - part.start)


def _goes_on(path: Path, members: list[Member]) -> bool:
    """Return whether another document stands behind the first of a file, or in its second line."""
    with open_regular(path) as file:
        if members and (end := members[-1].end) is not None:
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


def _documents(given: Input) -> Iterator[Element]:
    """Yield JSON documents that stand one after the other, each over several lines."""
    with reading(given.shown):
        text = read_regular(given.path).decode(errors="replace").lstrip("\ufeff")
    decoder, position, ordinal = json.JSONDecoder(), 0, 0
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        line = text.count("\n", 0, position) + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError as problem:
            yield Element(ordinal, line, problem=f"not JSON: {problem}")
            return
        yield Element(ordinal, line, value)
        ordinal += 1


def _elements(given: Input, piece: Piece) -> Iterator[Element]:
    if piece.layout == "whole":
        return read_document(given)
    if piece.layout == "documents":
        return _documents(given)
    found = read_records(given, piece.range, piece.layout)
    return (_in_resource(piece, each) for each in found) if piece.within else found


def _in_resource(piece: Piece, element: Element) -> Element:
    value = element.value
    for key in reversed(piece.within):
        value = {key: [value]}
    return msgspec.structs.replace(element, value={**piece.about, **value})
