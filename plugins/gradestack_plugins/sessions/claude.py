"""Reader ``claude_code``: session files of Claude Code, and its stream-json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import Input, Inputs, RecordFile, Source, Usage, compile_later, reading
from gradestack.jsonio import as_list, as_map, as_number, compact, open_regular
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.declared import Flag, Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader
from gradestack_plugins.sessions.lines import (
    SURE,
    add_facets,
    day_of,
    drop_repeated_lines,
    session_run,
)

_SESSION_LINES: Final = frozenset({"user", "assistant"})
_SESSIONS: Final = frozenset({"sessionId", "session_id"})
"""Keys of a session's id, of which every line of a session has one."""
_PLACES: Final = frozenset({"parentUuid", "parent_tool_use_id"})
_START: Final = frozenset({"session_id", "tools"})
_ECHOES: Final = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<task-notification>",
    "[Request interrupted by user",
)
"""Beginnings of texts that Claude Code writes in the user's name."""
_NO_MODEL: Final = "<synthetic>"
"""The model of messages that no model wrote."""
_HEAD: Final = 64 * 1024
_UUID: Final = compile_later(rb'"uuid"\s*:\s*"([^"]{1,100})"')
_ANSWER: Final = compile_later(rb'"id"\s*:\s*"(msg_[^"]{1,100})"')


class _Line(msgspec.Struct, rename="camel"):
    """A line of a session file, or of stream-json, whose keys are in snake case."""

    type: Text = None
    subtype: Text = None
    message: Object = None
    uuid: Text = None
    parent_uuid: Text = None
    logical_parent_uuid: Text = None
    session_id: Text = None
    agent_id: Text = None
    is_sidechain: Flag = None
    is_meta: Flag = None
    is_compact_summary: Flag = None
    is_api_error_message: Flag = None
    timestamp: Text = None
    cwd: Text = None
    git_branch: Text = None
    version: Text = None
    printed_session: Text = msgspec.field(name="session_id", default=None)
    parent_call: Text = msgspec.field(name="parent_tool_use_id", default=None)


class _Entry(msgspec.Struct):
    """The needed parts of a line that may belong to a conversation.

    Attributes:
        message: The message of the user or of the model, or a result; None on other lines.
        facets: Working directory, branch, version and day.
    """

    uuid: str
    parent: str
    source: Source
    message: dict[str, Any] | None
    holds_only_results: bool
    facets: dict[str, str | None]


def _message_of(line: _Line) -> dict[str, Any] | None:
    """Return the message of a line; None where the program wrote it by itself."""
    message = line.message
    if message is None or line.type not in _SESSION_LINES:
        return None
    is_of_program = line.is_meta or line.is_compact_summary or line.is_api_error_message
    if is_of_program or message.get("model") == _NO_MODEL or _is_echo(message):
        return None
    return message


def _is_echo(message: dict[str, Any]) -> bool:
    """Return whether a message in the user's name was written by the program."""
    text = message.get("content")
    if isinstance(text, list) and len(text) == 1:
        text = word(text[0], "text")
    return isinstance(text, str) and text.lstrip().startswith(_ECHOES)


class Copies(msgspec.Struct, frozen=True):
    """Session files that repeat the history of others.

    Attributes:
        contained: File whose messages are all in another file -> that other file.
        counted: File -> ids of answers whose usage is counted in an earlier file.
    """

    contained: Mapping[str, str] = {}
    counted: Mapping[str, frozenset[str]] = {}


