"""Why runs were not graded: the first grade in each state, and the most frequent reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradestack.gates.coverage import Coverage
from gradestack.gates.verdicts import Verdict
from gradestack.grading.merging import Merged
from gradestack.grading.plan import may_compare
from gradestack.jsonio.values import as_list, as_map, as_text
from gradestack.metrics.counts import Count
from gradestack.model import Outcome, Source
from gradestack.output import state_text, terminal_line
from gradestack.report import Report
from gradestack.suites.spec import Suite

_LONGEST_REASON = 300
_UNGRADED = [str(state) for state in Outcome if state != Outcome.GRADED]


class UngradedRun(NamedTuple):
    """A run that a grader did not grade."""

    number: int
    """Number of its line in results.jsonl."""
    where: str
    """``file:line`` where it was read; its id where nobody knows."""
    reason: str


FirstUngraded = Mapping[tuple[str, str], UngradedRun]
"""Grader key and state -> the first run whose grade has that state."""


def find_first_ungraded(
    counts: Mapping[str, Count], outcome: str, recorded: Report
) -> FirstUngraded:
    """Find the first run for each state that a warning or the summary has an example of.

    Args:
        counts: Grader key -> its counts.
        outcome: Key of the outcome grader where its skipped runs are named, else "".
        recorded: The rows; without any, nothing is found.
    """
    wanted = set()
    for key, count in counts.items():
        all_states = key == outcome or not count.graded
        states = _UNGRADED if all_states else [str(Outcome.FAILED)]
        wanted |= {(key, state) for state in states if count.states[state]}
    first: dict[tuple[str, str], UngradedRun] = {}
    for number, _, line in recorded.lines() if wanted and recorded.has_rows else ():
        if not any(state.encode() in line for _, state in wanted):
            continue
        row = recorded.row(number, line)
        for key, state in [*wanted]:
            grade = row["grades"][key]
            if grade["state"] == state:
                first[key, state] = UngradedRun(number, _place_of(row), reason_of(grade))
                wanted.remove((key, state))
        if not wanted:
            break
    return first


def _place_of(row: Mapping[str, Any]) -> str:
    source = row["source"]
    if source is not None:
        return str(Source(**source))
    return f"run {row['sample']['id']}"


def reason_of(grade: Mapping[str, Any]) -> str:
    """Describe in one line why a grade failed, was skipped or has its score."""
    fault = as_map(grade.get("fault"))
    reasons = as_list(grade.get("reasons"))
    reason = as_map(reasons[0]) if reasons else {}
    code = fault.get("code")
    rationale = grade.get("rationale")
    state = grade.get("state")
    texts = (
        fault.get("message"),
        code,
        reason.get("message"),
        rationale,
        reason.get("code"),
        state,
    )
    messages = filter(None, map(as_text, texts))
    message = next(messages, "")
    kind = as_text(fault.get("type"))
    if kind and not message.startswith(kind):
        message = f"{kind}: {message}"
    text = " ".join(message.split())
    if len(text) > _LONGEST_REASON:
        text = f"{text[:_LONGEST_REASON]}…"
    return text


def example_of(first: FirstUngraded, key: str) -> str:
    """Return ``the first: REASON`` of a grader's ungraded runs; "" without rows."""
    runs = [run for (grader, _), run in first.items() if grader == key]
    if runs:
        return f"the first: {terminal_line(min(runs).reason)}"
    return ""


def dataset_advice(suite: Suite, key: str) -> str:
    """Return advice to add expectations, where a grader compares and there is no dataset."""
    graders = {stage.key: stage.component for stage in suite.graders}
    compares = key in graders and may_compare(graders[key])
    has_dataset = suite.inputs.dataset is not None
    if compares and not has_dataset:
        return "; to add what is missing: --dataset FILE"
    return ""


def count_states(count: Count) -> str:
    """Count the runs in each state: ``3 not applicable, 1 error``."""
    states = count.states.items()
    return ", ".join(state_text(state, number) for state, number in states if number)


def all_failed_text(
    suite: Suite, counts: Mapping[str, Count], merged: Merged, first: FirstUngraded
) -> str | None:
    """Write that every grade failed, or that the outcome has no result; None for other runs."""
    if suite.allow_all_failed or merged.interrupted:
        return None
    graded = failed = 0
    for of_grader in counts.values():
        graded += of_grader.graded
        failed += of_grader.states[Outcome.FAILED]
    if failed and not graded:
        grades = "the only grade" if failed == 1 else f"all {failed} grades"
        text = f"{grades} failed, so nothing was graded"
        error = _first_error(merged, first)
        if error:
            return f"{text}; the first: {error}"
        return text
    key = "" if suite.success is None else suite.success.grader
    count = counts.get(key)
    if count is None or count.graded or not merged.samples:
        return None
    text = f"no result: {key!r}, the outcome grader, graded no run ({count_states(count)})"
    example = example_of(first, key)
    if example:
        text += f"; {example}"
    if "--dataset" in example:
        return text
    return text + dataset_advice(suite, key)


def _first_error(merged: Merged, first: FirstUngraded) -> str:
    """Return the first error of a grader, with its place where there are rows."""
    errors = [(run.number, key) for (key, state), run in first.items() if state == Outcome.FAILED]
    if errors:
        _, key = min(errors, key=lambda error: error[0])  # of one run, the first grader's
        failed = str(Outcome.FAILED)
        run = first[key, failed]
        return f"{run.where}, grader {key}: {run.reason}"
    for key, text in merged.tracebacks.items():
        lines = text.strip().splitlines()
        return f"grader {key}: {lines[-1]}"
    return ""


def add_reasons(gates: Sequence[Verdict], recorded: Report) -> None:
    """Add to the coverage of gates the most frequent reason of runs that were not graded.

    It is of the most frequent state of the runs that a grader should have graded.
    """
    entries: list[tuple[str, Coverage]] = []
    for gate in gates:
        entries += gate.all_coverage().items()
    has_ungraded = any(coverage.states for _, coverage in entries)
    if not has_ungraded or not recorded.has_rows:
        return
    reasons = _count_reasons(entries, recorded)
    for key, coverage in entries:
        counts = reasons.get((key, coverage.main_state))
        if counts:
            coverage.reason, _ = counts.most_common(1)[0]


def _count_reasons(
    entries: Sequence[tuple[str, Coverage]], recorded: Report
) -> dict[tuple[str, str], Counter[str]]:
    """Count by grader and state the reasons of runs that were not graded."""
    stand_ins: dict[str, set[str]] = {}
    for key, coverage in entries:
        stand_ins.setdefault(key, set()).update(coverage.elsewhere)
    marks = [f'"{state}"'.encode() for state in _UNGRADED]
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for number, _, line in recorded.lines():
        if not any(mark in line for mark in marks):
            continue
        grades = recorded.row(number, line)["grades"]
        applied = {key for key, grade in grades.items() if grade["state"] != Outcome.SKIPPED}
        for key in stand_ins.keys() & grades.keys():
            state = grades[key]["state"]
            has_stand_in = not applied.isdisjoint(stand_ins[key])
            is_elsewhere = state == Outcome.SKIPPED and has_stand_in
            if state != Outcome.GRADED and not is_elsewhere:
                counts = reasons.setdefault((key, state), Counter())
                counts[reason_of(grades[key])] += 1
    return reasons
