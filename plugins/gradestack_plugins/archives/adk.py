"""Reader ``adk``: eval sets of Google's ADK, and the results of running them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import Expectation, ExpectedCall, Sample, Source, ToolSpec, replace
from gradestack.jsonio import as_list, as_map, first_records
from gradestack_plugins.archives.documents import DocumentReader, at, named
from gradestack_plugins.readers.chat import tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, conversation_of
from gradestack_plugins.readers.chat.logs import log_sample
from gradestack_plugins.readers.chat.names import decoded
from gradestack_plugins.readers.chat.unread import unread_keys

_RESULTS: Final = ("_case_results", "CaseResults", "_case_results\\")
"""How the key of results is spelled; in the text of a text, a quote is escaped."""
_READ: Final = frozenset(
    {
        *("invocation_events", "invocationEvents", "intermediate_responses"),
        *("intermediateResponses", "tool_uses", "toolUses", "tool_responses", "toolResponses"),
    }
)
"""Keys of intermediate data that are read."""
_STATUSES: Final = {"1": "passed", "2": "failed", "3": "not_evaluated"}


@attrs.frozen(kw_only=True)
class Adk(DocumentReader):
    """Reads Google ADK's eval sets, their results, and the list of turns of older releases.

    Snake or camel case.

    An eval set (``eval_cases``) is a data set: a sample per case, with what the user says and, by
    turn, the calls that are expected (``tool_uses``, or those in ``invocation_events``); nothing in
    it was made by an agent. A case without ``intermediate_data`` in any turn expects nothing known.
    ``final_session_state`` is the expected state, the last final response the expected text.

    A result (``eval_case_results``) has a sample per case and run: calls, results and answers of
    each ``actual_invocation``, and as expected what stands in ``expected_invocation``.
    ``overall_eval_metric_results`` are recorded scores, ``final_eval_status`` is recorded as
    ``passed`` unless the case was not evaluated. The id is ``eval_id``. The file may be the
    text of that JSON, as ADK writes it.

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
    def is_whole(cls, head: bytes) -> bool:
        first = next(first_records(head, 1, "list"), None)
        return super().is_whole(head) or (first is not None and _are_legacy([first[0].value]))

    @classmethod
    @override
    def records_in(cls, value: Any) -> list[Any] | None:
        if _are_legacy(value):
            return [{"conversation": value}]
        found = at(decoded(value), "eval_cases", "eval_case_results")
        return found if isinstance(found, list) else None

    @classmethod
    @override
    def is_record(cls, value: Mapping[str, Any]) -> bool:
        return "name" in value and _are_legacy(value.get("data"))

    @override
    def samples_of_record(
        self, record: dict[str, Any], source: Source, made: str
    ) -> Iterable[Sample]:
        if (
            at(record, "eval_metric_result_per_invocation") is not None
            or "final_eval_status" in record
        ):
            return [_result(record, source, made)]
        turns = record.get("conversation", record.get("data"))
        if not isinstance(turns, list):
            what = "neither conversation nor eval_metric_result_per_invocation"
            # what makes a bad record
            raise ValueError(f"{what}: an eval case, or its result, is expected")
        return [
            _case(
                at(record, "eval_id", "name"), list(map(_invocation, turns)), record, source, made
            )
        ]


def _are_legacy(turns: Any) -> bool:
    """Return whether something is a list of turns of older releases."""
    first = [each for each in as_list(turns)[:10] if isinstance(each, dict)]
    return (
        bool(first)
        and all("query" in each for each in first)
        and any("expected_tool_use" in each for each in first)
    )


def _invocation(turn: Any) -> Any:
    if not isinstance(turn, dict) or "query" not in turn:
        return turn
    due = as_list(at(turn, "expected_tool_use"))
    uses = [{"name": at(each, "tool_name"), "args": at(each, "tool_input")} for each in due]
    return {
        "user_content": {"parts": [{"text": turn["query"]}]},
        "final_response": {"parts": [{"text": turn["reference"]}]}
        if turn.get("reference")
        else None,
        "intermediate_data": {"tool_uses": uses} if "expected_tool_use" in turn else None,
    }


def _content(value: Any) -> dict[str, Any] | None:
    parts = value.get("parts") if isinstance(value, dict) else None
    if not isinstance(parts, list):
        return None
    held = [
        {k: v for k, v in each.items() if v is not None} if isinstance(each, dict) else each
        for each in parts
    ]
    return {"role": value.get("role"), "parts": held}


