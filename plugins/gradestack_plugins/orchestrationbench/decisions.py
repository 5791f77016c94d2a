"""To call or to reject: gold and predicted decision of every predicted sub-agent turn.

``documented`` raises nothing: a broken step is a failed step. ``upstream`` reads as the original
does, and raises where it does: the original then gives up the whole file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gradestack import (
    JSON,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Profile,
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
    standard_loads,
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
    """What the evaluation config says, as far as grading reads it."""

    agent_weight: float | None = None
    status_weight: float | None = None
    judge_section: bool = True
    """False when a config was given and lacks the judge's model or generation parameters."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario as recorded."""

    name: str
    run: JSON = None
    """An object in every sound file."""
    planned: bool = True
    """False for a run whose name leaves a gap: the original's plan part never reads it."""
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
    """Return what was recorded for one trial, by relative path or bare file name, by run name or
    number.
    """
    trials = verdicts.get(relative) or verdicts.get(relative.rpartition("/")[2]) or {}
    return trials.get(trial) or trials.get(trial.removeprefix(RUN_PREFIX)) or {}


MATRIX = (
    *(
        "true_positive_reject",
        "true_negative_reject",
        "false_positive_reject",
        "false_negative_reject",
    ),
    *("true_positive_fc", "false_positive_fc", "false_negative_fc", "true_negative_fc"),
)
_COUNTED = {
    "fc_fc": ("true_negative_reject", "true_positive_fc"),
    "fc_reject": ("false_positive_reject", "false_negative_fc"),
    "fc_failed": ("failed_generation", "false_negative_fc"),
    "reject_fc": ("false_negative_reject", "false_positive_fc"),
    "reject_reject": ("true_positive_reject", "true_negative_fc"),
    "reject_failed": ("failed_generation", "true_negative_fc"),
}
CELLS = tuple(_COUNTED)
"""Actual (FC, Reject) against predicted (FC, Reject, FAILED)."""

