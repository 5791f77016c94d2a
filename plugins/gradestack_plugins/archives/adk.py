"""Reader ``adk``: eval sets of Google's ADK, and the results of running them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from typing_extensions import override

from gradestack import Expectation, ExpectedCall, Sample, Source, ToolSpec, replace
from gradestack.jsonio import Head, as_list, first_records
from gradestack_plugins.archives.documents import DocumentReader, at, named
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.calls import decoded
from gradestack_plugins.readers.chat.conversation import Conversation, conversation_of
from gradestack_plugins.readers.chat.forms import in_snake
from gradestack_plugins.readers.chat.samples import log_sample
from gradestack_plugins.readers.chat.unread import unread_keys
from gradestack_plugins.readers.declared import Object, Text, convert_record

_RESULTS: Final = ("_case_results", "CaseResults", "_case_results\\")
"""How the key of results is spelled; in the text of a text, a quote is escaped."""
_STATUSES: Final = {"1": "passed", "2": "failed", "3": "not_evaluated"}
_PASSED: Final = {"1": True, "2": False}
_OF_RESULTS: Final = frozenset({"eval_metric_result_per_invocation", "final_eval_status"})
_AS_GIVEN: Final = frozenset(
    """
    content eval_metric_results expected_tool_use final_response final_session_state
    criterion details parameters parameters_json_schema session_details session_input
    tool_responses tool_uses usage_metadata user_content
    """.split()  # noqa: SIM905
)
"""Keys below which no key has two words, or none is ADK's."""


class _Content(Struct):
    """A message of the user or of an agent."""

    role: Text = None
    parts: list[dict[str, Any]] = []


class _Event(Struct):
    """Calls and results of an agent between question and answer."""

    author: Any = None
    content: _Content | None = None
    usage_metadata: Any = None


class _Response(Struct):
    """The response of a tool."""

    id: Any = None
    name: Any = None
    response: Any = None


class _Between(Struct):
    """Events between question and answer."""

    invocation_events: list[_Event] = []
    tool_uses: list[Any] = []
    tool_responses: list[_Response] = []
    intermediate_responses: list[tuple[Any, list[dict[str, Any]]]] = []


class _Tool(Struct):
    """Functions that an agent may call, or a tool that is built in."""

    function_declarations: list[dict[str, Any]] | None = None


class _Agent(Struct):
    """An agent."""

    tool_declarations: list[_Tool] = []


class _App(Struct):
    """The agents of a program, by name."""

    agent_details: dict[str, _Agent] = {}


class _OldUse(Struct):
    """A call that is expected in a turn of older releases."""

    tool_name: Any = None
    tool_input: Any = None


class _Turn(Struct):
    """A question, its answer, and what was done in between; older releases name them otherwise."""

    user_content: _Content | None = None
    intermediate_data: Object = None
    final_response: _Content | None = None
    app_details: _App | None = None
    query: Text = None
    expected_tool_use: list[_OldUse] | None = None
    reference: Text = None


class _Case(Struct):
    """A case of an eval set."""

    conversation: list[_Turn]
    eval_id: Any = None
    final_session_state: Any = None


class _Pair(Struct):
    """A turn as it was, and as it was expected."""

    actual_invocation: _Turn | None = None
    expected_invocation: _Turn | None = None


class _Metric(Struct):
    """A recorded score."""

    metric_name: str
    score: Any = None


class _Result(Struct):
    """The result of one run of a case."""

    eval_id: Any = None
    session_id: Text = None
    final_eval_status: int | str | None = None
    eval_metric_result_per_invocation: list[_Pair] = []
    overall_eval_metric_results: list[_Metric] = []
    session_details: Object = None


