"""Grader ``tool_success``, how tool calls ended, and aggregator ``tool_outcomes``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grader,
    Grades,
    Item,
    Ratio,
    Reason,
    Sample,
    ToolCall,
    replace,
    skipped,
)
from gradestack.jsonio import compact
from gradestack_plugins.readers.chat.results import ERRORS, error_form
from gradestack_plugins.trajectory.calls import (
    CallShares,
    State,
    add_counts,
    judged_calls,
    pattern_problem,
    share_item,
    state_of,
    sub_agent_grade,
)

_SHOWN: Final = 300  # characters of an error's text kept in a reason
_CODES: Final = {
    "error": "call_failed",
    "denied": "call_denied",
    "not_run": "call_not_run",
    "unknown": "no_result",
}
_STATES: Final = ("ok", *_CODES)


def _check_patterns(
    _: object, field: attrs.Attribute[tuple[str, ...]], patterns: tuple[str, ...]
) -> None:
    for problem in filter(None, map(pattern_problem, patterns)):
        raise ValueError(f"{field.name}: {problem}")


@attrs.frozen(kw_only=True)
class ToolSuccess(Grader):
    """Share of the executed calls that did not end in an error, in [0, 1].

        score = ok / (ok + error)

    Calls that were denied, did not run, or of which no result was recorded were not executed and
    count in neither. Skipped without recorded calls, without any call, and where no call has a
    recorded result. The run of a sub-agent is skipped, too; its calls count in ``tool_outcomes``.

    A call failed when its format says so (``status``, ``is_error``). Otherwise its result is read
    by the table ``errors@1``: JSON with ``success: false``, ``error``, ``status: failed`` or an
    HTTP status of 400 to 599, and text that begins as an error does. Each reason names the rule.
    ``not_errors`` and ``errors`` go before the table. Of shells the exit code decides where the
    format does not. 2 and above is an error. So is 1, unless the last command is one of grep,
    egrep, fgrep, zgrep, rg, ag, ack, diff, cmp, test, [, [[, find, pgrep, which, command, type and
    expr. It is read from ``exit_code`` or ``returncode`` of the result or of its ``metadata``, or
    from the first or last line ("Exit code: 1").

    ``counts`` has ``calls``, each state (``ok``, ``error``, ``denied``, ``not_run``, ``unknown``),
    ``retried`` (errors after which the same tool was called again) and ``recovered`` (errors after
    which it was called with success). ``items`` holds the same by tool. Where exit codes of shells
    are recorded, ``counts`` has ``commands`` and ``nonzero_commands``: commands that ended
    non-zero, of which not all are failed calls.

    Attributes:
        errors: Regular expressions; a result in which one occurs is an error.
        not_errors: Regular expressions; a result in which one occurs is none, whatever else
            applies.
    """

    version = "2"
    needs = frozenset({"calls"})
    compares = frozenset[str]()
    metrics = ("tool_outcomes", "mean")
    verdict_labels = ("without failed calls", "with failed calls")

    errors: tuple[str, ...] = attrs.field(default=(), validator=_check_patterns)
    not_errors: tuple[str, ...] = attrs.field(default=(), validator=_check_patterns)

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = judged_calls(sample, requestor=None)
        if isinstance(calls, Grade):
            return calls
        if not calls:
            return skipped("no_calls", "the run made no call")
        by_tool: dict[str, list[State]] = {}
        reasons = list[Reason]()
        for call in calls:
            state, message = self._ended(call)
            by_tool.setdefault(call.name, []).append(state)
            if state != "ok":
                error = ""
                if state == "error":
                    error = _error_text(call)[:_SHOWN]
                code = _CODES[state]
                message = message[:_SHOWN]
                reason = Reason(code=code, subject=call.name, message=message, error=error)
                reasons.append(reason)
        items = tuple([_item(name, states) for name, states in by_tool.items()])
        counts = {**add_counts(items), **_count_commands(calls)}
        executed = counts["ok"] + counts["error"]
        if not executed:
            grade = skipped("execution_not_recorded", "no call has a recorded result")
            return replace(grade, counts=counts, reasons=(*grade.reasons, *reasons))
        grade = sub_agent_grade(sample) or Grade(score=counts["ok"] / executed)
        reasons = [*grade.reasons, *reasons]
        return replace(grade, counts=counts, items=items, reasons=tuple(reasons))

    def _ended(self, call: ToolCall) -> tuple[State, str]:
        """Return the end of a call; of an error its text, behind the rule that tells it."""
        state = state_of(call)
        error = call.error or ""
        kind = call.error_type or ""
        is_by_table = kind.startswith(ERRORS)
        if state not in {"ok", "error"} or (state == "error" and not is_by_table):
            return state, error
        if self.errors or self.not_errors:
            text = _text_of(call.result)
            if any(re.search(pattern, text) for pattern in self.not_errors):
                return "ok", ""
            for pattern in self.errors:
                if re.search(pattern, text):
                    return "error", f"an error by the option errors ({pattern}): {text}"
        form = None
        if call.status is None:
            form = error_form(call.result)
        if form is not None:
            return "error", f"{_by_rule(form.type)}: {form.message}"
        return state, f"{_by_rule(kind)}: {error}" if is_by_table else ""


def _by_rule(error_type: str) -> str:
    """Return the sentence that names the rule by which a result is an error."""
    rule = error_type.removeprefix(ERRORS).strip()
    return f"an error by rule {rule}"


def _text_of(result: JSON) -> str:
    return result if isinstance(result, str) else compact(result)


def _error_text(call: ToolCall) -> str:
    """Return the text of a call's error, without the rule that found it."""
    if call.error:
        return call.error
    form = error_form(call.result)
    if form is None:
        return _text_of(call.result)
    return form.message


def _count_commands(calls: Iterable[ToolCall]) -> dict[str, int]:
    """Return the numbers of shell commands with a known exit code, and with one that is not 0."""
    codes = [call.exit_code for call in calls if call.exit_code is not None]
    nonzero = len(codes) - codes.count(0)
    return {"commands": len(codes), "nonzero_commands": nonzero} if codes else {}


def _item(name: str, states: Sequence[State]) -> Item:
    """Return the calls of a tool by how they ended, and the errors that were retried."""
    counts = dict.fromkeys(("calls", *_STATES, "retried", "recovered"), 0)
    for later, state in enumerate(reversed(states)):
        if state == "error":
            counts["retried"] += later > 0
            counts["recovered"] += counts["ok"] > 0
        counts[state] += 1
    counts["calls"] = len(states)
    error = counts["error"]
    return share_item(name, counts, counts["ok"], counts["ok"] + error)


_NONE, _RATE = "no call was executed", "ok / (ok + error)"


class ToolOutcomes(CallShares):
    """Calls by outcome, over all runs and by tool.

    Every count of the graded runs' grades is added up, and for each tool those of its items. Over
    calls, not over runs:

        success_rate   = ok / (ok + error)
        failed_rate    = error / (ok + error)
        recovered_rate = recovered / error

    ``recovered`` counts failed calls before a success of the same tool in their run, whatever its
    arguments. A rate is None where its divisor is 0. Intervals leave out one task at a time.
    """

    version = "2"
    figures = (
        Ratio(
            "success_rate",
            "Successful calls",
            about=_RATE,
            undefined=_NONE,
            right="ok",
            of="executed",
        ),
        Ratio(
            "failed_rate",
            "Failed calls",
            better="lower",
            about="error / (ok + error)",
            undefined=_NONE,
            right="error",
            of="executed",
        ),
        Ratio(
            "recovered_rate",
            "Failed calls before a success of the same tool",
            undefined="no call failed",
            optional=True,
            right="recovered",
            of="error",
        ),
        Figure(
            "tools.{tool}.success_rate",
            "Successful calls of a tool",
            about=_RATE,
            divisor="executed",
        ),
    )
    share, above, below, undefined = "success_rate", "ok", "executed", _NONE
    summands = ("ok", "error")

    @override
    def counts(self, grade: Grade | Item) -> Mapping[str, int]:
        return {"error": 0, "recovered": 0, **super().counts(grade)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs = sum(times for grade, times in grades.counted if grade.score is not None)
        return {"executed": 0, "runs": runs, **super().compute(grades)}
