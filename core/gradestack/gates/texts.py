"""Texts about verdicts: the line of a gate, what people should know of it, and its warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack.gates.coverage import Coverage
from gradestack.gates.rules import PERCENT, as_percent, exactly
from gradestack.gates.verdicts import FAILED_SHARE, Verdict
from gradestack.output import counted, distinguishing_decimals, state_text, terminal_line

_LISTED = 3


def gate_lines(
    gate: Mapping[str, Any], *, apart: bool = False, over_runs: bool = False
) -> tuple[str, ...]:
    """Return the line of a gate of a summary.

    Args:
        gate: The entry of summary.json.
        apart: Whether what was compared stands on a second line, as letta-evals' guide has it.
        over_runs: Whether it is about all runs together.
    """
    verdict = msgspec.convert(gate, Verdict)
    outcome_text = verdict.outcome.replace("_", " ").upper()
    heading = f"Gate ({verdict.text}): {outcome_text}"
    actual = f"actual: {actual_text(verdict)}"
    parts = [f"{actual}{certainty_text(verdict)}", *list_notes(verdict)]
    if over_runs:
        parts.append("all runs together")
    notes = terminal_line("; ".join(parts))
    if apart:
        return heading, f"  {notes}"
    return (f"{heading} ({notes})",)


def gate_texts(gate: Mapping[str, Any], decimals: int = 2) -> tuple[str, list[str]]:
    """Write the figure that a gate compared, and a list of notes on it.

    Args:
        gate: The gate, by whomever the summary was written.
        decimals: The fewest a figure has; it has as many as show its verdict.
    """
    verdict = msgspec.convert(gate, Verdict)
    return actual_text(verdict, decimals), list_notes(verdict, decimals)


def actual_text(verdict: Verdict, decimals: int = 2) -> str:
    """Write the figure that a gate compared; for a gate of conditions, the figures of these."""
    actual = verdict.actual
    if verdict.conditions:
        texts = []
        for part in verdict.conditions:
            text = actual_text(part, decimals)
            texts.append(f"({text})" if part.conditions else text)
        return f" {verdict.operator} ".join(texts)
    if actual is None:
        return "n/a"
    if verdict.kind == "tasks":
        return f"{actual:,} of {verdict.tasks:,} tasks"
    is_percent = verdict.metric in PERCENT
    if verdict.kind == "baseline":
        if is_percent:
            return f"{actual:+.1f} points"
        return f"{actual:+.{decimals}f}"
    threshold = actual if verdict.value is None else verdict.value
    if verdict.metric == FAILED_SHARE:
        is_percent = True
        actual = as_percent(actual)
        threshold = as_percent(threshold)
    number = distinguishing_decimals(actual, threshold, 1 if is_percent else decimals)
    return f"{number}%" if is_percent else number


def certainty_text(verdict: Verdict) -> str:
    """Return the interval of a gate's figure, or the bounds that decide, and whether the threshold
    lies within.
    """
    interval = verdict.interval
    has_interval = interval.get("low") is not None
    if not has_interval or verdict.actual is None:
        return ""
    confidence = verdict.confidence
    low, high = verdict.bounds or (interval["low"], interval["high"])
    ends = f"{low:,.2f} to {high:,.2f}"
    if verdict.metric in PERCENT:
        sign = "" if verdict.kind == "baseline" else "%"
        low_percent = 100 * low
        high_percent = 100 * high
        ends = f"{low_percent:.1f}{sign} to {high_percent:.1f}{sign}"
    level = 100 * (confidence or interval.get("confidence") or 0.95)
    shown = f", {level:.6g}% interval {ends}"
    if confidence is not None:
        shown = f", one-sided {level:.6g}% bounds {ends}"
    if verdict.sure is not False:
        return shown
    if verdict.outcome == "undecided":
        return f"{shown}: undecided"
    verb = "passes" if verdict.passed else "fails"
    return f"{shown}: {verb}, but {_doubt_text(verdict)}"


def _doubt_text(verdict: Verdict) -> str:
    """Return on which side of the threshold the figure could be as well."""
    if verdict.op is None or verdict.value is None or verdict.op == "eq":
        return "the interval contains the threshold"
    is_lower_bound = verdict.op in {"gt", "gte"}
    side = "below" if is_lower_bound == verdict.passed else "above"
    if verdict.metric == FAILED_SHARE:
        value = as_percent(verdict.value)
    else:
        value = verdict.value
    unit = ""
    if verdict.metric in {*PERCENT, FAILED_SHARE}:
        unit = "%"
    return f"could be {side} {exactly(value)}{unit}"


def list_notes(verdict: Verdict, decimals: int = 2) -> list[str]:
    """List notes on a figure: the runs it leaves out, and groups that do not hold."""
    notes = [verdict.reason] if verdict.reason else []
    if verdict.uncalibrated:
        notes.append(f"uncalibrated: {verdict.uncalibrated}")
    if verdict.flips:
        flips = verdict.flips
        fixed = counted(flips.fixed, "run")
        notes.append(f"{fixed} fixed, {flips.broken:,} broken")
    if verdict.kind == "max_failed":
        notes.append(_lost_text(verdict))
    tasks = []
    for task in verdict.failing or ():
        tasks.append(f"{task.task} ({task.passed} of {task.runs})")
    groups = []
    for key, group in (verdict.groups or {}).items():
        if not group.passed:
            groups.append(f"{key} ({actual_text(group, decimals)})")
    return [*notes, *list_failing(tasks), *coverage_texts(verdict), *list_failing(groups)]


def _lost_text(verdict: Verdict) -> str:
    """Write the count of runs without a verdict: failed, missing and unreadable ones."""
    unreadable = verdict.unreadable or 0
    counts = (verdict.failed, verdict.missing, unreadable)
    ungraded = sum(filter(None, counts))
    text = f"{ungraded:,} of {verdict.of:,} for {verdict.grader}"
    if unreadable:
        return f"{text}, {unreadable} of them unreadable"
    return text


def list_failing(names: Sequence[str]) -> list[str]:
    """Return a note with the first tasks or groups that do not hold; none without any."""
    if not names:
        return []
    listed_names = ", ".join(names[:_LISTED])
    number_left = len(names) - _LISTED
    return [
        f"not in {listed_names} and {number_left} more"
        if number_left > 0
        else f"not in {listed_names}"
    ]


def coverage_texts(verdict: Verdict) -> list[str]:
    """Return ``n of N graded`` for each grader of a gate that did not grade every run.

    With how many are another grader's, and of the rest the states and the most frequent reason.
    """
    coverage = verdict.all_coverage()
    return [_coverage_text(key, part, len(coverage)) for key, part in coverage.items()]


def _coverage_text(key: str, coverage: Coverage, graders: int) -> str:
    """Write how many runs a grader graded and why it did not grade the others."""
    text = f"{coverage.graded:,} of {coverage.runs:,} graded"
    if graders > 1:
        text += f" by {key}"
    for grader, number in coverage.elsewhere.items():
        text += f", {number:,} are for {grader}"
    states = Counter(coverage.states).most_common()
    if states:
        counts = ", ".join(state_text(state, number) for state, number in states)
        text += f": {counts}"
    if not coverage.reason:
        return text
    if len(states) > 1:
        return f"{text}; most often {coverage.reason}"
    return f"{text}, {coverage.reason}"


def is_many(failed: int, runs: int) -> bool:
    """Return whether more than 5 % of the runs are lost, which is worth a warning."""
    return 20 * failed > runs


def share_text(failed: int, runs: int) -> str:
    """Return ``3 of 20 runs (15.0%)``."""
    percent = 100 * failed / runs
    return f"{failed:,} of {runs:,} runs ({percent:.1f}%)"


def gate_warnings(verdict: Verdict) -> Iterator[str]:
    """Yield the warnings about a gate that its line does not show."""
    name = f"gate {verdict.text}"
    for group, part in (verdict.groups or {}).items():
        for key, coverage in part.all_coverage().items():
            if is_many(coverage.lost, coverage.runs):
                share = share_text(coverage.lost, coverage.runs)
                of_group = f"{terminal_line(group)}, {share}"
                yield f"{name}: {of_group} could not be graded by {key!r} and do not count"
    if verdict.baseline and verdict.outcome == "no_data":
        yield f"{name}: {verdict.reason}"
    for part in (verdict, *(verdict.conditions or ())):
        if part.outcome == "undecided" and part.on_undecided == "warn":
            yield f"gate {part.text}: undecided"
    if verdict.on_uncalibrated == "warn":
        yield f"{name}: uncalibrated: {verdict.uncalibrated}"


def quiet_warnings(gate: Mapping[str, Any]) -> Iterator[str]:
    """Yield everything that must be said of a gate of a summary where its line is not printed."""
    verdict = msgspec.convert(gate, Verdict)
    name = f"gate {verdict.text}"
    yield from gate_warnings(verdict)
    if verdict.outcome == "undecided":
        yield f"{name}: undecided: {verdict.reason or 'its interval contains the threshold'}"
    for text in coverage_texts(verdict):
        yield f"{name}: {text}"
