"""Several turns of a conversation: which replies are looked at, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gradestack import ExpectedCall, Reason, Sample, ToolCall
from gradestack_plugins.deepfabric.checks import pointer
from gradestack_plugins.deepfabric.responses import Call, Response
from gradestack_plugins.readers import chat


class Verdicts(NamedTuple):
    """The verdicts on several turns, and why points were lost."""

    selection: bool
    parameters: bool
    execution: bool
    coverage: float
    """Share of the expected tools that were called."""
    reasons: tuple[Reason, ...] = ()


def recorded_turns(sample: Sample, most: int) -> tuple[Response, ...]:
    """Return the recorded assistant messages that are looked at: ``most`` of them, up to the first without calls.

    Where the conversation does not say which calls were made when, all are one reply.
    """
    spoken = [each for turn in sample.turns for each in turn if each.role == "assistant"]
    if not any(each.tool_calls for each in spoken):
        return (_response(sample.text or "", sample.calls or ()),)
    found = []
    for message in spoken[:most]:
        found.append(_response(chat.text_of(message.content), message.tool_calls))
        if not message.tool_calls:
            break
    return tuple(found)


def _response(content: str, calls: Sequence[ToolCall]) -> Response:
    made = tuple(map(Call.of, calls))
    return Response(content, made[0] if made else None, made)


def upstream_verdicts(expected: Sequence[ExpectedCall | ToolCall], given: Sequence[Response]) -> Verdicts:
    """Return the program's verdicts.

    - selection: every expected tool was called, in whatever order, and whatever else was
    - parameters: every call of an expected tool has all argument names of the first execution of that tool
    - execution: a call was made, or the last reply that was looked at says something
    """
    calls = [call for each in given for call in each.calls]
    names = dict.fromkeys(each.name for each in expected)
    share, missing = _coverage(names, {call.name for call in calls}, made=bool(calls))
    first = {each.name: each.arguments or {} for each in reversed(expected)}
    lacking = []
    for call in calls:
        has = call.arguments if isinstance(call.arguments, dict) else {}
        wanted = first.get(call.name, {}) if isinstance(call.name, str) else {}
        lacking += [_lacks(call, name) for name in wanted if name not in has]
    final = given[-1].content if given else ""
    return Verdicts(share == 1.0, not lacking, bool(calls or final), share, (*missing, *lacking))


def documented_verdicts(
    expected: Sequence[ExpectedCall], given: Sequence[Response], faults: Callable[[ToolCall], Iterable[Reason]]
) -> Verdicts:
    """Return the verdicts by the document's rules.

    - selection: every expected tool was called; where none is expected, none was called
    - parameters: the arguments of every call fit the schema of the called tool, and a call that is due was made
    - execution: both
    """
    calls = [call.made() for each in given for call in each.calls]
    names = dict.fromkeys(each.name for each in expected)
    share, missing = _coverage(names, {call.name for call in calls}, made=bool(calls))
    wrong = [reason for call in calls for reason in faults(call)]
    fine = not wrong and bool(calls or not names) and bool(names or not calls)
    return Verdicts(share == 1.0, fine, share == 1.0 and fine, share, (*missing, *wrong))


def _coverage(names: dict[str, None], called: set[object], *, made: bool) -> tuple[float, list[Reason]]:
    if not names:
        reason = Reason(code="unexpected_call", message="no call was expected")
        return (0.0, [reason]) if made else (1.0, [])
    missing = [each for each in names if each not in called]
    reasons = [Reason(code="missing_call", subject=each, message="a call was expected") for each in missing]
    return (len(names) - len(missing)) / len(names), reasons


def _lacks(call: Call, name: str) -> Reason:
    return Reason(code="missing_argument", pointer=pointer(name), subject=str(call.name))
