"""To call or to reject: gold and predicted decision of every sub-agent turn.

A gold turn that cannot be read is a step with a fault, which is in no count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Literal

import msgspec

from gradestack import (
    JSON,
    ExpectedCall,
    Fault,
    Grade,
    Sample,
    ToolCall,
    native_of,
    replace,
    skipped,
)
from gradestack_plugins.orchestrationbench.records import Answer, Label, Trial, Turn, data_fault
from gradestack_plugins.readers.chat import text_of, tool_calls
from gradestack_plugins.readers.chat.unread import calls_unknown, has_unread_calls

Decision = Literal[
    "FC", "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION", "GENERAL_REJECTION", "FAILED"
]

CALL: Decision = "FC"
AWAITING: Decision = "AWAITING_USER_INPUT"
VIOLATION: Decision = "TOOL_CONSTRAINT_VIOLATION"
GENERAL: Decision = "GENERAL_REJECTION"
FAILED: Decision = "FAILED"

MARKERS: tuple[Decision, Decision] = (AWAITING, VIOLATION)
"""Texts that mark a rejection, in the order they are looked for."""
REJECTIONS: dict[str | None, Decision] = {
    AWAITING: AWAITING,
    VIOLATION: VIOLATION,
    GENERAL: GENERAL,
}

MATRIX = (
    "true_positive_reject",
    "true_negative_reject",
    "false_positive_reject",
    "false_negative_reject",
    "true_positive_fc",
    "false_positive_fc",
    "false_negative_fc",
    "true_negative_fc",
)
CELL_COUNTS = {
    "fc_fc": ("true_negative_reject", "true_positive_fc"),
    "fc_reject": ("false_positive_reject", "false_negative_fc"),
    "fc_failed": ("failed_generation", "false_negative_fc"),
    "reject_fc": ("false_negative_reject", "false_positive_fc"),
    "reject_reject": ("true_positive_reject", "true_negative_fc"),
    "reject_failed": ("failed_generation", "true_negative_fc"),
}
CELLS = tuple(CELL_COUNTS)
"""Actual (FC, Reject) against predicted (FC, Reject, FAILED)."""
MISMATCHES, FAILURES = "rejection_type_mismatch", "failed_generation"
CASES = ("rejection_cases", "function_call_cases")
STEP_COUNTS = (*MATRIX, MISMATCHES, FAILURES, *CELLS, *CASES, "steps_missing", "steps_faulty")
"""All that is counted of the steps of a trial."""
UNDECODABLE = "Invalid JSON in arguments: "


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one step taken together: the original does not pair single calls."""

    names: tuple[JSON, ...] = ()
    arguments: Mapping[str, list[JSON]] = {}
    """Argument -> a value of each call that has it."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One predicted sub-agent turn beside its gold turn."""

    id: str
    gold: Decision = GENERAL
    predicted: Decision = FAILED
    gold_calls: tuple[ToolCall, ...] = ()
    gold_bag: Bag = Bag()
    bag: Bag = Bag()
    gold_text: JSON = None
    text: JSON = None
    agent: JSON = None
    answered: bool = False
    """False when the prediction has no such step: neither a call nor a rejection was generated."""
    is_case: bool = True
    """Whether an answer is expected, so that it counts as a case."""
    labelled: bool = True
    """False when the label knows no such step."""
    fault: Fault | None = None
    """Why the step cannot be graded; then it is in no count."""

    @property
    def called(self) -> bool:
        """True where both sides call, so that the calls can be compared."""
        return self.cell == "fc_fc"

    @property
    def right(self) -> bool:
        """True when call was met with call, or rejection with rejection of whatever type."""
        return self.cell in ("fc_fc", "reject_reject")

    @property
    def cell(self) -> str:
        """Cell of the matrix actual against predicted."""
        return cell_of(self.gold, self.predicted)


def cell_of(gold: str, predicted: str) -> str:
    """Return the cell of a gold and a predicted decision."""
    sides: dict[str, str] = {CALL: "fc", FAILED: "failed"}
    return f"{sides.get(gold, 'reject')}_{sides.get(predicted, 'reject')}"


def marked(text: Any) -> Decision | None:
    """Return the rejection whose marker ``text`` contains, None for no marker."""
    return next((marker for marker in MARKERS if marker in text), None)


def is_case(label: Label, step: str) -> bool:
    """Return whether the label expects a sub-agent to answer at a step.

    A key without a dash whose entry has an ``agent_id``.
    """
    turn = label.get(step, Turn())
    return "-" not in step and turn.agent_id is not msgspec.UNSET


def gold_step(label: Label, name: str) -> Step:
    """Return a step as the label expects it, without an answer.

    An unknown step is a general rejection.
    """
    if f"{name}-1" in label:
        key = f"{name}-1"
    else:
        key = name
    turn = label.get(key, Turn())
    step = Step(id=name, is_case=is_case(label, name), labelled=key in label)
    raw = turn.tool_calls
    calls = tool_calls(turn.tool_calls)
    if raw is not msgspec.UNSET:
        problem = "tool_calls: expected calls with an object as arguments"
        is_read = isinstance(raw, list) and len(calls) == len(raw)
        if is_read and all(call.arguments is not None for call in calls):
            bag = bag_of(calls)
            return replace(step, gold=CALL, gold_calls=calls, gold_bag=bag)
    elif key == name:
        text = text_of(turn.content)
        gold = marked(text) or GENERAL
        return replace(step, gold=gold, gold_text=text)
    else:
        problem = "the gold call could not be read from the scenario: no tool_calls"
    fault = data_fault("gold_unreadable", f"label {key}: {problem}")
    return replace(step, fault=fault)