class Adk(DocumentReader):
    """Reads Google ADK's eval sets, their results, and the list of turns of older releases.

    Snake or camel case.

    An eval set (``eval_cases``) is a data set: a sample per case, with what the user says. It has
    the calls expected by turn (``tool_uses``, or those in ``invocation_events``); nothing in it was
    made by an agent. A case without ``intermediate_data`` in any turn has unknown expected calls.
    ``final_session_state`` is the expected state, the last final response the expected text.

    A result (``eval_case_results``) has a sample per case and run: calls, results and answers of
    each ``actual_invocation``, and the content of ``expected_invocation`` as expected.
    ``overall_eval_metric_results`` are recorded scores, ``final_eval_status`` is recorded as
    ``passed`` unless the case was not evaluated. The id is ``eval_id``. The file may be the text of
    that JSON, as ADK writes it.

    The legacy list ``[{query, expected_tool_use, reference}]`` is one conversation, as ADK reads
    it, of the name of its file; ``[{name, data: [turns]}]`` is a case per entry.
    """

    example_file = "desk.evalset_result.json"
    marks = (
        ("eval_cases", "eval_set_id"),
        ("evalCases",),
        *((f"eval{name}",) for name in _RESULTS),
    )

    @classmethod
    @override
    def is_whole(cls, head: Head) -> bool:
        first = [element.value for element, _ in first_records(head, 1, "list")]
        return super().is_whole(head) or _are_legacy(first)

    @classmethod
    @override
    def records_in(cls, value: Any) -> list[Any] | None:
        if _are_legacy(value):
            return [{"conversation": value}]
        records = at(decoded(value), "eval_cases", "eval_case_results")
        return records if isinstance(records, list) else None

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        return "name" in value and _are_legacy(value.get("data"))

    @classmethod
    @override
    def is_own(cls, value: Mapping[str, Any]) -> bool:
        is_case = at(value, "eval_id") is not None
        return is_case or cls.is_record(value) or not _OF_RESULTS.isdisjoint(value)

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, fallback_id: str
    ) -> Iterable[Sample]:
        if self.is_record(record):
            record = {"eval_id": record["name"], "conversation": record["data"]}
        if "final_eval_status" not in record:  # results are ADK's own, in one spelling
            record = _in_snake(record)
        if _OF_RESULTS.isdisjoint(record):
            case, remarks = convert_record(record, _Case)
            sample = _case_sample(case, source, fallback_id, remarks)
        else:
            result, remarks = convert_record(record, _Result)
            sample = _result_sample(result, source, fallback_id, remarks)
        return [sample]


def _are_legacy(turns: Any) -> bool:
    """Return whether something is a list of turns of older releases."""
    first = [turn for turn in as_list(turns)[:10] if isinstance(turn, dict)]
    has_expected = any("expected_tool_use" in turn for turn in first)
    return has_expected and all("query" in turn for turn in first)


