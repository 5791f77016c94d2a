"""A record and the reply to it, as a version of the program sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gradestack import ABSENT, JSON, Fault, ToolSpec
from gradestack_plugins.deepfabric.lenient import lenient_truth
from gradestack_plugins.deepfabric.records import RecordProblem, Truth, checked_calls, strict_truth
from gradestack_plugins.deepfabric.replies import ReplyProblem
from gradestack_plugins.deepfabric.responses import Call, Response, heard
from gradestack_plugins.deepfabric.schemas import SchemaProblem, convert
from gradestack_plugins.deepfabric.versions import NEWEST, Reading, Rules

PROCESSING_ERROR: Final = "processing_error"
"""Fault code of samples that count as wrong because the record or the reply could not be processed."""
RUN_STOPS: Final = "run_stops"
"""Fault code of processing errors on which the newest program ends, without a result."""
ERRORS: Final = frozenset({PROCESSING_ERROR, RUN_STOPS})


class Case(NamedTuple):
    """A record and the reply recorded to it (ABSENT: none)."""

    record: JSON
    reply: JSON = ABSENT
    lenient: bool = False


class Seen(NamedTuple):
    """What is made of a case."""

    truth: Truth | None
    """None where the record breaks a rule."""
    tools: tuple[ToolSpec, ...] | None
    offered: tuple[str, ...]
    """Names of the tools, as the result file shows them; none where the record or a tool cannot be used."""
    responses: tuple[Response, ...]
    fault: Fault | None = None
    """Why it is a processing error."""

    several: bool = False
    """Whether all calls count, not only the first reply's first."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that count."""
        if self.several:
            return tuple(call for each in self.responses for call in each.calls)
        return tuple(each.call for each in self.responses if each.call is not None)


def tools_of(record: JSON, rules: Rules) -> tuple[tuple[ToolSpec, ...] | None, SchemaProblem | None]:
    """Return a record's tools, None where it has no list of them, and why they cannot be converted.

    Where ``tools`` is absent, ``documented`` takes the deprecated ``tool_context.available_tools``.
    """
    listed = record.get("tools") if isinstance(record, dict) else None
    if listed is None and rules == "documented" and isinstance(record, dict):
        context = record.get("tool_context")
        listed = context.get("available_tools") if isinstance(context, dict) else None
    if not isinstance(listed, list):
        return None, None
    try:
        return convert([each for each in listed if isinstance(each, dict)], rules), None
    except SchemaProblem as problem:
        return None, problem


def see(case: Case, reading: Reading) -> Seen:
    """Return what the program makes of a case."""
    record, version = case.record, reading.version
    tools, conversion = tools_of(record, version)
    truth: Truth | None = None
    fault: Fault | None = None
    found: tuple[Response, ...] = ()
    valid, late = case.lenient, None
    try:
        if case.lenient:
            truth = lenient_truth(record)
        else:
            calls = checked_calls(record, version)
            valid = True
            truth = strict_truth(record, calls, version, conversion)
            late = check_prompt(record, conversion, version)
        if case.reply is not ABSENT:
            found = heard(case.reply, reading, with_tools=bool(tools))
    except ReplyProblem as problem:
        fault = Fault(category="target", code=PROCESSING_ERROR, message=str(problem))
    except RecordProblem as problem:
        stops = problem.stops or (valid and not case.lenient and conversion is not None and conversion.stops)
        code = RUN_STOPS if stops and version == NEWEST else PROCESSING_ERROR
        fault = Fault(category="data", code=code, message=str(problem))
    if fault is None and late is not None and not reading.most_turns:
        fault = Fault(category="data", code=PROCESSING_ERROR, message=late)
    offered = tuple(each.name for each in tools or ()) if valid else ()
    return Seen(
        truth,
        tools if truth is not None else None,
        offered,
        found if fault is None else (),
        fault,
        reading.most_turns > 0,
    )


def check_prompt(record: Mapping[str, Any], conversion: SchemaProblem | None, rules: Rules) -> str | None:
    """Check what is sent to the model: the messages before the first assistant message, and the tools.

    Returns:
        A problem that shows only after the model has answered, so that a failing inference comes first.

    Raises:
        RecordProblem: A problem that shows before the model is asked.
    """
    late = None
    for message in record["messages"]:
        if message["role"] == "assistant":
            break
        if "content" not in message:
            wording = f"a {message['role']} message of the prompt has no content"
            raise RecordProblem(wording if rules == "documented" else "'content'")
        if message["content"] is None:
            late = f"a {message['role']} message of the prompt has null content"
    if conversion is not None:
        raise RecordProblem(str(conversion))
    return late
