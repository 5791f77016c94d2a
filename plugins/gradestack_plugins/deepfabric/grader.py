"""Grader ``deepfabric``: verdicts on the first call, or on those of all turns."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, Final, Literal, cast

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    LARGEST_SCORE,
    DataError,
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
    ToolSpec,
    replace,
    skipped,
)
from gradestack.jsonio import pointer_to
from gradestack_plugins.deepfabric.aggregators import NO_SCORE
from gradestack_plugins.deepfabric.options import (
    NEWEST,
    OLD,
    USUAL,
    Parser,
    Reading,
    Rules,
    Version,
    version_of,
)
from gradestack_plugins.deepfabric.replies import Call, Response
from gradestack_plugins.deepfabric.samples import ERRORS, PROCESSING_ERROR, RUN_STOPS, Native
from gradestack_plugins.deepfabric.schemas import (
    MOST_REASONS,
    Strictness,
    conversion_problem,
    find,
    schema_reasons,
    value_reasons,
    values_equal,
)
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.chat.unread import calls_unknown, has_unread_calls

DEFAULT_WEIGHTS: Final = {
    "tool_selection": 0.40,
    "parameter_accuracy": 0.35,
    "execution_success": 0.25,
    "response_quality": 0.00,
}
"""The metrics, in the order of the sum."""
METRICS: Final = tuple(DEFAULT_WEIGHTS)
_TOLERANCE: Final = 1e-9
Weights = tuple[float, ...]


def resolve(given: Any, profile: Profile, *, normalize: bool = False) -> Weights:
    """Return the weights in the order of the sum.

    Given weights replace the defaults as a whole: a metric that is not named weighs 0.
    """
    named = as_numbers(DEFAULT_WEIGHTS if given is None else given, profile)
    documented = profile == "documented"
    if documented and (unknown := [name for name in named if name not in METRICS]):
        raise ValueError(
            f"unknown weights {', '.join(map(repr, unknown))}; the metrics are {', '.join(METRICS)}"
        )
    for name, weight in named.items() if documented else ():
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(
                f"the weight of {name} must be a finite number of at least 0, got {weight!r}"
            )
    values = tuple([named.get(name, 0.0) for name in METRICS])
    try:
        total = math.fsum(values)
    except (OverflowError, ValueError):  # beyond the largest float, or infinities of both signs
        total = sum(values)
    if normalize and (not math.isfinite(total) or total == 0):
        raise ValueError(f"weights that sum to {total:g} cannot be normalized")
    if documented and not normalize and abs(total - 1) > _TOLERANCE:
        hint = "set normalize: true to divide them by their sum"
        raise ValueError(f"weights must sum to 1, they sum to {total:.12g}; {hint}")
    return tuple([value / total for value in values]) if normalize else values


def as_numbers(given: Any, profile: Profile) -> dict[str, float]:
    """Return given weights as the numbers they are read as, in their order, those of unknown names
    included.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"weights must be a mapping of metrics to numbers, got {given!r}")
    if (other := next((name for name in given if not isinstance(name, str)), None)) is not None:
        raise ValueError(f"weights are named by text, got {other!r}")
    return {name: _number(name, weight, profile) for name, weight in given.items()}


def _number(name: str, weight: Any, profile: Profile) -> float:
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    coerced = isinstance(weight, bool) or (isinstance(weight, str) and weight.isascii())
    if number or (profile == "upstream" and coerced):
        with contextlib.suppress(ValueError, OverflowError):
            return float(weight)
    raise ValueError(f"the weight of {name} must be a number, got {weight!r}")


def weighted(values: Sequence[float], weights: Weights) -> float:
    """Return value x weight summed from left to right, with one rounding per step as the original
    does.
    """
    total = 0.0
    for value, weight in zip(values, weights, strict=True):
        total += value * weight
    return total


Verdict = tuple[bool, bool, bool]  # (tool selection, parameters, execution) right or wrong
WRONG: Final = (False, False, False)
RIGHT: Final = (True, True, True)
_TIPS: Final = {
    "data": "the record breaks a rule of the format: mend it",
    "target": "see whether the model answered at all, and in the output format its calls are read "
    "from",
}
"""What may help against a processing error, by the category of its fault."""
_NOT_PLAIN: Final = (
    "the reference is more than a list of names and arguments, which this metric does not support"
)


@lru_cache(maxsize=64)
def _figures(
    verdict: Verdict, weights: Weights, quality: float = 0.0, *, processed: bool = True
) -> tuple[float, dict[str, float | None], dict[str, int]]:
    """Return score, parts and counts of a verdict under these weights."""
    values = (*map(float, verdict), quality)
    counts = dict(zip(METRICS[:3], map(int, verdict), strict=True))
    counts |= {"processed": int(processed), "errors": int(not processed)}
    return weighted(values, weights), dict(zip(METRICS, values, strict=True)), counts


