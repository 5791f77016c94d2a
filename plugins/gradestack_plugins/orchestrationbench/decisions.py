"""To call or to reject: gold and predicted decision of every sub-agent turn.

A turn that cannot be read is a step with a fault, which is in no count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gradestack import (
    ABSENT,
    JSON,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Outcome,
    Reason,
    Sample,
    Status,
    ToolCall,
    native_of,
)
from gradestack.jsonio import (
    JsonProblem,
    as_list,
    as_map,
    compact,
    loads,
    read_regular,
)
from gradestack_plugins.readers.chat import text_of, tool_calls
from gradestack_plugins.readers.chat.unread import has_unread_calls

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

PLAN_MARK = "workflow_"
"""Text without which nothing is a gold plan."""

RUN_PREFIX = "run #"

Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)] | None


class Verdict(msgspec.Struct, frozen=True, rename=lambda name: f"{name}_count"):
    """A judge's counts for the leftover values of one argument.

    Without any of them the argument stays undecided.
    """

    tp: Count = None
    fp: Count = None
    fn: Count = None


Verdicts = dict[str, dict[str, dict[str, dict[str, Verdict]]]]
"""file -> trial -> step -> argument -> verdict."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the evaluation config; without one the defaults of the original."""

    agent_weight: float = 0.8
    status_weight: float = 0.5
    judge_section: bool = True
    """False when a config was given and lacks the judge's model or generation parameters.

    Only the original's program asks.
    """


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario as recorded."""

    name: str
    run: JSON = None
    """An object in every sound file."""
    setting: Setting = msgspec.field(default_factory=Setting)
    verdicts: Mapping[str, Mapping[str, Verdict]] | None = None
    """Recorded judge verdicts by step and argument; None when no judge was asked."""

    def part(self, name: str) -> Any:
        """Return a field of the run, None when the run is no object or lacks it."""
        return self.run.get(name) if isinstance(self.run, dict) else None


def read_verdicts(path: Path) -> Verdicts:
    """Return the verdicts of a JSON file.

    ``{FILE: {TRIAL: {STEP: {ARGUMENT: {"tp_count": 1, ...}}}}}``.
    """
    try:
        return msgspec.convert(loads(read_regular(path)), Verdicts)
    except (OSError, JsonProblem) as error:
        raise DataError(f"verdicts {path}: {error}") from error
    except ValueError as error:  # of msgspec's own kind, or a lone surrogate
        expected = "expected file -> trial -> step -> argument -> counts, none negative"
        raise DataError(f"verdicts {path}: {expected}", str(error)) from error


def verdicts_for(
    verdicts: Verdicts, relative: str, trial: str
) -> Mapping[str, Mapping[str, Verdict]]:
    """Return the verdicts of one trial, by relative path or bare file name, by run name or
    number.
    """
    trials = verdicts.get(relative) or verdicts.get(relative.rpartition("/")[2]) or {}
    return trials.get(trial) or trials.get(trial.removeprefix(RUN_PREFIX)) or {}


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

UNREADABLE, EMPTY, ARGUMENTS = "unreadable_file", "no_runs", "argument_part"
"""Fault codes: the file cannot be read; it holds no run; its argument part cannot be graded."""
UNDECODABLE = "Invalid JSON in arguments: "


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one step taken together: the original does not pair single calls."""

    names: tuple[JSON, ...] = ()
    arguments: Mapping[str, list[JSON]] = {}
    """Argument -> a value of each call that has it."""

    def shown(self) -> dict[str, JSON]:
        """Return the bag for people."""
        return {"names": list(self.names), "arguments": dict(self.arguments)}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One predicted sub-agent turn beside its gold turn."""

    id: str
    gold: Decision = GENERAL
    predicted: Decision = FAILED
    gold_bag: Bag | None = None
    bag: Bag | None = None
    gold_text: JSON = None
    text: JSON = None
    agent: JSON = None
    answered: bool = True
    """False when the prediction has no such step: neither a call nor a rejection was generated."""
    labelled: bool = True
    """False when the label knows no such step."""
    fault: Fault | None = None
    """Why the step cannot be graded; then it is in no count."""

    @property
    def called(self) -> bool:
        """True where both sides call, so that the calls can be compared."""
        return self.fault is None and self.gold == CALL and self.predicted == CALL

    @property
    def right(self) -> bool:
        """True when call was met with call, or rejection with rejection of whatever type."""
        return self.fault is None and self.cell in ("fc_fc", "reject_reject")

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


def gold_steps(label: Any) -> list[str]:
    """Return the steps the label expects of sub-agents.

    Keys without a dash whose entry has an ``agent_id``.
    """
    turns = as_map(label).items()
    return [
        key
        for key, turn in turns
        if isinstance(key, str) and "-" not in key and "agent_id" in as_map(turn)
    ]


def _recorded_step(label: Mapping[str, Any], number: int, entry: Any) -> Step:
    """Return an entry of ``sub_agent_history`` beside its gold; its id is a number or a text."""
    step = entry.get("step_id") if isinstance(entry, dict) else None
    if isinstance(step, bool) or not isinstance(step, int | str):
        expected = "expected an object with a step_id, a text or a whole number"
        message = f"entry {number} of sub_agent_history: {expected}"
        return Step(id=f"entry {number}", fault=data_fault("step_unreadable", message))
    name, text = str(step), text_of(entry.get("content"))
    predicted, bag = _predicted(tool_calls(entry.get("tool_calls")), text)
    return msgspec.structs.replace(
        gold_step(label, name),
        predicted=predicted,
        bag=bag,
        text=text,
        agent=entry.get("agent_id"),
        answered=True,
    )


def gold_step(label: Mapping[str, Any], name: str) -> Step:
    """Return a step as the label expects it, without an answer.

    An unknown step is a general rejection.
    """
    gold, calls, text, fault = gold_turn(label, name)
    bag = _bag(calls) if gold == CALL else None
    labelled = f"{name}-1" in label or name in label
    step = Step(id=name, gold=gold, gold_bag=bag, gold_text=text, fault=fault)
    return msgspec.structs.replace(step, answered=False, labelled=labelled)


def gold_turn(
    label: Mapping[str, Any], step: str
) -> tuple[Decision, tuple[ToolCall, ...], JSON, Fault | None]:
    """Return (decision, calls, text, fault) of the gold turn of a step.

    An unknown step is a general rejection.
    """
    key = f"{step}-1" if f"{step}-1" in label else step
    turn = label.get(key, {})
    if not isinstance(turn, dict):
        problem = f"expected an object, found {compact(turn)[:60]}"
    elif "tool_calls" in turn:
        calls, raw = tool_calls(turn["tool_calls"]), turn["tool_calls"]
        is_read = isinstance(raw, list) and len(calls) == len(raw)
        if is_read and all(call.arguments is not None for call in calls):
            return CALL, calls, None, None
        problem = "tool_calls: expected calls with an object as arguments"
    elif key == step:
        text = text_of(turn.get("content"))
        return marked(text) or GENERAL, (), text, None
    else:
        problem = "the gold call could not be read from the scenario: no tool_calls"
    return GENERAL, (), None, data_fault("gold_unreadable", f"label {key}: {problem}")


def _bag(calls: Iterable[ToolCall | ExpectedCall]) -> Bag:
    names: list[JSON] = []
    arguments: dict[str, list[JSON]] = {}
    for call in calls:
        names.append(call.name)
        if call.arguments is None:
            arguments.setdefault("error", []).append(f"{UNDECODABLE}{call.raw_arguments}")
        for key, value in (call.arguments or {}).items():
            arguments.setdefault(key, []).append(value)
    return Bag(names=tuple(names), arguments=arguments)


def _predicted(calls: Iterable[ToolCall], text: str) -> tuple[Decision, Bag | None]:
    """Return the decision of one answer and its calls.

    An argument may have a marker for its name.
    """
    bag = _bag(calls)
    if bag.names:
        return marked(bag.arguments) or CALL, bag
    return marked(text) or FAILED, None


def is_plain(expected: Expectation) -> bool:
    """Return whether a reference is one list of calls, each with a name and arguments
    to compare.
    """
    if expected.alternatives or expected.forbidden:
        return False
    return all(call.plain for call in expected.calls or ())


def _sample_step(sample: Sample) -> Step | None:
    """Return a whole sample as one step, None when it has no plain reference or no prediction of
    calls.
    """
    calls = sample.expected.calls
    rejections: dict[str, Decision] = {name: name for name in (*MARKERS, GENERAL)}
    gold = rejections.get(sample.expected.label or "")
    if gold is None:
        if calls is None or not is_plain(sample.expected):
            return None
        gold = CALL if calls else GENERAL
    if has_unread_calls(sample):
        return None
    if sample.calls is None and sample.label is None and sample.text is None:
        return None
    predicted, bag = _predicted(sample.calls or (), sample.text or "")
    if bag is None:
        predicted = rejections.get(sample.label or "", predicted)
    if sample.calls is None and predicted == FAILED:  # what was called is not known
        return None
    known = sample.expected.text
    return Step(
        id="1",
        gold=gold,
        predicted=predicted,
        gold_bag=_bag(calls or ()) if gold == CALL else None,
        bag=bag,
        gold_text=known if isinstance(known, str) else None,
        text=sample.text,
        agent=sample.agent_id,
    )


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of one trial beside their gold.

    A step that the label expects and the prediction lacks is one that failed, not ``answered``.
    """

    steps: tuple[Step, ...]
    rejection_cases: int
    function_call_cases: int

    def counts(self) -> dict[str, int]:
        """Return the eight matrix counts, the six cells and all else that is counted.

        Faulty steps are left out.
        """
        counts = dict.fromkeys((*MATRIX, "rejection_type_mismatch", "failed_generation", *CELLS), 0)
        counts["rejection_cases"] = self.rejection_cases
        counts["function_call_cases"] = self.function_call_cases
        graded = [step for step in self.steps if step.fault is None]
        for step in graded:
            for name in (step.cell, *CELL_COUNTS[step.cell]):
                counts[name] += 1
            is_mismatch = step.cell == "reject_reject" and step.gold != step.predicted
            counts["rejection_type_mismatch"] += is_mismatch
        counts["steps_graded"] = len(graded)
        counts["steps_missing"] = sum(not step.answered for step in graded)
        counts["steps_faulty"] = len(self.steps) - len(graded)
        return counts


