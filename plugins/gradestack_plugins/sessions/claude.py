"""Reader ``claude_code``: session files of Claude Code, and what it prints as stream-json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import Input, Inputs, RecordFile, Source, Usage, reading
from gradestack.jsonio import as_list, as_map, as_number, compact, open_regular
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.declared import Flag, Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SESSION_LINES: Final = frozenset({"user", "assistant"})
_SESSIONS: Final = frozenset({"sessionId", "session_id"})
"""Keys by one of which every line of a session names it."""
_SURE: Final = 0.97
_ECHOES: Final = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<task-notification>",
    "[Request interrupted by user",
)
"""How texts begin that Claude Code puts into the user's place."""
_MADE_UP: Final = "<synthetic>"
"""The model of messages that no model wrote."""
_HEAD: Final = 64 * 1024
_UUID: Final = re.compile(rb'"uuid"\s*:\s*"([^"]{1,100})"')
_ANSWER: Final = re.compile(rb'"id"\s*:\s*"(msg_[^"]{1,100})"')
_FACETS: Final = {"cwd": "cwd", "gitBranch": "branch", "version": "version"}


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
    printed_session: Text = msgspec.field(name="session_id", default=None)
    parent_call: Text = msgspec.field(name="parent_tool_use_id", default=None)


class _Entry(msgspec.Struct):
    """One line that may belong to a conversation, and where it stands."""

    line: _Line
    record: dict[str, Any]
    source: Source

    @property
    def is_said(self) -> bool:
        """Whether it is a message of the user, of the model, or a result."""
        line = self.line
        if line.type not in _SESSION_LINES or line.message is None:
            return False
        if line.is_meta or line.is_compact_summary or line.is_api_error_message:
            return False
        return line.message.get("model") != _MADE_UP and not _is_echo(line.message)

    @property
    def holds_only_results(self) -> bool:
        """Whether it is a message in the user's place that holds results of calls alone."""
        blocks = as_list(as_map(self.line.message).get("content"))
        return bool(blocks) and all(word(block, "type") == "tool_result" for block in blocks)


def _is_echo(message: dict[str, Any]) -> bool:
    """Return whether a message in the user's place was put there by the program."""
    content = message.get("content")
    blocks = as_list(content)
    text = word(blocks[0], "text") if len(blocks) == 1 else content
    return isinstance(text, str) and text.lstrip().startswith(_ECHOES)


class Copies(msgspec.Struct, frozen=True):
    """What several session files hold of one history."""

    whole: Mapping[str, str] = {}
    """File whose messages all stand in another one -> that other one."""
    counted: Mapping[str, frozenset[str]] = {}
    """File -> ids of answers whose usage an earlier file has."""


