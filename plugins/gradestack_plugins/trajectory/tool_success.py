"""Grader ``tool_success``: how the calls of a run went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import Grade, Grader, Item, Outcome, Reason, Sample, ToolCall, skipped
from gradestack.exact import count_into
from gradestack_plugins.trajectory.calls import STATES, State, state_of

_SHOWN = 300
"""Characters of an error's text kept in a reason."""
_SAID: Final = {"error": "call_failed", "denied": "call_denied", "not_run": "call_not_run", "unknown": "no_result"}


@attrs.frozen(kw_only=True)
class ToolSuccess(Grader):
    """Share of the executed calls that did not end in an error, in [0, 1].

        score = ok / (ok + error)

    Calls that were denied, did not run, or of which no result was recorded were not executed and count in neither.
    Skipped without recorded calls, without any call, and where the recording says of no call that it was executed.

    ``counts`` has ``calls``, each state (``ok``, ``error``, ``denied``, ``not_run``, ``unknown``), ``retried`` (errors
    after which the same tool was called again) and ``recovered`` (errors after which it was called with success).
    ``items`` holds the same by tool. Both profiles are the same.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls"})
    aggregators: ClassVar[tuple[str, ...]] = ("tool_outcomes", "mean")
    words: ClassVar[tuple[str, str]] = ("without failed calls", "with failed calls")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = sample.calls
        if calls is None:
            return skipped("calls_not_recorded", "no answer is recorded, so it is not known which calls were made")
        if not calls:
            return skipped("no_calls", "the run made no call")
        by_tool: dict[str, list[tuple[ToolCall, State]]] = {}
        reasons = []
        for call in calls:
            state = state_of(call)
            by_tool.setdefault(call.name, []).append((call, state))
            if state != "ok":
                reasons.append(_reason(call, state))
        items = tuple(_item(name, made) for name, made in by_tool.items())
        counts: dict[str, int] = {}
        for item in items:
            count_into(counts, item.counts)
        executed = counts["ok"] + counts["error"]
        if not executed:
            found = skipped("execution_not_recorded", "the recording says of no call that it was executed")
            return Grade(
                outcome=Outcome.SKIPPED, counts=counts, reasons=(*found.reasons, *reasons), rationale=found.rationale
            )
        return Grade(score=counts["ok"] / executed, counts=counts, items=items, reasons=tuple(reasons))


def _reason(call: ToolCall, state: State) -> Reason:
    message = "" if call.error is None else call.error[:_SHOWN]
    return Reason(code=_SAID[state], subject=call.name, message=message)


def _item(name: str, made: Sequence[tuple[ToolCall, State]]) -> Item:
    counts: dict[str, int] = dict.fromkeys(("calls", *STATES, "retried", "recovered"), 0)
    counts["calls"] = len(made)
    succeeds = called = False
    for _, state in reversed(made):
        counts[state] += 1
        if state == "error":
            counts["retried"] += called
            counts["recovered"] += succeeds
        called, succeeds = True, succeeds or state == "ok"
    executed = counts["ok"] + counts["error"]
    if not executed:
        return Item(id=name, outcome=Outcome.SKIPPED, counts=counts)
    return Item(id=name, score=counts["ok"] / executed, counts=counts)
