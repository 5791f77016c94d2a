"""Grader ``tool_success``, how the calls of a run went, and aggregator ``tool_outcomes``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grader,
    Grades,
    Item,
    Outcome,
    Reason,
    Sample,
    ToolCall,
    ratio,
    replace,
    skipped,
)
from gradestack.jsonio import compact
from gradestack_plugins.readers.chat.results import ERRORS, error_form
from gradestack_plugins.trajectory.calls import STATES, CallShare, State, added_up, bad_pattern, state_of

_SHOWN = 300
"""Characters of an error's text kept in a reason."""
_CODES: Final = {"error": "call_failed", "denied": "call_denied", "not_run": "call_not_run", "unknown": "no_result"}


def _checked(_: object, field: attrs.Attribute[tuple[str, ...]], patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if problem := bad_pattern(pattern):
            raise ValueError(f"{field.name}: {problem}")


@attrs.frozen(kw_only=True)
class ToolSuccess(Grader):
    """Share of the executed calls that did not end in an error, in [0, 1].

        score = ok / (ok + error)

    Calls that were denied, did not run, or of which no result was recorded were not executed and count in neither.
    Skipped without recorded calls, without any call, and where no call has a recorded result.

    A call failed when its format says so (``status``, ``is_error``). Otherwise its result is read by the table
    ``errors@1``: JSON with ``success: false``, ``error``, ``status: failed`` or an HTTP status of 400 to 599, and text
    that begins as an error does. Each reason names the rule. ``not_errors`` and ``errors`` go before the table.

    ``counts`` has ``calls``, each state (``ok``, ``error``, ``denied``, ``not_run``, ``unknown``), ``retried`` (errors
    after which the same tool was called again) and ``recovered`` (errors after which it was called with success).
    ``items`` holds the same by tool. Both profiles are the same.

    Attributes:
        errors: Regular expressions; a result in which one occurs is an error.
        not_errors: Regular expressions; a result in which one occurs is none, whatever else applies.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls"})
    aggregators: ClassVar[tuple[str, ...]] = ("tool_outcomes", "mean")
    words: ClassVar[tuple[str, str]] = ("without failed calls", "with failed calls")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    errors: tuple[str, ...] = attrs.field(default=(), validator=_checked)
    not_errors: tuple[str, ...] = attrs.field(default=(), validator=_checked)

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = sample.calls
        if calls is None:
            return skipped("calls_not_recorded", "no answer recorded, so the calls made are unknown")
        if not calls:
            return skipped("no_calls", "the run made no call")
        by_tool: dict[str, list[State]] = {}
        reasons = []
        for call in calls:
            state, message = self._ended(call)
            by_tool.setdefault(call.name, []).append(state)
            if state != "ok":
                reasons.append(Reason(code=_CODES[state], subject=call.name, message=message[:_SHOWN]))
        items = tuple(_item(name, states) for name, states in by_tool.items())
        counts = added_up(items)
        executed = counts["ok"] + counts["error"]
        if not executed:
            found = skipped("execution_not_recorded", "no call has a recorded result")
            return replace(found, counts=counts, reasons=(*found.reasons, *reasons))
        return Grade(score=counts["ok"] / executed, counts=counts, items=items, reasons=tuple(reasons))

    def _ended(self, call: ToolCall) -> tuple[State, str]:
        """Return how a call ended; of an error its text, behind the rule that found it."""
        state, error = state_of(call), call.error or ""
        kind = call.error_type or ""
        by_table = kind.startswith(ERRORS)
        if state not in {"ok", "error"} or (state == "error" and not by_table):
            return state, error
        if self.errors or self.not_errors:
            text = call.result if isinstance(call.result, str) else compact(call.result)
            if any(re.search(pattern, text) for pattern in self.not_errors):
                return "ok", ""
            for pattern in self.errors:
                if re.search(pattern, text):
                    return "error", f"errors {pattern}: {text}"
        if call.status is None and (form := error_form(call.result)) is not None:
            return "error", f"{form.type}: {form.message}"
        return state, f"{kind}: {error}" if by_table else ""


def _item(name: str, states: Sequence[State]) -> Item:
    counts: dict[str, int] = dict.fromkeys(("calls", *STATES, "retried", "recovered"), 0)
    counts["calls"] = len(states)
    succeeds = called = False
    for state in reversed(states):
        counts[state] += 1
        if state == "error":
            counts["retried"] += called
            counts["recovered"] += succeeds
        called, succeeds = True, succeeds or state == "ok"
    executed = counts["ok"] + counts["error"]
    if not executed:
        return Item(id=name, outcome=Outcome.SKIPPED, counts=counts)
    return Item(id=name, score=counts["ok"] / executed, counts=counts)


_NONE, _RATE = "no call was executed", "ok / (ok + error)"


@attrs.frozen(kw_only=True)
class ToolOutcomes(CallShare):
    """Calls by outcome, over all runs and by tool.

    Every count of the graded runs' grades is added up, and for each tool those of its items. ``success_rate`` = ok /
    (ok + error), over calls, not over runs; None where no call was executed. Its interval leaves out one task at a
    time.
    """

    version: ClassVar[str] = "2"
    figures: ClassVar = (
        Figure("success_rate", "Successful calls", about=_RATE, divisor="executed", undefined=_NONE),
        Figure("tools.{tool}.success_rate", "Successful calls of a tool", about=_RATE, divisor="executed"),
    )
    share, count, divisor, undefined = "success_rate", "ok", "executed", _NONE
    divisors = ("ok", "error")

    @override
    def estimate(self, ok: float, executed: float) -> Mapping[str, float | None]:
        return {"success_rate": ratio(ok, executed)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs = sum(times for grade, times in grades.counted if grade.score is not None)
        return {"executed": 0, "runs": runs, **super().compute(grades)}