class ClaudeCode(RunReader):
    """Reads sessions of Claude Code: the files below ``~/.claude/projects``, and ``stream-json``.

    A session is one run; its id is the session's. One answer over several lines counts once, and so
    does a line whose uuid is repeated. Of branches that begin at one message the branch that ends
    last is read. Sub-agents are runs of their own, SESSION/AGENT, in the cluster of their session
    and among the children of its run. Lines that the program wrote by itself (summaries, meta
    lines, errors of the API) are left out. The ``result`` lines of stream-json give cost and time.
    A document of a session in the web lists its lines under ``loglines``.
    A new file of a resumed session may repeat its history. A file whose messages are all in the new
    one is then left out, and an answer's usage counts once.
    """

    example_file = "~/.claude/projects/PROJECT/SESSION.jsonl"
    version = "1"
    marks = (("loglines", "message"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        if _listed_lines(record):
            return SURE
        kind = word(record, "type")
        keys = record.keys()
        has_session = not keys.isdisjoint(_SESSIONS)
        if kind in _SESSION_LINES and isinstance(record.get("message"), dict):
            if has_session and not record.keys().isdisjoint(_PLACES):
                return SURE
            return 0.0
        is_end = kind == "result" and "total_cost_usd" in record and has_session
        is_start = word(record, "subtype") == "init" and record.keys() >= _START
        is_summary = kind == "summary" and "leafUuid" in record
        if is_end or is_start or is_summary or kind == "file-history-snapshot":
            return SURE
        return None if has_session and kind else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        if word(record, "type") and not record.keys().isdisjoint(_SESSIONS):
            return True
        return cls.looks_like(record) != 0

    @override
    def index(self, inputs: Inputs) -> Copies:
        """Find the files of one history: the uuid of their first messages is the same."""
        histories: dict[bytes, list[Input]] = {}
        has_several = len(inputs.data) > 1
        for file in inputs.data if has_several else ():
            with reading(file.shown), open_regular(file.path) as opened:
                first = _UUID.search(opened.read(_HEAD))
            if first is not None:
                histories.setdefault(first[1], []).append(file)
        contained: dict[str, str] = {}
        counted: dict[str, frozenset[str]] = {}
        for files in histories.values():
            if len(files) > 1:
                _compare_histories(files, contained, counted)
        return Copies(contained, counted)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield the files that are left out, and why."""
        for name, other in self.index(inputs).contained.items():
            yield f"{name}: left out: all its messages are also in {other}, which resumed it"

    @override
    def files(self, inputs: Inputs, index: Copies) -> Iterator[RecordFile]:
        for planned in super().files(inputs, index):
            if planned.input.shown not in index.contained:
                yield planned

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Copies) -> Iterator[Run]:
        sessions = _Sessions(index.counted.get(file.shown, frozenset()))
        lines = chain.from_iterable(_lines_of(record, file.name) for record in records)
        for record in drop_repeated_lines(lines, _uuid_of, sessions.remarks):
            sessions.add_line(record)
        yield from sessions.runs()


def _listed_lines(record: dict[str, Any]) -> list[Any]:
    """Return the lines that a document of a session in the web lists; none of another record."""
    loglines = record.get("loglines")
    lines = as_list(loglines)
    listed = [dict(as_map(line)) for line in lines]
    are_own = any(isinstance(line.get("message"), dict) for line in listed)
    return listed if are_own else []


def _lines_of(record: Record, stem: str) -> Iterator[Record]:
    """Yield the lines that a record lists, or is; where they name no session, the file does."""
    if "loglines" not in record.value:
        yield record
        return
    for line in _listed_lines(record.value):
        if line.keys().isdisjoint(_SESSIONS):
            line["sessionId"] = stem
        yield Record(line, record.source)


def _uuid_of(line: Any) -> str:
    return word(line, "uuid")


def _compare_histories(
    files: list[Input], contained: dict[str, str], counted: dict[str, frozenset[str]]
) -> None:
    """Add which files of one history stand in others, and which answers in earlier ones."""
    uuids: dict[str, frozenset[bytes]] = {}
    answers: dict[str, frozenset[bytes]] = {}
    for file in files:
        with reading(file.shown), open_regular(file.path) as opened:
            text = opened.read()
        matches = _UUID.findall(text)
        uuids[file.shown] = frozenset(matches)
        answers[file.shown] = frozenset(_ANSWER.findall(text))
    own_files: list[str] = []
    earlier: frozenset[bytes] = frozenset()
    for name in sorted(uuids, key=lambda name: len(uuids[name]), reverse=True):
        holder = next((other for other in own_files if uuids[name] <= uuids[other]), None)
        if holder is not None:
            contained[name] = holder
            continue
        own_files.append(name)
        identifiers = answers[name] & earlier
        counted[name] = frozenset(identifier.decode() for identifier in identifiers)
        earlier |= answers[name]


def _holds_only_results(message: dict[str, Any] | None) -> bool:
    """Return whether a message holds results of calls alone."""
    blocks = as_list(as_map(message).get("content"))
    words = {word(block, "type") for block in blocks}
    return words == {"tool_result"}


_Part = tuple[str, str]
"""A session, and its sub-agent; "" for the session itself."""
_FACETS: Final = ("cwd", "branch", "version", "day")


class _Sessions:
    """The lines of a file, by session and sub-agent.

    Attributes:
        remarks: The remarks on all lines.
    """

    def __init__(self, counted: frozenset[str]) -> None:
        """Begin without lines; ``counted`` are the answers that another file counts already."""
        self.remarks: dict[str, int] = {}
        self._counted = counted
        self._entries: dict[_Part, list[_Entry]] = {}
        self._agents: dict[str, list[str]] = {}
        """Session -> its sub-agents."""
        self._firsts: dict[_Part, dict[str, Any]] = {}
        """Part -> its first line with a message."""
        self._starts: dict[_Part, dict[str, Any]] = {}
        """Part -> the line with which stream-json begins."""
        self._facets: dict[tuple[str | None, ...], dict[str, str | None]] = {}
        """The facets that lines have, each once."""
        self._ends: dict[str, list[dict[str, Any]]] = {}
        self._roots: dict[str, str] = {}
        """Line of a sub-agent without a name -> the first line of its chain, which names it."""
        self._begun_by: dict[str, str] = {}
        """Line -> the session its chain began in: a resumed one goes on under another name."""
        self._names: dict[str, str] = {}
        """Session in which a chain began -> the session that it ends in."""

    def add_line(self, record: Record) -> None:
        """Add the next line of the file."""
        value = record.value
        line, remarks = convert_record(value if isinstance(value, dict) else {}, _Line)
        for kind in remarks:
            self.remarks[kind] = self.remarks.get(kind, 0) + 1
        name = line.session_id or line.printed_session
        if name is None:
            return
        session = self._begun_by.get(line.parent_uuid or "", name)
        self._begun_by[line.uuid or ""] = session
        if not line.is_sidechain:
            self._names[session] = name
        if line.type == "result":
            self._ends.setdefault(session, []).append(value)
        agent = self._agent_of(line)
        part = session, agent
        if agent and part not in self._entries:
            self._agents.setdefault(session, []).append(agent)
        if line.subtype == "init":
            self._starts.setdefault(part, value)
        entry = self._entry_of(line, record.source)
        self._entries.setdefault(part, []).append(entry)
        if entry.message is not None and part not in self._firsts:
            self._firsts[part] = value

    def _entry_of(self, line: _Line, source: Source) -> _Entry:
        """Return the needed parts of a line."""
        message = _message_of(line)
        if message is not None and word(message, "id") in self._counted:
            message = {**message, "usage": None}
        facets = (line.cwd, line.git_branch, line.version, day_of(line.timestamp))
        if facets not in self._facets:
            self._facets[facets] = dict(zip(_FACETS, facets, strict=True))
        return _Entry(
            uuid=line.uuid or "",
            parent=line.parent_uuid or line.logical_parent_uuid or "",
            source=source,
            message=message,
            holds_only_results=_holds_only_results(message),
            facets=self._facets[facets],
        )

    def _agent_of(self, line: _Line) -> str:
        """Return the name of the sub-agent that a line belongs to; "" for the session's own."""
        if line.parent_call is not None:
            return line.parent_call
        if not line.is_sidechain:
            return ""
        if line.agent_id is not None:
            return line.agent_id
        uuid = line.uuid or ""
        self._roots[uuid] = self._roots.get(line.parent_uuid or "", uuid)
        return self._roots[uuid]

    def runs(self) -> Iterator[Run]:
        """Yield the runs of the sessions, and those of their sub-agents."""
        remarks = self.remarks
        for part, entries in self._entries.items():
            run = self._run_of(part, entries)
            entries.clear()  # what the run needs is in it
            if run is None:
                continue
            if not part[1]:
                run.remarks, remarks = remarks, {}
            yield run

    def _run_of(self, part: _Part, entries: list[_Entry]) -> Run | None:
        """Return the run of a session or of a sub-agent; None where it has no message."""
        session, agent = part
        name = self._names.get(session, session)
        last_branch = _last_branch(entries)
        messages = [entry for entry in last_branch if entry.message is not None]
        if not messages:
            return None
        first = Record(self._firsts[part], messages[0].source)
        parent = name if agent else ""
        run = session_run(first, agent or name, name, parent)
        run.entries = [entry.message for entry in messages]
        add_facets(run, **messages[0].facets)
        if part in self._starts:
            _add_start(run, self._starts[part])
        if not agent:
            others = self._agents.get(session, ())
            run.children = tuple([f"{name}/{other}" for other in others])
            if session in self._ends:
                _add_ends(run, self._ends[session])
        return run


def _add_start(run: Run, start: dict[str, Any]) -> None:
    """Add the model and the tools that stream-json names in its first line."""
    run.model = word(start, "model") or None
    tools = as_list(start.get("tools"))
    run.tools = [{"name": name} for name in tools if isinstance(name, str)] or None


def _last_branch(entries: list[_Entry]) -> list[_Entry]:
    """Return the lines without those of branches that were left.

    Several lines may follow one. Lines with results, and pieces of one answer, belong to the lines
    behind them; each other line begins a branch, and the branch that ends last counts.
    """
    indexes = {entry.uuid: index for index, entry in enumerate(entries) if entry.uuid}
    following: dict[int, list[int]] = {}
    for index, entry in enumerate(entries):
        parent = indexes.get(entry.parent)
        if parent is not None and parent < index:
            following.setdefault(parent, []).append(index)
    ends = list(range(len(entries)))
    begins_branch = [
        entry.message is not None and not entry.holds_only_results for entry in entries
    ]
    for index in reversed(following):
        branches = following[index]
        ends[index] = max(map(ends.__getitem__, branches))
        begins_branch[index] |= any(map(begins_branch.__getitem__, branches))
    left_out: set[int] = set()
    for branches in following.values():
        if len(branches) > 1:
            last = max(branches, key=ends.__getitem__)
            left_out |= {index for index in branches if index != last and begins_branch[index]}
    for index, branches in following.items():
        if index in left_out:
            left_out |= set(branches)
    return [entry for index, entry in enumerate(entries) if index not in left_out]


def _add_ends(run: Run, ends: Sequence[dict[str, Any]]) -> None:
    """Add the cost, the time and the end of the run from stream-json's lines at ends of turns."""
    last = ends[-1]
    times = [as_number(end.get("duration_ms")) or 0 for end in ends]
    replies = [entry for entry in run.entries if entry.get("role") == "assistant"]
    requests = {compact(reply.get("id")) for reply in replies}
    cost = as_number(last.get("total_cost_usd"))
    seconds = sum(times) / 1000
    run.usage = Usage(requests=len(requests), cost_usd=cost, seconds=seconds)
    subtype = word(last, "subtype")
    run.ended = "completed"
    if subtype == "error_max_turns":
        run.ended = "limit:turns"
    elif last.get("is_error") is True:
        run.ended = "error"
        result = last.get("result")
        run.error = result or subtype
