"""Grader ``tau_reward``: the reward the benchmark recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import LARGEST_SCORE, Fault, Grade, Grader, Profile, Reason, Sample, Status, failed, skipped
from gradestack.jsonio import compact
from gradestack_plugins.tau_bench.records import TauRecord, finite_number, reward_of


@attrs.frozen(kw_only=True)
class TauReward(Grader):
    """The recorded reward as the score, and whether it means success.

    ``score = reward``; ``passed = 1 - tolerance <= reward <= 1 + tolerance`` (the benchmark's own test, both bounds
    included). Records of runs that ended in an error have a reward, 0.0, and are graded like any other. A reward that
    is missing, null, not a number or not finite gives a failed grade; a boolean counts as 0 or 1. Samples of other
    readers without a recorded ``reward`` are skipped.

    Both profiles are the same here.

    Attributes:
        tolerance: How far from 1 a successful reward may be.
        profile: ``documented`` or ``upstream``; no effect.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"recorded", "native"})
    requires: ClassVar[frozenset[str]] = frozenset({"recorded"})
    handles: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    aggregators: ClassVar[tuple[str, ...]] = ("mean", "binary", "pass_hat_k", "pass_at_k")
    words: ClassVar[tuple[str, str]] = ("solved", "not solved")

    tolerance: float = 1e-6
    profile: Profile = "documented"

    def __attrs_post_init__(self) -> None:
        """Check the tolerance.

        Raises:
            ValueError: It is negative or not finite.
        """
        check_tolerance(self.tolerance)

    @override
    def grade(self, sample: Sample) -> Grade:
        recorded = sample.recorded
        if "reward" not in recorded:
            if isinstance(sample.native, TauRecord):
                return failed(_unusable("the record has no reward"))
            if sample.error is not None:
                return failed(sample.error)
            return skipped("no_reward", "the sample has no recorded reward")
        reward = reward_of(recorded["reward"])
        if reward is None:
            what = "not a finite number" if finite_number(recorded["reward"]) is None else f"over {LARGEST_SCORE:g}"
            return failed(_unusable(f"the reward is {what}: {compact(recorded['reward'])[:80]}"))
        passed = is_success(reward, self.tolerance)
        reasons = () if passed else tuple(_reasons(sample, recorded))
        rationale = "; ".join(reason.message for reason in reasons)
        return Grade(score=reward, passed=passed, reasons=reasons, rationale=rationale)


def is_success(score: float, tolerance: float) -> bool:
    """Return whether a score is within ``tolerance`` of 1, both bounds included."""
    return 1.0 - tolerance <= score <= 1.0 + tolerance


def check_tolerance(tolerance: float) -> None:
    """Check the option of that name.

    Raises:
        ValueError: It is negative or not finite.
    """
    if not math.isfinite(tolerance) or tolerance < 0:
        raise ValueError(f"tolerance must be a finite number of at least 0, got {tolerance}")


def _unusable(message: str) -> Fault:
    return Fault(category="data", code="unusable_reward", message=message)


def _reasons(sample: Sample, recorded: Mapping[str, object]) -> Iterator[Reason]:
    """Yield what the record says about a missed reward."""
    if sample.status is Status.FAILED:
        detail = sample.error.message if sample.error is not None else ""
        yield Reason(code="run_error", message=detail or "the run ended in an error")
        return
    if recorded.get("judged") is False:
        yield Reason(code="not_judged", message="the conversation reached its step limit before it could be judged")
    if finite_number(recorded.get("r_actions")) == 0.0:
        yield Reason(code="database_mismatch", message="the database differs from what the expected calls leave")
    outputs = recorded.get("outputs")
    if isinstance(outputs, Mapping):
        for text, found in outputs.items():
            if found is False:
                yield Reason(code="missing_output", expected=text, message=f"the user was never told {compact(text)}")