def _answered_step(label: Label, answer: Answer) -> Step:
    """Return an answer beside its gold turn."""
    text = text_of(answer.content)
    bag = bag_of(tool_calls(answer.tool_calls))
    step = gold_step(label, str(answer.step_id))
    predicted = predicted_decision(bag, text)
    agent = answer.agent_id if isinstance(answer.agent_id, str) else None
    return replace(step, predicted=predicted, bag=bag, text=text, agent=agent, answered=True)


def bag_of(calls: Iterable[ToolCall | ExpectedCall]) -> Bag:
    """Return the names and arguments of all calls of a step."""
    names: list[JSON] = []
    arguments: dict[str, list[JSON]] = {}
    for call in calls:
        names.append(call.name)
        if call.arguments is None:
            arguments.setdefault("error", []).append(f"{UNDECODABLE}{call.raw_arguments}")
        for key, value in (call.arguments or {}).items():
            arguments.setdefault(key, []).append(value)
    return Bag(names=tuple(names), arguments=arguments)


def predicted_decision(bag: Bag, text: str) -> Decision:
    """Return the decision of one answer.

    An argument may have a marker for its name.
    """
    if bag.names:
        return marked(bag.arguments) or CALL
    return marked(text) or FAILED


def _sample_step(sample: Sample) -> Step | Grade:
    """Return a whole sample as one step, or the grade that says why there is none."""
    expected = sample.expected
    calls = sample.expected.calls
    gold = REJECTIONS.get(expected.label)
    if gold is None:
        is_plain = all(call.plain for call in calls or ())
        if expected.alternatives or expected.forbidden or not is_plain:
            what = "more than a list of names and arguments, which this metric does not support"
            return skipped("reference_not_plain", f"the reference is {what}")
        gold = CALL if calls else GENERAL
    bag = bag_of(sample.calls or ())
    text = sample.text or ""
    predicted = predicted_decision(bag, text)
    if not bag.names:
        predicted = REJECTIONS.get(sample.label, predicted)
    is_unknown = sample.calls is None and predicted == FAILED  # what was called is not known
    if is_unknown or (calls is None and expected.label not in REJECTIONS):
        message = "no expected calls or rejection, or nothing predicted"
        return skipped("no_decision", message)
    if gold == CALL:
        gold_bag = bag_of(calls or ())
    else:
        gold_bag = Bag()
    return Step(
        id="1",
        gold=gold,
        predicted=predicted,
        gold_bag=gold_bag,
        bag=bag,
        text=sample.text,
        agent=sample.agent_id,
        answered=True,
    )


def steps_of(sample: Sample) -> list[Step] | Grade:
    """Return the steps of a sample beside their gold, or the grade that says why it has none.

    A step that the label expects and the prediction lacks is one that failed, not ``answered``.
    """
    trial = native_of(sample, Trial)
    if trial is None:
        if has_unread_calls(sample):
            return calls_unknown(sample)
        step = _sample_step(sample)
        return [step] if isinstance(step, Step) else step
    steps = [_answered_step(trial.label, answer) for answer in trial.answers]
    answered = {step.id for step in steps}
    golds = [gold_step(trial.label, name) for name in trial.label]
    return steps + [step for step in golds if step.is_case and step.id not in answered]


def count_steps(steps: Sequence[Step]) -> dict[str, int]:
    """Return the eight matrix counts, the six cells and all else that is counted.

    Faulty steps are left out. A case counts once, however often it was answered.
    """
    graded = [step for step in steps if step.fault is None]
    cases = {step.id: step.gold for step in graded if step.is_case}
    calls = list(cases.values()).count(CALL)
    counts = Counter(dict.fromkeys(STEP_COUNTS, 0))
    for step in graded:
        cell_count = CELL_COUNTS[step.cell]
        counts.update((step.cell, *cell_count))
        counts[MISMATCHES] += step.cell == "reject_reject" and step.gold != step.predicted
        counts["steps_missing"] += not step.answered
    counts["function_call_cases"], counts["rejection_cases"] = calls, len(cases) - calls
    counts["steps_graded"], counts["steps_faulty"] = len(graded), len(steps) - len(graded)
    return dict(counts)


def set_f1(predicted: Iterable[JSON], gold: Iterable[JSON]) -> float:
    """Return the F1 of two collections as sets; lists in them are taken as tuples."""
    predicted_set, gold_set = (
        {tuple(item) if isinstance(item, list) else item for item in side}
        for side in (predicted, gold)
    )
    if not predicted_set or not gold_set:
        if not predicted_set and not gold_set:
            return 1.0
        return 0.0
    n_common = len(predicted_set & gold_set)
    precision = n_common / len(predicted_set)
    recall = n_common / len(gold_set)
    return harmonic(precision, recall)


def sum_up(values: Iterable[float]) -> float:
    """Return a sum, added from left to right."""
    return reduce(add, values, 0.0)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values there are, added from left to right."""
    defined = [value for value in values if value is not None]
    if defined:
        return sum_up(defined) / len(defined)
    return None


def short(value: float | None) -> float | None:
    """Return a figure with four digits."""
    return None if value is None else round(value, 4)


def harmonic(precision: float, recall: float) -> float:
    """Return 2PR / (P + R), 0 when both are 0."""
    if precision + recall > 0:
        return 2 * (precision * recall) / (precision + recall)
    return 0.0
