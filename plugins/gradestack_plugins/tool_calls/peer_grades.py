"""Grades by a published rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradestack import ExpectedCall, Fault, Grade, Outcome, Sample, ToolCall, failed, replace, skipped
from gradestack_plugins.tool_calls.calls import Call, expected_call, made_call
from gradestack_plugins.tool_calls.matching import WIDE, TooManyCalls
from gradestack_plugins.tool_calls.peers.ragas import hashable
from gradestack_plugins.tool_calls.peers.verdict import NotTold, Raised, Verdict
from gradestack_plugins.tool_calls.presets import Preset


def peer_grade(preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int) -> Grade:
    """Return the grade of a sample by a published rule: what its program says.

    Raises:
        TooManyCalls: There are more pairs of calls of one name, those of equal calls not counted, than ``max_pairs``.
        RecursionError: Arguments are nested too deeply to be compared.
    """
    metadata = {"preset": preset.full_name}
    try:
        found = _verdict(preset, sample, made, max_pairs)
    except Raised as error:
        fault = Fault(category="grading", code=error.code, message=str(error))
        return replace(failed(fault), metadata=metadata)
    except NotTold as error:
        return replace(skipped(error.code, str(error)), metadata=metadata)
    return Grade(
        outcome=Outcome.GRADED,
        score=found.score,
        passed=found.passed,
        parts=dict(found.parts),
        counts={"expected": len(sample.expected.calls or ()), "made": len(made)},
        metadata={**metadata, **found.metadata},
    )


def _verdict(preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int) -> Verdict:
    if preset.judge:
        raise NotTold("needs_judge", f"{preset.name} asks a model, and this program asks none")
    expected = sample.expected.calls
    if expected is None or sample.expected.alternatives:
        raise NotTold("not_expressible", "several lists of calls are right; the original program takes one")
    wanted, done = list(map(expected_call, expected)), list(map(made_call, made))
    if not preset.takes_rules and not all(map(_plain, expected)) and wanted:
        told = "an expected call is more than a name and arguments, which the original program cannot be told"
        raise NotTold("not_expressible", told)
    if any(call.names or call.optional for call in expected):
        raise NotTold("not_expressible", "an expected call is optional, or any of several tools")
    if preset.pairs:
        _check(wanted, done, max_pairs)
    if preset.sample_rule is not None:
        return preset.sample_rule(wanted, done, sample)
    if preset.rule is None:
        raise AssertionError  # our own is no peer's
    return preset.rule(wanted, done)


def _plain(call: ExpectedCall) -> bool:
    return not call.rules and not call.names and not call.optional


def _check(expected: Sequence[Call], made: Sequence[Call], max_pairs: int) -> None:
    """Refuse more pairs than are compared in a second or so.

    Raises:
        TooManyCalls: There are more than that.
    """
    if len(expected) * len(made) <= max_pairs:
        return
    wanted, done = (Counter((call.name, hashable(call.arguments)) for call in side) for side in (expected, made))
    left, free = (Counter(name for name, _ in side.elements()) for side in (wanted - done, done - wanted))
    pairs = sum(number * free[name] for name, number in left.items())
    if pairs > max_pairs or len(expected) * len(made) > WIDE * max_pairs:
        told = f"{max(pairs, len(expected) * len(made))} pairs of calls to compare, more than max_pairs: {max_pairs}"
        raise TooManyCalls(told)