def fault_of(sample: Sample) -> Fault | None:
    """Return why a sample cannot be graded at all.

    Of a trial, its graders find out themselves what is of use.
    """
    if native_of(sample, Trial) is not None or sample.status is Status.OK:
        return None
    message = "the recorded run failed"
    return sample.error or Fault(category="target", code=str(sample.status), message=message)


def arguments_of(sample: Sample) -> Arguments | Fault | None:
    """Return the argument part of a sample.

    A fault when it is broken, None when the sample has none.
    """
    trial = native_of(sample, Trial)
    if trial is not None:
        return _trial_arguments(trial)
    step = _sample_step(sample)
    if step is None:
        return None
    calls = int(step.gold == CALL)
    return Arguments(steps=(step,), rejection_cases=1 - calls, function_call_cases=calls)


def _trial_arguments(trial: Trial) -> Arguments | Fault:
    label = trial.part("label")
    if not isinstance(label, Mapping):
        is_run = isinstance(trial.run, Mapping)
        what = "the run has no label object" if is_run else "the run is not an object"
        return data_fault(ARGUMENTS, f"{trial.name}: {what}")
    history = as_list(trial.part("sub_agent_history"))
    steps = [_recorded_step(label, number, entry) for number, entry in enumerate(history)]
    answered = {step.id for step in steps}
    golds = [gold_step(label, name) for name in gold_steps(label)]
    steps += [gold for gold in golds if gold.id not in answered]
    decisions = [gold.gold for gold in golds if gold.fault is None]
    calls = decisions.count(CALL)
    cases = {"rejection_cases": len(decisions) - calls, "function_call_cases": calls}
    return Arguments(steps=tuple(steps), **cases)