@attrs.frozen(kw_only=True)
class ClaudeCode(RunReader):
    """Reads sessions of Claude Code: the files below ``~/.claude/projects``, and ``stream-json``.

    A session is one run; its id is the session's. One answer over several lines counts once. Of
    branches that begin at one message the one that ends last is read. Sub-agents are runs of their
    own, SESSION/AGENT, in the cluster of their session and among the children of its run. Lines
    that the program wrote by itself (summaries, meta lines, errors of the API) are left out. Of
    stream-json cost and time are those of its ``result`` lines. Where a session was resumed in a new
    file that holds its history, too, the file whose messages all stand in the other is left out, and
    an answer's usage counts once.
    """

    example_file = "~/.claude/projects/PROJECT/SESSION.jsonl"
    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        has_session = not record.keys().isdisjoint(_SESSIONS)
        if word(record, "type") in _SESSION_LINES and isinstance(record.get("message"), dict):
            has_place = "parentUuid" in record or "parent_tool_use_id" in record
            return _SURE if has_session and has_place else 0.0
        if record.get("type") == "result" and "total_cost_usd" in record and has_session:
            return _SURE
        if word(record, "subtype") == "init" and "session_id" in record and "tools" in record:
            return _SURE
        kind = word(record, "type")
        if (kind == "summary" and "leafUuid" in record) or kind == "file-history-snapshot":
            return _SURE
        return None if has_session and kind else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        is_line = isinstance(record, dict) and bool(word(record, "type"))
        return is_line and (not record.keys().isdisjoint(_SESSIONS) or cls.looks_like(record) != 0)

    @override
    def index(self, inputs: Inputs) -> Copies:
        """Find the files that hold one history: their first messages have one uuid."""
        groups: dict[bytes, list[Input]] = {}
        for given in inputs.data if len(inputs.data) > 1 else ():
            with reading(given.shown), open_regular(given.path) as file:
                first = _UUID.search(file.read(_HEAD))
            if first is not None:
                groups.setdefault(first[1], []).append(given)
        whole: dict[str, str] = {}
        counted: dict[str, frozenset[str]] = {}
        for group in groups.values():
            if len(group) > 1:
                _compare_histories(group, whole, counted)
        return Copies(whole, counted)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield which files are left out, and why."""
        for name, other in self.index(inputs).whole.items():
            yield f"{name}: left out: all its messages stand in {other}, too, which resumed it"

    @override
    def files(self, inputs: Inputs, index: Copies) -> Iterator[RecordFile]:
        for planned in super().files(inputs, index):
            if planned.input.shown not in index.whole:
                yield planned

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Copies) -> Iterator[Run]:
        session = _Sessions(index.counted.get(file.shown, frozenset()))
        for value, source in records:
            session.add(value, source)
        yield from session.runs()


def _compare_histories(
    group: list[Input], whole: dict[str, str], counted: dict[str, frozenset[str]]
) -> None:
    """Add which files of one history stand in others, and which answers in earlier ones."""
    uuids: dict[str, frozenset[bytes]] = {}
    answers: dict[str, frozenset[bytes]] = {}
    for given in group:
        with reading(given.shown), open_regular(given.path) as file:
            text = file.read()
        uuids[given.shown] = frozenset(_UUID.findall(text))
        answers[given.shown] = frozenset(_ANSWER.findall(text))
    names = sorted(uuids, key=lambda name: len(uuids[name]), reverse=True)
    kept: list[str] = []
    seen: frozenset[bytes] = frozenset()
    for name in names:
        holder = next((other for other in kept if uuids[name] <= uuids[other]), None)
        if holder is not None:
            whole[name] = holder
            continue
        kept.append(name)
        counted[name] = frozenset(answer.decode() for answer in answers[name] & seen)
        seen |= answers[name]


class _Sessions:
    """The lines of a file, by session and sub-agent."""

    def __init__(self, counted: frozenset[str]) -> None:
        self._counted = counted
        self._lines: dict[tuple[str, str], list[_Entry]] = {}
        self._results: dict[str, list[dict[str, Any]]] = {}
        self._roots: dict[str, str] = {}
        """Line of a sub-agent without a name -> the first line of its chain, which names it."""
        self._begun_by: dict[str, str] = {}
        """Line -> the session its chain began in: a resumed one goes on under another name."""
        self._names: dict[str, str] = {}
        """Session in which a chain began -> the session that it ends in."""
        self._remarks: dict[str, int] = {}

    def add(self, value: Any, source: Source) -> None:
        """Take the next line of the file."""
        line, remarks = convert_record(value if isinstance(value, dict) else {}, _Line)
        for kind, times in remarks.items():
            self._remarks[kind] = self._remarks.get(kind, 0) + times
        name = line.session_id or line.printed_session
        if name is None:
            return
        session = self._begun_by.get(line.parent_uuid or "", name)
        self._begun_by[line.uuid or ""] = session
        if not line.is_sidechain:
            self._names[session] = name
        if line.type == "result":
            self._results.setdefault(session, []).append(value)
        if line.message is not None and word(line.message, "id") in self._counted:
            line.message = {key: each for key, each in line.message.items() if key != "usage"}
        place = session, self._agent_of(line)
        self._lines.setdefault(place, []).append(_Entry(line, value, source))

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
        remarks = self._remarks
        for (session, agent), entries in self._lines.items():
            name = self._names.get(session, session)
            run = _run_of(name, agent, entries)
            if run is None:
                continue
            if not agent:
                agents = [agent for of, agent in self._lines if of == session and agent]
                run.children = tuple([f"{name}/{agent}" for agent in agents])
                run.remarks, remarks = remarks, {}
                _add_results(run, self._results.get(session, []))
            yield run


def _run_of(session: str, agent: str, entries: list[_Entry]) -> Run | None:
    """Return the run of a session or of a sub-agent; None where nothing was said in it."""
    said = [entry for entry in _last_branch(entries) if entry.is_said]
    if not said:
        return None
    first = said[0]
    facets = {name: first.record[key] for key, name in _FACETS.items() if key in first.record}
    if first.line.timestamp is not None:
        facets["day"] = first.line.timestamp[:10]
    if agent:
        facets["subagent_of"] = session
    beginning = next((entry.record for entry in entries if entry.line.subtype == "init"), {})
    names = [name for name in as_list(beginning.get("tools")) if isinstance(name, str)]
    model = beginning.get("model")
    return Run(
        id=f"{session}/{agent}" if agent else session,
        entries=[as_map(entry.line.message) for entry in said],
        source=first.source,
        first=first.record,
        cluster=session,
        model=model if isinstance(model, str) else None,
        tools=[{"name": name} for name in names] or None,
        trace={"session_id": session},
        facets=facets,
    )


def _last_branch(entries: list[_Entry]) -> list[_Entry]:
    """Return the lines without those of branches that were left.

    Several lines may follow one. Those with results, and pieces of one answer, belong to what
    follows; of the others, each of which begins a branch, the one whose branch ends last counts.
    """
    places = {entry.line.uuid: place for place, entry in enumerate(entries) if entry.line.uuid}
    following: dict[int, list[int]] = {}
    for place, entry in enumerate(entries):
        parent = places.get(entry.line.parent_uuid or entry.line.logical_parent_uuid or "")
        if parent is not None and parent < place:
            following.setdefault(parent, []).append(place)
    ends = list(range(len(entries)))
    speaks = [entry.is_said and not entry.holds_only_results for entry in entries]
    for place in range(len(entries) - 1, -1, -1):
        for after in following.get(place, ()):
            ends[place] = max(ends[place], ends[after])
            speaks[place] = speaks[place] or speaks[after]
    left: set[int] = set()
    for branches in following.values():
        last = max(branches, key=lambda place: ends[place])
        left |= {place for place in branches if place != last and speaks[place]}
    for place, branches in following.items():
        if place in left:
            left |= set(branches)
    return [entry for place, entry in enumerate(entries) if place not in left]


def _add_results(run: Run, results: Iterable[dict[str, Any]]) -> None:
    """Add what stream-json says at the end of each turn: cost, time, and how the run ended."""
    ends = list(results)
    if not ends:
        return
    last = ends[-1]
    times = [as_number(end.get("duration_ms")) for end in ends]
    seconds = sum(time for time in times if time is not None) / 1000
    answers = {
        compact(entry.get("id")) for entry in run.entries if entry.get("role") == "assistant"
    }
    run.usage = Usage(
        requests=len(answers), cost_usd=as_number(last.get("total_cost_usd")), seconds=seconds
    )
    subtype = word(last, "subtype")
    if subtype == "error_max_turns":
        run.ended = "limit:turns"
    elif last.get("is_error") is True:
        run.ended = "error"
        run.error = last.get("result") or subtype
    else:
        run.ended = "completed"
