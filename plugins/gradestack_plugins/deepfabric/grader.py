"""The grader of the family."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Final, Literal

import attrs
from typing_extensions import override

from gradestack import (
    LARGEST_SCORE,
    ExpectedCall,
    Fault,
    Grade,
    Grader,
    Outcome,
    Profile,
    Reason,
    Sample,
    Status,
    ToolCall,
    skipped,
)
from gradestack_plugins.deepfabric.aggregators import NO_SCORE
from gradestack_plugins.deepfabric.checks import Strictness, schema_reasons, value_reasons, values_equal
from gradestack_plugins.deepfabric.samples import PROCESSING_ERROR
from gradestack_plugins.deepfabric.schemas import Signature, conversion_problem, find
from gradestack_plugins.deepfabric.weights import Weights, resolve, weighted

Verdict = tuple[bool, bool, bool]
"""(tool selection, parameters, execution) right or wrong."""

WRONG: Final = (False, False, False)
RIGHT: Final = (True, True, True)
_OK: Final = Status.OK
MOST_REASONS: Final = 50
"""Arguments whose faults are listed per sample; the verdict needs one."""


@attrs.frozen(kw_only=True)
class DeepFabric(Grader):
    """Grades the first call of a sample against the first expected call.

    Per sample, each of four parts is 0.0 or 1.0:

    - ``tool_selection``: the called tool is the expected one (exact text)
    - ``parameter_accuracy``: every required argument is there and every known argument is of its declared type, by the
      schema of the tool that was *called*; values are not compared, arguments the schema does not know are ignored
    - ``execution_success``: tool_selection and parameter_accuracy
    - ``response_quality``: always 0.0 (kept so that weights of the original apply)

        score = tool_selection * w1 + parameter_accuracy * w2 + execution_success * w3 + response_quality * w4

    summed from left to right, by default with the weights .40, .35, .25 and .00. Types: str, int (no bool, not 1.0),
    float (int or float, no bool), bool, list, dict; null is of no type. A sample whose record or reply could not be
    processed, or whose run failed, has all parts 0.0 and counts like any other wrong one. ``counts`` holds the
    verdicts as integers, and ``processed`` or ``errors`` as 1.

    Differences of the profiles:

    ====================================  =========================================  ==================================
    situation                             documented                                 upstream
    ====================================  =========================================  ==================================
    no call expected, none made           all right                                  all wrong
    no call expected, one made            all wrong                                  all wrong
    call expected, none made              all wrong                                  selection and execution wrong;
                                                                                     parameters right when none were
                                                                                     expected
    called tool not in the snapshot       parameters wrong                           arguments compared by value
    no snapshot of the tools              skipped                                    arguments compared by value
    no arguments expected, none made      checked against the schema                 parameters right
    required name without a property      required                                   not required
    type missing or unknown               not checked                                text
    list of types                         any of them; null if listed                processing error
    weights                               known, finite, >= 0, sum 1                 taken as they are
    ====================================  =========================================  ==================================

    Samples of other formats are graded by their ``calls``, ``expected.calls`` and ``tools``; without a reference or
    without recorded calls they are skipped.
    """

    profile: Profile = "documented"
    weights: dict[str, Any] | None = None
    """Weight by metric, replacing the defaults as a whole; a metric that is not named weighs 0. Numbers; ``upstream``
    takes NaN, infinities, booleans and texts of numbers too."""
    metric_weights: dict[str, Any] | None = None
    """The original's name for ``weights``."""
    normalize: bool = False
    """Divide the weights by their sum."""
    unknown_arguments: Literal["ignore", "wrong"] = "ignore"
    """Whether an argument the schema does not know makes the parameters wrong."""
    check_enums: bool = False
    """Hold values against ``enum`` and ``const``."""
    nested: bool = False
    """Check nested objects and list items too: their types, required names, ``anyOf`` and ``oneOf``."""

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"calls", "expected", "tools"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls", "expected"})
    handles: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    aggregators: ClassVar[tuple[str, ...]] = ("deepfabric", "mean")

    def __attrs_post_init__(self) -> None:
        if self.weights is not None and self.metric_weights is not None:
            msg = "weights and metric_weights are two names of one option: give one of them"
            raise ValueError(msg)
        self.resolved_weights  # noqa: B018  refuse bad weights before any data is read

    @cached_property
    def resolved_weights(self) -> Weights:
        """The weights in effect, in the order of the sum."""
        return resolve(self.given_weights, self.profile, normalize=self.normalize)

    @property
    def given_weights(self) -> dict[str, Any] | None:
        """The weights as they were given, under either name."""
        return self.weights if self.weights is not None else self.metric_weights

    @cached_property
    def _strict(self) -> Strictness:
        return Strictness(self.unknown_arguments == "wrong", self.check_enums, self.nested)

    @cached_property
    def _table(self) -> dict[Verdict, tuple[float, dict[str, float | None], dict[str, int]]]:
        """Score, parts and counts of every verdict under these weights."""
        verdicts: tuple[Verdict, ...] = (RIGHT, WRONG, (True, False, False), (False, True, False))
        return {verdict: _figures(verdict, self.resolved_weights, processed=True) for verdict in verdicts}

    @override
    def grade(self, sample: Sample) -> Grade:
        expected = sample.expected.calls
        upstream = self.profile == "upstream"
        error = sample.error
        if error is not None and error.code == PROCESSING_ERROR:
            return self._error(sample, error)
        if expected is None:
            return skipped("no_reference", "the sample does not say which call is expected")
        tools = sample.tools
        if tools is None and not upstream:
            return skipped("no_tools", "the sample does not say which tools there were")
        if sample.status is not _OK:
            return self._error(sample, error or Fault(category="target", code="failed_run"))
        calls = sample.calls
        if calls is None:
            return skipped("calls_not_recorded", "the sample does not say which calls were made")
        wanted = expected[0] if expected else None
        made = calls[0] if calls else None
        if sample.expected.alternatives or sample.expected.forbidden or (wanted is not None and self._open(wanted)):
            message = "the reference is more than a list of names and arguments, which this metric does not know"
            return skipped("reference_not_plain", message)
        if made is not None and made.arguments is None:
            return self._error(sample, _undecoded(made))
        if upstream:
            return self._upstream(sample, wanted, made)
        if wanted is None or made is None:
            return self._without_call(wanted, made)
        signature = find(tools or (), made.name, "documented")
        fine = signature is not None and self._accepts(signature, made)
        if fine and made.name == wanted.name:
            return self._graded(RIGHT, wanted, made, ())
        reasons = self._reasons(wanted, made, signature, fine)
        return self._graded((made.name == wanted.name, fine, False), wanted, made, reasons)

    def _open(self, wanted: ExpectedCall) -> bool:
        """Return whether more than one call is right, in what this profile compares."""
        return bool(wanted.names or wanted.optional) or (self.profile == "upstream" and not wanted.plain)

    def _accepts(self, signature: Signature, made: ToolCall) -> bool:
        arguments = made.arguments or {}
        if not signature.accepts(arguments):
            return False
        if not self._strict.any:
            return True
        return next(schema_reasons(signature, arguments, made.name, self._strict), None) is None

    def _without_call(self, wanted: ExpectedCall | None, made: ToolCall | None) -> Grade:
        if wanted is None and made is None:
            return self._graded(RIGHT, None, None, ())
        if made is None:
            reason = Reason(code="missing_call", subject=wanted.name if wanted else "", message="a call was expected")
        else:
            reason = Reason(code="unexpected_call", subject=made.name, actual=made.name, message="no call was expected")
        return self._graded(WRONG, wanted, made, (reason,))

    def _upstream(self, sample: Sample, wanted: ExpectedCall | None, made: ToolCall | None) -> Grade:
        tools = sample.tools or ()
        problem = conversion_problem(tools)
        if problem is not None:
            return self._error(sample, Fault(category="data", code=PROCESSING_ERROR, message=problem))
        if wanted is None:
            reason = Reason(code="never_rewarded", message="the original skips samples that expect no call")
            return self._graded(WRONG, None, made, (reason,))
        if wanted.arguments is None:
            message = f"the expected arguments are not a JSON object: {(wanted.raw_arguments or '')[:80]}"
            return self._error(sample, Fault(category="data", code=PROCESSING_ERROR, message=message))
        selected = made is not None and made.name == wanted.name
        arguments = (made.arguments if made else None) or {}
        asked = wanted.arguments
        signature = find(tools, made.name, "upstream") if made is not None and made.name else None
        if not asked and not arguments:
            fine = True
        elif signature is not None and made is not None:
            fine = self._accepts(signature, made)
        else:
            try:
                fine = values_equal(asked, arguments)
            except (OverflowError, RecursionError) as error:
                return self._error(sample, Fault(category="data", code=PROCESSING_ERROR, message=str(error)))
        if selected and fine:
            return self._graded(RIGHT, wanted, made, ())
        reasons = self._reasons(wanted, made, signature, fine)
        return self._graded((selected, fine, False), wanted, made, reasons)

    def _reasons(
        self, wanted: ExpectedCall, made: ToolCall | None, signature: Signature | None, fine: bool
    ) -> tuple[Reason, ...]:
        reasons = []
        if made is None:
            reasons.append(Reason(code="missing_call", subject=wanted.name, message="a call was expected"))
        elif made.name != wanted.name:
            reasons.append(Reason(code="wrong_tool", subject=wanted.name, expected=wanted.name, actual=made.name))
        if fine or made is None:
            return tuple(reasons)
        arguments = made.arguments or {}
        if signature is not None:
            found = schema_reasons(signature, arguments, made.name, self._strict)
        elif self.profile == "documented":
            message = "the called tool is not in the snapshot"
            found = iter((Reason(code="unknown_tool", subject=made.name, actual=made.name, message=message),))
        else:
            found = value_reasons(wanted.arguments or {}, arguments, made.name)
        return (*reasons, *islice(found, MOST_REASONS))

    def _graded(
        self, verdict: Verdict, wanted: ExpectedCall | None, made: ToolCall | None, reasons: tuple[Reason, ...]
    ) -> Grade:
        label, gold = made.name if made is not None else None, wanted.name if wanted is not None else None
        score, parts, counts = self._table[verdict]
        if not abs(score) <= LARGEST_SCORE:
            message = f"the weights give the score {score!r}"
            fault = Fault(category="grading", code=NO_SCORE, message=message)
            return Grade(
                outcome=Outcome.FAILED, parts=parts, counts=counts, label=label, gold=gold, fault=fault, reasons=reasons
            )
        return Grade(
            score=score, passed=verdict[2], parts=parts, counts=counts, label=label, gold=gold, reasons=reasons
        )

    def _error(self, sample: Sample, fault: Fault) -> Grade:
        """Return the grade of a sample that could not be processed: all parts wrong, and counted."""
        score, parts, counts = _figures(WRONG, self.resolved_weights, processed=False)
        expected = sample.expected.calls
        finite = abs(score) <= LARGEST_SCORE
        return Grade(
            outcome=Outcome.GRADED if finite else Outcome.FAILED,
            score=score if finite else None,
            passed=False if finite else None,
            parts=parts,
            counts=counts,
            gold=expected[0].name if expected else None,
            fault=fault,
            reasons=(Reason(code="processing_error", message=fault.message),),
            rationale=fault.message,
        )


def _figures(
    verdict: Verdict, weights: Weights, *, processed: bool
) -> tuple[float, dict[str, float | None], dict[str, int]]:
    selection, parameters, execution = verdict
    values = (float(selection), float(parameters), float(execution), 0.0)
    counts = {
        "tool_selection": int(selection),
        "parameter_accuracy": int(parameters),
        "execution_success": int(execution),
        "processed": int(processed),
        "errors": int(not processed),
    }
    parts: dict[str, float | None] = {
        "tool_selection": values[0],
        "parameter_accuracy": values[1],
        "execution_success": values[2],
        "response_quality": 0.0,
    }
    return weighted(values, weights), parts, counts


def _undecoded(made: ToolCall) -> Fault:
    text = (made.raw_arguments or "")[:80]
    message = f"the arguments of the call to {made.name!r} are not a JSON object: {text}"
    return Fault(category="data", code=PROCESSING_ERROR, message=message)