UNREADABLE, EMPTY, ARGUMENTS = "unreadable_file", "no_runs", "argument_part"
"""Fault codes: the file cannot be read; it holds no run; its argument part cannot be graded."""
UNDECODABLE = "Invalid JSON in arguments: "


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one step taken together: the original does not pair single calls."""

    names: tuple[JSON, ...] = ()
    arguments: Mapping[str, JSON] = msgspec.field(default_factory=dict)
    """Argument -> list with one value per call that has it.

    ``error`` may hold a text instead (upstream).
    """

    def shown(self) -> dict[str, JSON]:
        """Return the bag for people."""
        return {"names": list(self.names), "arguments": dict(self.arguments)}


EMPTY_CALL = Bag(names=("",))
"""What the original makes of an answer without calls and without a marker: a call of nothing."""


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
        return (
            self.fault is None
            and self.predicted != FAILED
            and (self.gold == CALL) == (self.predicted == CALL)
        )

    @property
    def cell(self) -> str:
        """Cell of the matrix actual against predicted."""
        predicted = {CALL: "fc", FAILED: "failed"}.get(self.predicted, "reject")
        return f"{'fc' if self.gold == CALL else 'reject'}_{predicted}"


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


def steps_of(label: Any, history: Any, profile: Profile) -> list[Step]:
    """Return every entry of ``sub_agent_history`` with its gold.

    In ``documented`` ids may be numbers or texts.
    """
    if profile == "upstream":
        return [_upstream_step(label, entry) for entry in history]
    return [
        _documented_step(as_map(label), number, entry)
        for number, entry in enumerate(as_list(history))
    ]


def _upstream_step(label: Any, entry: Any) -> Step:
    step = entry["step_id"]
    key = f"{step}-1" if f"{step}-1" in label else step
    gold, gold_bag, gold_text, text = GENERAL, None, None, None
    turn = label.get(key, {})
    if "tool_calls" in turn:
        functions = (call.get("function", {}) for call in turn["tool_calls"])
        gold, gold_bag = (
            CALL,
            _upstream_bag((each.get("name", ""), each.get("arguments", {})) for each in functions),
        )
    elif key in label:
        gold_text = turn.get("content", "")
        gold = marked(gold_text) or GENERAL
    if len(entry.get("tool_calls", [])) == 0:
        text = entry.get("content", "")
        rejected = marked(text)
        predicted, bag = (rejected, None) if rejected else (CALL, EMPTY_CALL)
    else:
        bag = _upstream_bag(
            (call["function"]["name"], call["function"]["arguments"])
            for call in entry["tool_calls"]
        )
        predicted = marked(bag.arguments) or CALL
    return Step(
        id=str(step),
        gold=gold,
        predicted=predicted,
        gold_bag=gold_bag,
        bag=bag,
        gold_text=gold_text,
        text=text,
        agent=entry.get("agent_id"),
        labelled=key in label,
    )


def _upstream_bag(functions: Iterable[tuple[Any, Any]]) -> Bag:
    """Return calls as a bag.

    A text that is not JSON becomes a text under the key ``error``, the last one winning.
    """
    names: list[JSON] = []
    arguments: dict[str, Any] = {}
    for name, raw in functions:
        names.append(name)
        if not isinstance(raw, str | dict):
            raise TypeError(f"arguments must be text or an object, not {type(raw).__name__}")
        try:
            values = raw if isinstance(raw, dict) else standard_loads(raw)
        except json.JSONDecodeError:
            arguments["error"] = f"{UNDECODABLE}{raw}"
            continue
        for key, value in values.items():
            arguments.setdefault(key, []).append(value)
    return Bag(names=tuple(names), arguments=arguments)


def _documented_step(label: Mapping[str, Any], number: int, entry: Any) -> Step:
    step = entry.get("step_id") if isinstance(entry, dict) else None
    if isinstance(step, bool) or not isinstance(step, int | str):
        message = (
            f"entry {number} of sub_agent_history: expected an object with a step_id, a "
            "text or a whole number"
        )
        return Step(
            id=f"entry {number}",
            fault=Fault(category="data", code="step_unreadable", message=message),
        )
    name = str(step)
    gold, gold_calls, gold_text, fault = gold_turn(label, name)
    text = text_of(entry.get("content"))
    predicted, bag = _predicted(tool_calls(entry.get("tool_calls")), text)
    return Step(
        id=name,
        gold=gold,
        predicted=predicted,
        gold_bag=_bag(gold_calls) if gold == CALL else None,
        bag=bag,
        gold_text=gold_text,
        text=text,
        agent=entry.get("agent_id"),
        labelled=f"{name}-1" in label or name in label,
        fault=fault,
    )


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
        raw = turn["tool_calls"]
        calls = tool_calls(raw)
        if (
            isinstance(raw, list)
            and len(calls) == len(raw)
            and all(call.arguments is not None for call in calls)
        ):
            return CALL, calls, None, None
        problem = "tool_calls: expected calls with an object as arguments"
    elif key == step:
        text = text_of(turn.get("content"))
        return marked(text) or GENERAL, (), text, None
    else:
        problem = "the gold call could not be read from the scenario: no tool_calls"
    return (
        GENERAL,
        (),
        None,
        Fault(category="data", code="gold_unreadable", message=f"label {key}: {problem}"),
    )


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


def _sample_step(sample: Sample, profile: Profile) -> Step | None:
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
    if predicted == FAILED and profile == "upstream":
        predicted, bag = CALL, EMPTY_CALL
    return Step(
        id="1",
        gold=gold,
        predicted=predicted,
        gold_bag=_bag(calls) if gold == CALL and calls is not None else None,
        bag=bag,
        gold_text=sample.expected.text if isinstance(sample.expected.text, str) else None,
        text=sample.text,
        agent=sample.agent_id,
    )


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of one trial beside their gold."""

    steps: tuple[Step, ...]
    missing: tuple[str, ...] = ()
    """Steps the label expects and the prediction lacks, which the original has in no matrix cell.

    In ``documented`` they are steps that failed, with ``answered`` False.
    """
    rejection_cases: int
    function_call_cases: int

    def counts(self) -> dict[str, int]:
        """Return the eight matrix counts, the six cells and all else that is counted.

        Faulty steps are left out.
        """
        counts = dict.fromkeys((*MATRIX, "rejection_type_mismatch", "failed_generation", *CELLS), 0)
        graded = [step for step in self.steps if step.fault is None]
        for step in graded:
            for name in (step.cell, *_COUNTED[step.cell]):
                counts[name] += 1
            counts["rejection_type_mismatch"] += (
                step.cell == "reject_reject" and step.gold != step.predicted
            )
        return {
            **counts,
            "rejection_cases": self.rejection_cases,
            "function_call_cases": self.function_call_cases,
            "steps_graded": len(graded),
            "steps_missing": len(self.missing) + sum(not step.answered for step in graded),
            "steps_faulty": len(self.steps) - len(graded),
        }


