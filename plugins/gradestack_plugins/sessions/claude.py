"""Reader ``claude_code``: session files of Claude Code, and what it prints as stream-json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
import msgspec
from typing_extensions import override

from gradestack import Input, Source, Usage
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.readers.chat.dialect import word
from gradestack_plugins.readers.declared import Flag, Object, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SESSION_LINES: Final = frozenset({"user", "assistant"})
_SURE: Final = 0.97
_ECHOES: Final = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "[Request interrupted by user",
)
"""How texts begin that Claude Code puts into the user's place."""
_MADE_UP: Final = "<synthetic>"
"""The model of messages that no model wrote."""
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


@attrs.frozen(kw_only=True)
class ClaudeCode(RunReader):
    """Reads sessions of Claude Code: the files below ``~/.claude/projects``, and ``stream-json``.

    A session is one run; its id is the session's. One answer over several lines counts once. Of
    branches that begin at one message the one that ends last is read. Sub-agents are runs of their
    own, SESSION/AGENT, in the cluster of their session and among the children of its run. Lines
    that the program wrote by itself (summaries, meta lines, errors of the API) are left out. Of
    stream-json cost and time are those of its ``result`` lines.
    """

    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        has_session = "sessionId" in record or "session_id" in record
        if record.get("type") in _SESSION_LINES and isinstance(record.get("message"), dict):
            has_place = "parentUuid" in record or "parent_tool_use_id" in record
            return _SURE if has_session and has_place else 0.0
        if record.get("type") == "result" and "total_cost_usd" in record and has_session:
            return _SURE
        is_own = has_session or "leafUuid" in record or "snapshot" in record
        return None if is_own and isinstance(record.get("type"), str) else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        session = _Sessions()
        for value, source in records:
            session.add(value, source)
        yield from session.runs()


class _Sessions:
    """The lines of a file, by session and sub-agent."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], list[_Entry]] = {}
        self._results: dict[str, list[dict[str, Any]]] = {}
        self._roots: dict[str, str] = {}
        """Line of a sub-agent without a name -> the first line of its chain, which names it."""
        self._remarks: dict[str, int] = {}

    def add(self, value: Any, source: Source) -> None:
        """Take the next line of the file."""
        line, remarks = convert_record(value if isinstance(value, dict) else {}, _Line)
        for kind, times in remarks.items():
            self._remarks[kind] = self._remarks.get(kind, 0) + times
        session = line.session_id or line.printed_session
        if session is None:
            return
        if line.type == "result":
            self._results.setdefault(session, []).append(value)
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
            run = _run_of(session, agent, entries)
            if run is None:
                continue
            if not agent:
                names = [name for of, name in self._lines if of == session and name]
                run.children = tuple([f"{session}/{name}" for name in names])
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
    trace = {"session_id": session}
    if agent:
        trace["parent_id"] = session
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
        trace=trace,
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
    answers = {entry.get("id") for entry in run.entries if entry.get("role") == "assistant"}
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