def set_f1(predicted: Iterable[JSON], gold: Iterable[JSON]) -> float:
    """Return the F1 of two collections as sets; lists in them are taken as tuples."""
    ours, theirs = (
        {tuple(item) if isinstance(item, list) else item for item in side}
        for side in (predicted, gold)
    )
    if not ours or not theirs:
        return 1.0 if not ours and not theirs else 0.0
    both = len(ours & theirs)
    return harmonic(both / len(ours), both / len(theirs))


def make_grade(
    score: float | None,
    counts: Mapping[str, int],
    parts: Mapping[str, float | None],
    reasons: Iterable[Reason] = (),
    **metadata: JSON,
) -> Grade:
    """Return a grade; without a score the sample is skipped."""
    outcome = Outcome.SKIPPED if score is None else Outcome.GRADED
    given = {"counts": counts, "parts": parts, "reasons": tuple(reasons)}
    return Grade(outcome=outcome, score=score, metadata=metadata, **given)  # type: ignore[arg-type]


def make_reason(
    code: str, message: str, subject: str = "", expected: JSON = ABSENT, actual: JSON = ABSENT
) -> Reason:
    """Return a reason about a step."""
    sides = {"expected": expected, "actual": actual}
    return Reason(code=code, message=message, subject=subject, **sides)


def data_fault(code: str, message: str) -> Fault:
    """Return a fault of the recording."""
    return Fault(category="data", code=code, message=message)


def sum_up(values: Iterable[float]) -> float:
    """Return a sum, added from left to right."""
    return reduce(add, values, 0.0)


def mean(values: Iterable[float | None], undefined: float | None = None) -> float | None:
    """Return the mean of the values there are, added from left to right."""
    defined = [value for value in values if value is not None]
    return sum_up(defined) / len(defined) if defined else undefined


def harmonic(precision: float, recall: float) -> float:
    """Return 2PR / (P + R), 0 when both are 0."""
    return 2 * (precision * recall) / (precision + recall) if precision + recall > 0 else 0.0
