"""Two runs of one task side by side: their calls, and their conversations from where they part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Row
from gradestack.jsonio import JsonProblem, as_list, as_map, as_number, as_text, compact, loads
from gradestack_plugins.pages.blocks import (
    CallDiff,
    CallPair,
    Change,
    Conversation,
    Link,
    Message,
)
from gradestack_plugins.pages.sample import calls_of
from gradestack_plugins.pages.text import brief, counted, three_digits

_LONGEST_CALL, _LONGEST_MESSAGE = 160, 300
_MOST_FOLDED, _MOST_SHOWN = 20, 6
"""Messages of a conversation before it parts from the other, and after."""
_MARKS = {"matched": "equal", "differs": "different", "absent": "not called"}


class _Step(msgspec.Struct, frozen=True):
    """One message of a conversation, with the calls it makes as texts."""

    role: str
    text: str
    calls: Sequence[str]


def call_diff(sides: Sequence[Link], rows: Sequence[Row], id_: str) -> CallDiff:
    """Return the calls of two runs of one task beside the expected ones; equal ones are folded.

    Args:
        sides: Links to both runs.
        rows: Their rows.
        id_: Id of the block on the page.
    """
    made = [calls_of(row) for row in rows]
    calls = as_map(rows[0].get("expected")).get("calls")
    expected = [as_map(call) for call in as_list(calls)]
    most = min(len(side.pairs) for side in made)
    pairs: list[CallPair] = []
    equal = 0
    for position, call in enumerate(expected[:most]):
        shown, marks = [], []
        for side in made:
            pair = side.pairs[position]
            shown.append("" if pair.actual is None else _call_text(as_map(pair.actual)))
            marks.append(_MARKS[pair.status])
        if marks == ["equal", "equal"]:
            equal += 1
        else:
            pairs.append(CallPair(_call_text(call), shown, marks))  # type: ignore[arg-type]
    if equal:
        both = f"{counted(equal, 'calls')} as expected on both sides"
        pairs.append(CallPair(both, ["", ""], ["equal", "equal"]))
    unexpected = [[_call_text(as_map(call)) for _, call in side.others] for side in made]
    facts = _facts(rows)
    conversations = _conversations(rows)
    return CallDiff(
        sides,
        pairs,
        unexpected if any(unexpected) else (),
        facts,
        conversations=conversations,
        id=id_,
    )


def _call_text(call: Mapping[str, Any]) -> str:
    arguments = as_map(call.get("arguments"))
    inner = ", ".join(f"{name}={compact(value)}" for name, value in arguments.items())
    name = as_text(call.get("name"))
    return brief(f"{name}({inner})", _LONGEST_CALL)


def _facts(rows: Sequence[Row]) -> list[Change]:
    """Return the number of messages, cost and seconds of both runs, as far as recorded."""
    texts = [_facts_of(row) for row in rows]
    return [Change("took", texts)] if any(texts) else []


def _facts_of(row: Row) -> str:
    usage = as_map(row.get("usage"))
    messages = len(_messages(row))
    facts = [counted(messages, "messages")] if messages else []
    for name, form in (("cost_usd", "${}"), ("seconds", "{} s")):
        amount = as_number(usage.get(name))
        if amount is not None:
            facts.append(form.format(three_digits(amount)))
    return ", ".join(facts)


def _messages(row: Row) -> list[Mapping[str, Any]]:
    """Return the messages of all turns of a run."""
    turns = as_list(row.get("trajectory"))
    return [as_map(message) for turn in turns for message in as_list(turn)]


def _conversations(rows: Sequence[Row]) -> list[Conversation]:
    """Return both conversations, folded up to where they part; none where one is not recorded."""
    one, other = ([_step_of(message) for message in _messages(row)] for row in rows)
    if not one or not other:
        return []
    same_steps = _count_equal(one, other)
    calls_of_one, calls_of_other = ([*_calls_in(steps)] for steps in (one, other))
    same_calls = _count_equal(calls_of_one, calls_of_other)
    shown = []
    for steps in (one, other):
        parting = max(same_steps, _end_of_calls(steps, same_calls))
        shown.append(_conversation(steps, parting, same_calls))
    return shown


def _step_of(message: Mapping[str, Any]) -> _Step:
    """Return a message as texts: what it says, and each call it makes."""
    calls = []
    for call in as_list(message.get("tool_calls")):
        function = as_map(as_map(call).get("function")) or as_map(call)
        arguments = _decoded(function.get("arguments"))
        calls.append(_call_text({"name": function.get("name"), "arguments": arguments}))
    content = message.get("content")
    if isinstance(content, str):
        text = content
    else:
        text = compact(content) if content else ""
    role = message.get("role")
    return _Step(as_text(role), brief(text, _LONGEST_MESSAGE), calls)


def _decoded(arguments: Any) -> Any:
    """Return a call's arguments, which may stand as JSON in a text; a broken text stands alone."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return loads(arguments)
    except JsonProblem:
        return {"": arguments}


def _count_equal(one: Sequence[object], other: Sequence[object]) -> int:
    """Count the entries with which two lists begin alike."""
    count = 0
    for entry, entry_of_other in zip(one, other, strict=False):
        if entry != entry_of_other:
            break
        count += 1
    return count


def _calls_in(steps: Sequence[_Step]) -> Iterator[str]:
    for step in steps:
        yield from step.calls


def _end_of_calls(steps: Sequence[_Step], calls: int) -> int:
    """Return the number of messages up to the results of a conversation's first calls."""
    made = end = 0
    for position, step in enumerate(steps):
        made += len(step.calls)
        if made > calls:
            break
        is_result = step.role == "tool" and end == position
        if step.calls or (is_result and end):
            end = position + 1
    return end


def _conversation(steps: Sequence[_Step], parting: int, same_calls: int) -> Conversation:
    """Return a conversation whose messages before the parting are folded."""
    before = steps[:parting]
    after = steps[parting:]
    calls = ""
    if same_calls:
        calls = f", the same {counted(same_calls, 'calls')}"
    messages = [_message(step) for step in before[-_MOST_FOLDED:]]
    note = ""
    if before:
        note = f"{counted(len(before), 'messages')} before{calls}"
    return Conversation(
        folded=messages,
        note=note,
        messages=[_message(step) for step in after[:_MOST_SHOWN]],
        left_out=max(0, len(after) - _MOST_SHOWN),
    )


def _message(step: _Step) -> Message:
    return Message(step.role, step.text, step.calls)