def _entries(invocation: Any) -> Iterator[dict[str, Any]]:  # noqa: C901
    if asked := _content(at(invocation, "user_content")):
        yield {**asked, "role": "user"}
    between = at(invocation, "intermediate_data")
    for event in as_list(at(between, "invocation_events")):
        if held := _content(at(event, "content")):
            yield {
                "author": at(event, "author"),
                "usageMetadata": at(event, "usage_metadata"),
                "content": held,
            }
    if calls := [_tool_use(each) for each in as_list(at(between, "tool_uses")) if each]:
        yield {"role": "assistant", "content": None, "tool_calls": calls}
    if unread := {key: between[key] for key in unread_keys(as_map(between), _READ)}:
        yield {"role": "assistant", "content": None, **unread}
    for each in as_list(at(between, "tool_responses")):
        if isinstance(each, dict):
            what = {
                "tool_call_id": each.get("id"),
                "name": each.get("name"),
                "content": each.get("response"),
            }
            yield {"role": "tool", **what}
    for each in as_list(at(between, "intermediate_responses")):
        author, parts = each if isinstance(each, list) and len(each) == 2 else (None, None)
        if held := _content({"parts": parts}):
            yield {"author": author, "content": {**held, "role": "model"}}
    if said := _content(at(invocation, "final_response")):
        yield {**said, "role": "model"}


def _tool_use(use: Any) -> Any:
    """Return a recorded use of a tool as a call of OpenAI's form; what names no tool as it is."""
    if not isinstance(use, dict) or not isinstance(use.get("name"), str):
        return use
    function = {"name": use["name"], "arguments": use.get("args")}
    return {"id": use.get("id"), "function": function}


def _talk(invocations: Iterable[Any]) -> Conversation:
    return conversation_of(None, turns=[list(_entries(each)) for each in invocations])


def _expectation(invocations: list[Any], record: Mapping[str, Any]) -> Expectation:
    known = [each for each in invocations if at(each, "intermediate_data") is not None]
    talk = _talk(invocations)
    calls = (
        tuple(replace(ExpectedCall.of(call), turn=call.turn) for call in talk.calls)
        if known
        else None
    )
    state = at(record, "final_session_state")
    return Expectation(calls=calls, text=talk.text, state=state or None)


def _case(
    identifier: Any, turns: list[Any], record: Mapping[str, Any], source: Source, made: str
) -> Sample:
    asked = _talk({"user_content": at(each, "user_content")} for each in turns)
    sample = log_sample(
        named(identifier, made), asked, source, expected=_expectation(turns, record)
    )
    return replace(
        sample,
        remarks={
            kind: n for kind, n in sample.remarks.items() if kind != "question_without_answer"
        },
    )


def _result(record: dict[str, Any], source: Source, made: str) -> Sample:
    pairs = as_list(at(record, "eval_metric_result_per_invocation"))
    actual = [each for pair in pairs if (each := at(pair, "actual_invocation"))]
    expected = [each for pair in pairs if (each := at(pair, "expected_invocation"))]
    session, status = at(record, "session_id"), at(record, "final_eval_status")
    known = named(
        at(record, "eval_id"),
        made,
        trace={"session_id": session} if isinstance(session, str) else {},
        facets={} if status is None else {"eval_status": _STATUSES.get(str(status), str(status))},
    )
    scores = {
        name: score
        for each in as_list(at(record, "overall_eval_metric_results", "eval_metric_results"))
        if isinstance(name := at(each, "metric_name"), str)
        and (score := at(each, "score")) is not None
    }
    word = _STATUSES.get(str(status))
    if word in ("passed", "failed"):
        scores["passed"] = word == "passed"
    return log_sample(
        known,
        _talk(actual),
        source,
        tools=_tools(actual),
        recorded=scores,
        expected=_expectation(expected, {}) if expected else Expectation(),
        state=at(at(record, "session_details"), "state"),
    )


def _tools(invocations: Iterable[Any]) -> tuple[ToolSpec, ...] | None:
    details = [as_map(at(at(each, "app_details"), "agent_details")) for each in invocations]
    groups = [
        each
        for held in details
        for agent in held.values()
        for each in as_list(at(agent, "tool_declarations"))
    ]
    raws = [
        raw
        for group in groups
        for raw in as_list(at(group, "function_declarations"))
        if isinstance(raw, dict)
    ]
    schemas = (
        {**raw, "parameters": at(raw, "parameters_json_schema", "parameters")} for raw in raws
    )
    found = {spec.name: spec for spec in map(tool_spec, schemas) if spec is not None}
    return tuple(found.values()) or None