def fault_of(sample: Sample) -> Fault | None:
    """Return why a sample cannot be graded at all.

    Of a trial, its graders find out themselves what is of use.
    """
    if native_of(sample, Trial) is not None or sample.status is Status.OK:
        return None
    return sample.error or Fault(
        category="target", code=str(sample.status), message="the recorded run failed"
    )


def arguments_of(sample: Sample, profile: Profile) -> Arguments | Fault | None:
    """Return the argument part of a sample.

    A fault when it is broken, None when the sample has none.
    """
    trial = native_of(sample, Trial)
    if trial is None:
        step = _sample_step(sample, profile)
        if step is None:
            return None
        called = step.gold == CALL
        return Arguments(
            steps=(step,), rejection_cases=int(not called), function_call_cases=int(called)
        )
    if profile == "documented":
        return _documented(trial)
    try:
        return _upstream(trial)
    except Exception as error:  # noqa: BLE001 - the original gives up the file whatever it raises
        return Fault(category="data", code=ARGUMENTS, message=str(error), type=type(error).__name__)


def _documented(trial: Trial) -> Arguments | Fault:
    label = trial.part("label")
    if not isinstance(label, Mapping):
        what = (
            "the run is not an object"
            if not isinstance(trial.run, Mapping)
            else "the run has no label object"
        )
        return Fault(category="data", code=ARGUMENTS, message=f"{trial.name}: {what}")
    golds = {step: gold_turn(label, step) for step in gold_steps(label)}
    steps = steps_of(label, trial.part("sub_agent_history"), "documented")
    steps += [_unanswered_step(step, *golds[step]) for step in _missing(golds, steps)]
    readable = [gold for gold, _, _, fault in golds.values() if fault is None]
    calls = readable.count(CALL)
    rejections = len(readable) - calls
    return Arguments(steps=tuple(steps), rejection_cases=rejections, function_call_cases=calls)


def _unanswered_step(
    step: str, gold: Decision, calls: tuple[ToolCall, ...], text: JSON, fault: Fault | None
) -> Step:
    """Return a gold step without a prediction: a generation that failed."""
    bag = _bag(calls) if gold == CALL else None
    return Step(id=step, gold=gold, gold_bag=bag, gold_text=text, answered=False, fault=fault)


def _upstream(trial: Trial) -> Arguments:
    history, label = trial.run["sub_agent_history"], trial.run["label"]
    label["1"]["content"] if label["1"][
        "role"
    ] == "system" else ""  # raises what the original raises
    steps = steps_of(label, history, "upstream")
    for entry, step in zip(history, steps, strict=True):
        _check_history(label, entry["step_id"])
        if step.called and step.bag is not None and step.gold_bag is not None:
            set_f1(step.bag.names, step.gold_bag.names)
    cases = gold_steps(label)
    calls = sum(f"{step}-1" in label for step in cases)
    counts = {"rejection_cases": len(cases) - calls, "function_call_cases": calls}
    return Arguments(steps=tuple(steps), missing=_missing(cases, steps), **counts)


def _missing(gold: Iterable[str], steps: Iterable[Step]) -> tuple[str, ...]:
    predicted = {step.id for step in steps}
    return tuple(step for step in gold if step not in predicted)


def _check_history(label: Any, step: Any) -> None:
    """Raise what the original raises while it collects the turns before a step for its judge."""
    for key in sorted(label, key=lambda name: [int(part) for part in name.split("-")]):
        if key == step:
            return
        if "-1" in key and (calls := label[key].get("tool_calls")):
            decoded = [standard_loads(call["function"]["arguments"]) for call in calls]
            " ".join(
                [arguments["refinedQuery"] for arguments in decoded if "refinedQuery" in arguments]
            )


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
