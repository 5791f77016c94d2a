"""Grader ``deepfabric``: verdicts on the first call, or on those of all turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import attrs
from typing_extensions import override

from gradestack import (
    ExpectedCall,
    Fault,
    Grade,
    Grader,
    Outcome,
    Reason,
    Sample,
    Status,
    ToolCall,
    ToolSpec,
    skipped,
)
from gradestack_plugins.deepfabric.samples import PROCESSING_ERROR
from gradestack_plugins.deepfabric.schemas import MOST_REASONS, Check
from gradestack_plugins.readers.chat.unread import calls_unknown, has_unread_calls

DEFAULT_WEIGHTS: Final = {
    "tool_selection": 0.40,
    "parameter_accuracy": 0.35,
    "execution_success": 0.25,
    "response_quality": 0.00,
}
"""The metrics, in the order of the sum."""
METRICS: Final = tuple(DEFAULT_WEIGHTS)
TOLERANCE: Final = 1e-9
Weights = tuple[float, ...]


def resolve_weights(stated_weights: Mapping[str, float], *, normalize: bool = False) -> Weights:
    """Return the weights in the order of the sum; a metric that is not named weighs 0.

    Raises:
        ValueError: They are no weights.
    """
    if unknown := [name for name in stated_weights if name not in METRICS]:
        names = ", ".join(map(repr, unknown))
        known = ", ".join(METRICS)
        raise ValueError(f"unknown weights {names}; the metrics are {known}")
    for name, weight in stated_weights.items():
        if not 0 <= weight < math.inf:
            raise ValueError(
                f"the weight of {name} must be a finite number of at least 0, got {weight!r}"
            )
    weights = [float(stated_weights.get(name, 0)) for name in METRICS]
    total = sum(weights)
    if not normalize:
        size = abs(total - 1)
        if size > TOLERANCE:
            hint = "set normalize: true to divide them by their sum"
            raise ValueError(f"weights must sum to 1, they sum to {total:.12g}; {hint}")
        return tuple(weights)
    if not 0 < total < math.inf:
        raise ValueError(f"weights that sum to {total:g} cannot be normalized")
    return tuple([weight / total for weight in weights])


def weighted(values: Sequence[float], weights: Weights) -> float:
    """Sum value x weight from left to right, with one rounding per step as the original does."""
    total = 0.0
    for value, weight in zip(values, weights, strict=True):
        total += value * weight
    return total


Verdict = tuple[bool, bool, bool]  # (tool selection, parameters, execution) right or wrong
WRONG: Final = (False, False, False)
RIGHT: Final = (True, True, True)
VERDICTS: Final = (RIGHT, (True, False, False), (False, True, False), WRONG)
"""All that a single call can get."""
TIPS: Final = {
    "data": "the record breaks a rule of the format: mend it",
    "target": "see whether the model answered at all, and in the output format its calls are read "
    "from",
}
"""Help against a processing error, by the category of its fault."""
NOT_PLAIN: Final = (
    "the reference is more than a list of names and arguments, which this metric does not support"
)
_OK: Final = Status.OK  # members of an Enum take long to get at
Marks = tuple[float, dict[str, float | None], dict[str, int]]
"""Score, parts and counts of a verdict."""


def marks_of(
    verdict: Verdict, weights: Weights, quality: float = 0.0, *, processed: bool = True
) -> Marks:
    """Return what a verdict counts under these weights."""
    values = (*map(float, verdict), quality)
    metrics = METRICS[:3]
    counts = dict(zip(metrics, map(int, verdict), strict=True))
    errors = int(not processed)
    counts |= {"processed": int(processed), "errors": errors}
    return weighted(values, weights), dict(zip(METRICS, values, strict=True)), counts


def calls_of_turns(sample: Sample, most: int) -> list[ToolCall]:
    """Return the calls of the assistant messages that are looked at.

    ``most`` of them, up to the first without calls.

    Where the conversation does not say which calls were made when, all are one reply.
    """
    messages = [message for turn in sample.turns for message in turn]
    turns = [message.tool_calls for message in messages if message.role == "assistant"]
    if not any(turns):
        return list(sample.calls or ())
    calls: list[ToolCall] = []
    for made in turns[:most]:
        if not made:
            break
        calls += made
    return calls


@attrs.frozen(kw_only=True)
class DeepFabric(Grader):
    """Grades the first call of a sample against the first expected call, or the calls of all its
    turns.

    Per sample, each of three parts is 0.0 or 1.0:

    - ``tool_selection``: the called tool is the expected one (exact text)
    - ``parameter_accuracy``: every required argument is there and every known argument is of its
      declared type, by the schema of the tool that was *called*. Values are not compared, arguments
      the schema does not know are ignored
    - ``execution_success``: tool_selection and parameter_accuracy
    - ``response_quality``: 0.0; the share of the expected tools that were called under
      ``multi_turn``

        score = tool_selection * w1 + parameter_accuracy * w2 + execution_success * w3 +
        response_quality * w4

    summed from left to right, by default with the weights .40, .35, .25 and .00. Types: str, int
    (no bool, not 1.0), float (int or float, no bool), bool, list, dict; null is of no type. A
    sample whose record or reply could not be processed, or whose run failed, is a failed grade with
    all parts 0.0, and counts like any other wrong one. ``counts`` holds the verdicts as integers,
    and ``processed`` or ``errors`` as 1.

    Under ``multi_turn``, tool_selection is that every expected tool was called; parameter_accuracy
    is about every call.

    Samples of other formats are graded by their ``calls``, ``turns``, ``expected.calls`` and
    ``tools``; without a reference or without recorded calls they are skipped.
    """

    metric_weights: dict[str, float] | None = None
    """Weight by metric, replacing the defaults as a whole; a metric that is not named weighs 0."""
    normalize: bool = False
    """Divide the weights by their sum."""
    unknown_arguments: Literal["ignore", "wrong"] = "ignore"
    """Whether an argument the schema does not know makes the parameters wrong."""
    check_enums: bool = False
    """Hold values against ``enum`` and ``const``."""
    nested: bool = False
    """Check nested objects and list items too.

    Their types, required names, ``anyOf`` and ``oneOf``.
    """
    multi_turn: bool = False
    """Grade all recorded turns by the tools that were called, instead of the first call alone."""
    max_turns: int = attrs.field(default=10, validator=attrs.validators.ge(1))
    """How many turns ``multi_turn`` looks at."""

    version = "2"
    needs = frozenset({"calls", "expected"})
    compares = frozenset({"calls", "text"})
    graded_statuses = frozenset({Status.OK, Status.FAILED})
    metrics = ("deepfabric", "mean")
    verdict_labels = ("successful", "not successful")

    weights: Weights = attrs.field(init=False, eq=False, repr=False)
    """The weights in effect, in the order of the sum."""
    _check: Check = attrs.field(init=False, eq=False, repr=False)
    """The check of arguments that the options ask for."""
    _marks: dict[Verdict, Marks] = attrs.field(init=False, eq=False, repr=False)
    """What each verdict on a single call counts."""

    def __attrs_post_init__(self) -> None:
        stated = DEFAULT_WEIGHTS if self.metric_weights is None else self.metric_weights
        weights = resolve_weights(stated, normalize=self.normalize)
        check = Check(self.unknown_arguments == "wrong", self.check_enums, self.nested)
        marks = {verdict: marks_of(verdict, weights) for verdict in VERDICTS}
        for name, value in (("weights", weights), ("_check", check), ("_marks", marks)):
            object.__setattr__(self, name, value)

    @override
    def grade(self, sample: Sample) -> Grade:
        error = sample.error
        expected = sample.expected.calls
        if error is not None and error.code == PROCESSING_ERROR:
            return self._error(error, expected)
        if expected is None:
            return skipped("no_reference", "no expected call")
        if sample.tools is None:
            return skipped("no_tools", "no tool definitions recorded")
        if sample.status is not _OK:
            fault = error or Fault(category="target", code="failed_run")
            return self._error(fault, expected)
        return self._grade_processed(sample, expected, sample.tools)

    def _grade_processed(
        self, sample: Sample, expected: tuple[ExpectedCall, ...], tools: tuple[ToolSpec, ...]
    ) -> Grade:
        """Grade a sample that the original would process; skip it if it cannot be compared."""
        calls = sample.calls
        if calls is None:
            return _without_calls(sample)
        is_first_alone = not self.multi_turn
        reference = sample.expected
        is_open = bool(reference.alternatives or reference.forbidden)
        for due in expected:
            if due.names or due.optional:
                is_open = True
            if is_first_alone:
                break
        if is_open:
            return skipped("reference_not_plain", NOT_PLAIN)
        for call in calls:
            if call.arguments is None:
                return self._error(_unreadable(call), expected)
            if is_first_alone:
                break
        wanted = expected[0] if expected else None
        made = calls[0] if calls else None
        if not is_first_alone:
            made_in_turns = calls_of_turns(sample, self.max_turns)
            quality, mistakes, verdict = self._judge_turns(expected, made_in_turns, tools)
            marks = marks_of(verdict, self.weights, quality)
            return _graded(verdict, wanted, made, mistakes[:MOST_REASONS], marks)
        mistakes, verdict = self._judge_call(wanted, made, tools)
        return _graded(verdict, wanted, made, mistakes, self._marks[verdict])

    def _judge_call(
        self, wanted: ExpectedCall | None, made: ToolCall | None, tools: tuple[ToolSpec, ...]
    ) -> tuple[list[Reason], Verdict]:
        """Compare a call with the expected one.

        Returns:
            Reasons against it; the verdict: whether tool, parameters, and both are right.
        """
        if wanted is None:
            if made is None:
                return [], RIGHT
            surplus = Reason(
                code="unexpected_call",
                subject=made.name,
                actual=made.name,
                message="no call was expected",
            )
            return [surplus], WRONG
        if made is None:
            return [_missing(wanted.name)], WRONG
        reasons = self._argument_reasons(made, tools)
        is_selected = made.name == wanted.name
        is_accurate = not reasons
        if not is_selected:
            other = Reason(
                code="wrong_tool", subject=wanted.name, expected=wanted.name, actual=made.name
            )
            reasons = [other, *reasons]
        return reasons, (is_selected, is_accurate, is_selected and is_accurate)

    def _argument_reasons(self, made: ToolCall, tools: tuple[ToolSpec, ...]) -> list[Reason]:
        name = made.name
        for tool in tools:
            if tool.name == name:
                return self._check.list_reasons(name, tool.parameters, made.arguments or {})
        message = "the called tool is not in the snapshot"
        return [Reason(code="unknown_tool", subject=name, actual=name, message=message)]

    def _judge_turns(
        self,
        expected: Sequence[ExpectedCall],
        calls: Sequence[ToolCall],
        tools: tuple[ToolSpec, ...],
    ) -> tuple[float, list[Reason], Verdict]:
        """Return the share of the expected tools that were called, the reasons, and the verdict.

        - selection: every expected tool was called, in whatever order
        - parameters: the arguments of every call fit the schema of the called tool, and calls were
          made just where some are due
        - execution: both
        """
        names = dict.fromkeys(call.name for call in expected)
        called = {call.name for call in calls}
        reasons = [_missing(name) for name in names if name not in called]
        quality = float(not calls)
        if names:
            quality = (len(names) - len(reasons)) / len(names)
        if calls and not names:
            reasons = [Reason(code="unexpected_call", message="no call was expected")]
        mistakes = [reason for call in calls for reason in self._argument_reasons(call, tools)]
        is_selected = quality == 1.0
        is_accurate = not mistakes and bool(calls) == bool(names)
        verdict = (is_selected, is_accurate, is_selected and is_accurate)
        return quality, reasons + mistakes, verdict

    def _error(self, fault: Fault, expected: Sequence[ExpectedCall] | None) -> Grade:
        """Build the grade of a processing error, which counts as wrong in every figure."""
        _, parts, counts = marks_of(WRONG, self.weights, processed=False)
        tip = TIPS.get(fault.category)
        gold = expected[0].name if expected else None
        reason = Reason(code="processing_error", message=fault.message)
        if tip:
            rationale = f"{fault.message} ({tip})"
        else:
            rationale = fault.message
        return Grade(
            outcome=Outcome.FAILED,
            parts=parts,
            counts=counts,
            gold=gold,
            fault=fault,
            reasons=(reason,),
            rationale=rationale,
        )


def _graded(
    verdict: Verdict,
    wanted: ExpectedCall | None,
    made: ToolCall | None,
    reasons: Sequence[Reason],
    marks: Marks,
) -> Grade:
    """Build the grade of a verdict, with the names of the expected call and the one made."""
    score, parts, counts = marks
    return Grade(
        score=score,
        passed=verdict == RIGHT,
        counts=counts,
        parts=parts,
        label=None if made is None else made.name,
        gold=None if wanted is None else wanted.name,
        reasons=tuple(reasons),
    )


def _without_calls(sample: Sample) -> Grade:
    """Return the grade of a sample that does not say which calls were made."""
    if has_unread_calls(sample):
        return calls_unknown(sample)
    return skipped("calls_not_recorded", "no calls recorded")


def _missing(name: str) -> Reason:
    return Reason(code="missing_call", subject=name, message="a call was expected")


def _unreadable(call: ToolCall) -> Fault:
    text = (call.raw_arguments or "")[:80]
    what = f"the arguments of the call to {call.name!r} are not a JSON object: {text}"
    return Fault(category="target", code=PROCESSING_ERROR, message=what)