def _unprocessed(
    message: str, category: Literal["data", "target"] = "data", code: str = PROCESSING_ERROR
) -> Fault:
    return Fault(category=category, code=code, message=message)


def _recorded_turns(sample: Sample, most: int) -> list[Response]:
    """Return the recorded assistant messages that are looked at.

    ``most`` of them, up to the first without calls.

    Where the conversation does not say which calls were made when, all are one reply.
    """
    spoken = [
        (chat.text_of(each.content), each.tool_calls)
        for turn in sample.turns
        for each in turn
        if each.role == "assistant"
    ]
    if not any(calls for _, calls in spoken):
        spoken, most = [(sample.text or "", sample.calls or ())], 1
    turns = []
    for content, calls in spoken[:most]:
        made = tuple(map(Call.of, calls))
        turns.append(Response(content, made[0] if made else None, made))
        if not made:
            break
    return turns


@attrs.frozen(kw_only=True, slots=False)  # with slots, cached properties make every attribute slow
class DeepFabric(Grader):
    """Grades the first call of a sample against the first expected call, or the calls of all its
    turns.

    Per sample, each of three parts is 0.0 or 1.0:

    - ``tool_selection``: the called tool is the expected one (exact text)
    - ``parameter_accuracy``: every required argument is there and every known argument is of its
      declared type, by the schema of the tool that was *called*; values are not compared, arguments
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

    Differences of the profiles:

    ====================================  =========================================  ==================================
    situation                             documented                                 upstream
    ====================================  =========================================  ==================================
    no call expected, none made           all right                                  all wrong (``multi_turn``: right)
    no call expected, one made            all wrong                                  all wrong
    call expected, none made              all wrong                                  all wrong; by 4.3 parameters right
                                                                                     when none were expected
    called tool not in the snapshot       parameters wrong                           arguments compared by value
    no snapshot of the tools              skipped                                    arguments compared by value
    no arguments expected, none made      checked against the schema                 parameters right
    required name without a property      required                                   not required
    type missing or unknown               not checked                                text
    list of types                         any of them; null if listed                processing error
    several turns: parameters             by schema                                  argument names of the expected call
    several turns: execution              selection and parameters                   a call was made, or anything said
    weights                               known, finite, >= 0, sum 1                 taken as they are
    ====================================  =========================================  ==================================

    Samples of other formats are graded by their ``calls``, ``turns``, ``expected.calls`` and
    ``tools``; without a reference or without recorded calls they are skipped.
    """

    profile: Profile = "documented"
    weights: dict[str, Any] | None = None
    """Weight by metric, replacing the defaults as a whole; a metric that is not named weighs 0.

    Numbers; ``upstream`` takes NaN, infinities, booleans and texts of numbers too.
    """
    metric_weights: dict[str, Any] | None = None
    """The original's name for ``weights``."""
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
    upstream_version: str | float = attrs.field(default=NEWEST, converter=version_of)
    """The version of the program that ``upstream`` follows: ``4.13`` (4.10 to 4.13) or ``4.3``."""
    multi_turn: bool = False
    """Grade all recorded turns by the tools that were called, instead of the first call alone."""
    max_turns: int = attrs.field(default=10, validator=attrs.validators.ge(1))
    """How many turns ``multi_turn`` looks at."""
    tool_call_parser: Parser = "generic"
    """How ``upstream`` finds calls in replies that are text (4.3 has one way of its own)."""
    on_stop: Literal["error", "stop"] = "error"
    """A record on which the program would end without a result.

    A processing error, or the end of the run.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"calls", "expected", "native", "text", "tools", "turns"}
    )
    requires: ClassVar[frozenset[str]] = frozenset({"calls", "expected"})
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    metrics: ClassVar[tuple[str, ...]] = ("deepfabric", "mean")
    verdict_labels: ClassVar[tuple[str, str]] = ("successful", "not successful")

    def __attrs_post_init__(self) -> None:
        if self.weights is not None and self.metric_weights is not None:
            raise ValueError(
                "weights and metric_weights are two names of one option: give one of them"
            )
        if self.multi_turn and self.profile == "upstream" and self.upstream_version == OLD:
            raise ValueError(
                "multi_turn came with version 4.4: upstream_version 4.3 does not have it"
            )
        self.resolved_weights  # noqa: B018  refuse bad weights before any data is read

    @cached_property
    def reading(self) -> Reading:
        """How the program reads a record and its reply under these options."""
        most = self.max_turns if self.multi_turn else 0
        found = Reading(
            cast("Version", self.upstream_version), self.multi_turn, most, self.tool_call_parser
        )
        return USUAL if found == USUAL else found

    @cached_property
    def _described(self) -> dict[str, JSON]:
        return msgspec.to_builtins(self.reading) if self.profile == "upstream" else {}

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

    @override
    def grade(self, sample: Sample) -> Grade:  # noqa: C901
        if (
            self.profile == "upstream"
            and isinstance(sample.native, Native)
            and sample.native.case is not None
        ):
            seen = sample.native.as_read(self.reading)
            truth = seen.truth.calls if seen.truth is not None else ()
            if seen.fault is not None:
                return self._error(sample, seen.fault, truth)
            call = seen.calls[0] if seen.calls else Call()
            made, named = call.made() if seen.calls else None, call.name is not None
            return self._judged(sample, truth, made, seen.tools or (), seen.responses, named=named)
        reference, tools, calls = sample.expected, sample.tools, sample.calls
        expected, error = reference.calls, sample.error
        if error is not None and error.code in ERRORS:
            return self._error(sample, error, expected)
        if expected is None:
            return skipped("no_reference", "no expected call")
        if tools is None and self.profile == "documented":
            return skipped("no_tools", "no tool definitions recorded")
        if sample.status is not Status.OK:
            return self._error(
                sample, error or Fault(category="target", code="failed_run"), expected
            )
        if has_unread_calls(sample):
            return calls_unknown(sample)
        if calls is None:
            return skipped("calls_not_recorded", "no calls recorded")
        if reference.alternatives or reference.forbidden or self._open(expected):
            return skipped("reference_not_plain", _NOT_PLAIN)
        made = calls[0] if calls else None
        if (
            self.multi_turn
            or self.profile == "upstream"
            or (made is not None and made.arguments is None)
        ):
            fault = self._fault(expected, calls, tools or ())
            if fault is not None:
                return self._error(sample, fault, expected)
        turns = _recorded_turns(sample, self.max_turns) if self.multi_turn else ()
        return self._judged(sample, expected, made, tools or (), turns, named=bool(calls))

    def _open(self, expected: tuple[ExpectedCall, ...]) -> bool:
        """Return whether more than one call is right, in what this profile compares."""
        for each in expected if self.multi_turn else expected[:1]:
            if each.names or each.optional or (self.profile == "upstream" and not each.plain):
                return True
        return False

    def _fault(
        self,
        expected: tuple[ExpectedCall, ...],
        calls: tuple[ToolCall, ...],
        tools: tuple[ToolSpec, ...],
    ) -> Fault | None:
        """Return the processing error of a sample of another format, or of one read by the
        document.
        """
        upstream, version = self.profile == "upstream", self.reading.version
        for call in () if upstream and self.multi_turn else calls if self.multi_turn else calls[:1]:
            if call.arguments is None:
                text = (call.raw_arguments or "")[:80]
                what = f"the arguments of the call to {call.name!r} are not a JSON object: {text}"
                return _unprocessed(what, "target")
        if upstream and (problem := conversion_problem(tools, version)) is not None:
            stops = problem.stops and version == NEWEST
            return _unprocessed(str(problem), code=RUN_STOPS if stops else PROCESSING_ERROR)
        for each in () if not upstream else expected if version == NEWEST else expected[:1]:
            if each.arguments is None:
                text = (each.raw_arguments or "")[:80]
                return _unprocessed(f"the expected arguments are not a JSON object: {text}")
        return None

    def _judged(
        self,
        sample: Sample,
        expected: Sequence[ExpectedCall | ToolCall],
        made: ToolCall | None,
        tools: tuple[ToolSpec, ...],
        turns: Sequence[Response],
        *,
        named: bool,
    ) -> Grade:
        if self.multi_turn:
            return self._over_turns(expected, made, tools, turns)
        wanted, upstream = expected[0] if expected else None, self.profile == "upstream"
        if wanted is None:
            if made is None and not upstream:
                return self._graded(RIGHT, None, None)
            reason = Reason(
                code="never_rewarded", message="the original skips samples that expect no call"
            )
            if made is not None and not upstream:
                message = "no call was expected"
                reason = Reason(
                    code="unexpected_call", subject=made.name, actual=made.name, message=message
                )
            return self._graded(WRONG, None, made, [reason])
        asked, old = wanted.arguments or {}, upstream and self.reading.version == OLD
        reasons: list[Reason] = []
        if made is None:
            reasons.append(
                Reason(code="missing_call", subject=wanted.name, message="a call was expected")
            )
        elif made.name != wanted.name:
            reasons.append(
                Reason(
                    code="wrong_tool", subject=wanted.name, expected=wanted.name, actual=made.name
                )
            )
        selected, before = named and not reasons, len(reasons)
        try:
            if made is not None and (asked or made.arguments or not upstream):
                reasons += self._arguments(made, tools, asked, compared=named or old)
        except (OverflowError, RecursionError) as error:
            return self._error(sample, _unprocessed(str(error)), expected)
        fine = len(reasons) == before and (named or (old and (made is not None or not asked)))
        return self._graded((selected, fine, selected and fine), wanted, made, reasons)

    def _arguments(
        self,
        made: ToolCall,
        tools: tuple[ToolSpec, ...],
        asked: Mapping[str, JSON],
        *,
        compared: bool = False,
    ) -> Iterable[Reason]:
        """Return what is wrong with the arguments of a call: by its schema.

        Without one upstream compares values.
        """
        upstream, arguments = self.profile == "upstream", made.arguments or {}
        rules: Rules = self.reading.version if upstream else "documented"
        signature = find(tools, made.name, rules) if made.name or not upstream else None
        if signature is not None:
            return schema_reasons(signature, arguments, made.name, self._strict)
        if upstream:
            same = compared and values_equal(asked, arguments)
            return () if same else islice(value_reasons(asked, arguments, made.name), MOST_REASONS)
        message = "the called tool is not in the snapshot"
        return [Reason(code="unknown_tool", subject=made.name, actual=made.name, message=message)]

    def _over_turns(
        self,
        expected: Sequence[ExpectedCall | ToolCall],
        made: ToolCall | None,
        tools: tuple[ToolSpec, ...],
        turns: Sequence[Response],
    ) -> Grade:
        """Return the grade of several turns.

        The first call expected and the first made stand for all.

        - selection: every expected tool was called, in whatever order; ``upstream``: and whatever
          else was
        - parameters: the arguments of every call fit the schema of the called tool, and calls were
          made just where some are due; ``upstream``: every call of an expected tool has all argument names of
          the first execution of that tool
        - execution: both; ``upstream``: a call was made, or the last reply that was looked at says
          something
        """
        calls = [call for each in turns for call in each.calls]
        first = {each.name: each.arguments or {} for each in reversed(expected)}
        names, called = dict.fromkeys(each.name for each in expected), [call.name for call in calls]
        missing = [name for name in names if name not in called]
        reasons = [
            Reason(code="missing_call", subject=name, message="a call was expected")
            for name in missing
        ]
        share = (len(names) - len(missing)) / len(names) if names else float(not calls)
        if calls and not names:
            reasons = [Reason(code="unexpected_call", message="no call was expected")]
        upstream, before = self.profile == "upstream", len(reasons)
        for call in calls:
            if upstream:
                has = call.arguments if isinstance(call.arguments, dict) else {}
                lacking = [name for name in first.get(str(call.name), ()) if name not in has]
                about = Reason(code="missing_argument", subject=str(call.name))
                reasons += [replace(about, pointer=pointer_to(name)) for name in lacking]
            else:
                reasons += self._arguments(call.made(), tools, {})
        fine = len(reasons) == before and (upstream or bool(calls) == bool(names))
        execution = (
            bool(calls or (turns and turns[-1].content)) if upstream else share == 1.0 and fine
        )
        verdict = (share == 1.0, fine, execution)
        return self._graded(
            verdict, expected[0] if expected else None, made, reasons[:MOST_REASONS], share
        )

    def _graded(
        self,
        verdict: Verdict,
        wanted: ExpectedCall | ToolCall | None,
        made: ToolCall | None,
        reasons: Sequence[Reason] = (),
        quality: float = 0.0,
    ) -> Grade:
        score, parts, counts = _figures(verdict, self.resolved_weights, quality)
        grade = Grade(
            score=score,
            passed=verdict == RIGHT,
            counts=counts,
            parts=parts,
            label=None if made is None else made.name,
            gold=None if wanted is None else wanted.name,
            reasons=tuple(reasons),
            metadata=self._described,
        )
        if abs(score) <= LARGEST_SCORE:
            return grade
        fault = Fault(
            category="grading", code=NO_SCORE, message=f"the weights give the score {score!r}"
        )
        return replace(grade, outcome=Outcome.FAILED, score=None, passed=None, fault=fault)

    def _error(
        self, sample: Sample, fault: Fault, expected: Sequence[ExpectedCall | ToolCall] | None
    ) -> Grade:
        if fault.code == RUN_STOPS and self.on_stop == "stop":
            raise DataError(
                f"{sample.source or sample.id}: DeepFabric 4.13 ends on this record: "
                f"{fault.message}",
                "on_stop: error counts it as a processing error and goes on",
            )
        _, parts, counts = _figures(WRONG, self.resolved_weights, processed=False)
        return Grade(
            outcome=Outcome.FAILED,
            parts=parts,
            counts=counts,
            gold=expected[0].name if expected else None,
            fault=fault,
            reasons=(Reason(code="processing_error", message=fault.message),),
            rationale=f"{fault.message} ({_TIPS[fault.category]})"
            if fault.category in _TIPS
            else fault.message,
            metadata=self._described,
        )