def _in_snake(value: Any) -> Any:
    """Return a value with the keys that ADK gives it in snake case."""
    if isinstance(value, list):
        return [_in_snake(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for key, entry in value.items():
        name = in_snake(key)
        renamed[name] = entry if name in _AS_GIVEN else _in_snake(entry)
    return renamed


def _messages_of(content: _Content | None, role: str | None = None) -> list[dict[str, Any]]:
    """Return a content as a list of one message, empty for a content without parts.

    Args:
        content: The content.
        role: The role of the speaker; None for the recorded one.
    """
    if content and content.parts:
        return [{"role": role or content.role, "parts": content.parts}]
    return []


def _entries(turn: _Turn, remarks: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn, and count in remarks what is left out of it."""
    yield from _questions(turn)
    recorded = turn.intermediate_data or {}
    between, field_remarks = convert_record(recorded, _Between)
    remarks |= field_remarks
    for event in between.invocation_events:
        for content in _messages_of(event.content):
            usage = event.usage_metadata
            yield {"author": event.author, "usageMetadata": usage, "content": content}
    old = turn.expected_tool_use or ()
    uses = [{"name": use.tool_name, "args": use.tool_input} for use in old]
    uses += between.tool_uses
    if uses:
        yield {"role": "assistant", "content": None, "tool_calls": uses}
    unread = unread_keys(recorded, _Between.__struct_fields__)
    if calls := {key: recorded[key] for key in unread}:
        yield {"role": "assistant", "content": None, **calls}
    for response in between.tool_responses:
        answered, result = response.id, response.response
        yield {"role": "tool", "tool_call_id": answered, "name": response.name, "content": result}
    for author, parts in between.intermediate_responses:
        yield {"author": author, "content": {"role": "model", "parts": parts}}
    yield from _messages_of(turn.final_response, "model")
    if turn.reference:
        yield {"role": "assistant", "content": turn.reference}


def _questions(turn: _Turn) -> list[dict[str, Any]]:
    """Return the messages of the user in a turn."""
    if turn.query is not None:
        parts = [{"text": turn.query}]
        return [{"role": "user", "parts": parts}]
    return _messages_of(turn.user_content, "user")


def _talk(turns: Iterable[_Turn], remarks: dict[str, int]) -> Conversation:
    entries = [list(_entries(turn, remarks)) for turn in turns]
    return conversation_of(None, turns=entries)


def _expectation(turns: list[_Turn], state: Any, remarks: dict[str, int]) -> Expectation:
    """Return the calls, text and state that turns expect; calls only where any turn says some."""
    talk = _talk(turns, remarks)
    calls = tuple(replace(ExpectedCall.of(call), turn=call.turn) for call in talk.calls)
    recorded = [(turn.intermediate_data, turn.expected_tool_use) for turn in turns]
    are_known = any(calls is not None for pair in recorded for calls in pair)
    return Expectation(calls=calls if are_known else None, text=talk.text, state=state or None)


def _case_sample(case: _Case, source: Source, fallback_id: str, remarks: dict[str, int]) -> Sample:
    """Return the sample of a case: what is asked and expected."""
    talk = conversation_of(None, turns=map(_questions, case.conversation))
    expected = _expectation(case.conversation, case.final_session_state, remarks)
    talk.remarks |= remarks
    known = named(case.eval_id, fallback_id)
    # nothing is missing where no question is answered: an error is known, and there is none
    return log_sample(known, talk, source, expected=expected, error=None)


def _result_sample(
    result: _Result, source: Source, fallback_id: str, remarks: dict[str, int]
) -> Sample:
    """Return the sample of a result: what was done, what was expected, and recorded scores."""
    pairs = result.eval_metric_result_per_invocation
    actual = [pair.actual_invocation for pair in pairs if pair.actual_invocation]
    expected = [pair.expected_invocation for pair in pairs if pair.expected_invocation]
    session = result.session_id
    status = str(result.final_eval_status)
    if result.final_eval_status:
        facets = {"eval_status": _STATUSES.get(status, status)}
    else:
        facets = {}
    trace = {"session_id": session} if session else {}
    known = named(
        result.eval_id,
        fallback_id,
        trace=trace,
        facets=facets,
    )
    metrics = result.overall_eval_metric_results
    scores = {metric.metric_name: metric.score for metric in metrics if metric.score is not None}
    if status in _PASSED:
        scores["passed"] = _PASSED[status]
    talk = _talk(actual, remarks)
    due = _expectation(expected, None, remarks)
    talk.remarks |= remarks
    tools = _tools(actual)
    state = (result.session_details or {}).get("state")
    return log_sample(
        known,
        talk,
        source,
        tools=tools,
        recorded=scores,
        expected=due,
        state=state,
    )


def _tools(turns: Iterable[_Turn]) -> tuple[ToolSpec, ...] | None:
    """Return the tools of all agents by name, the last of each name; None where none is said."""
    apps = [turn.app_details for turn in turns if turn.app_details]
    tools = [
        tool
        for app in apps
        for agent in app.agent_details.values()
        for tool in agent.tool_declarations
    ]
    functions = [raw for tool in tools for raw in tool.function_declarations or ()]
    schemas = [{**raw, "input_schema": raw.get("parameters_json_schema")} for raw in functions]
    tool_specs = map(tool_spec, schemas)
    specs = {spec.name: spec for spec in tool_specs if spec is not None}
    return tuple(specs.values()) or None
