"""Grader ``tau2_reward``: the reward tau2-bench recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import (
    LARGEST_SCORE,
    Fault,
    Grade,
    Grader,
    Reason,
    Sample,
    Status,
    failed,
    native_of,
    replace,
    skipped,
)
from gradestack.jsonio import as_number, compact
from gradestack_plugins.tau2_bench.forms import Check, Checks, RewardInfo
from gradestack_plugins.tau2_bench.records import INFRASTRUCTURE, Tau2Run, is_met

_TOOL_TYPES = ("read", "write")
_PLANNED = "planned_trials"
"""Count that pass^k and pass@k read as the number of trials a task should have."""


@attrs.frozen(kw_only=True)
class Tau2Reward(Grader):
    """The recorded reward as the score, its parts, and the benchmark's checks.

    ``score = reward``; ``passed = 1 - tolerance <= reward <= 1 + tolerance``, the benchmark's own
    test. ``parts`` are the recorded ``reward_breakdown``; ``counts`` say how many action checks
    there were and matched, in all and of tools that read and that write. They are there whether or
    not ``reward_basis`` makes them count for the reward. ``planned_trials`` is the recording's
    ``info.num_trials``.

    A simulation that ended for one of the reasons ``left_out`` is skipped, as the original leaves
    it out of every figure. One without a reward is a failed grade: a failure for pass^k, and in no
    average of the graded.

    Attributes:
        tolerance: How far from 1 a successful reward may be.
        left_out: Termination reasons of simulations that count nowhere.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"recorded"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    metrics: ClassVar[tuple[str, ...]] = ("mean", "pass_hat_k")
    verdict_labels: ClassVar[tuple[str, str]] = ("solved", "not solved")
    native: ClassVar[type[Tau2Run]] = Tau2Run

    tolerance: float = 1e-6
    left_out: tuple[str, ...] = (INFRASTRUCTURE,)

    def __attrs_post_init__(self) -> None:
        if not math.isfinite(self.tolerance) or self.tolerance < 0:
            raise ValueError(
                f"tolerance must be a finite number of at least 0, got {self.tolerance}"
            )

    @override
    def grade(self, sample: Sample) -> Grade:
        run = native_of(sample, Tau2Run)
        grade = self._judge(sample, run)
        if run is None or run.num_trials is None:
            return grade
        counts = {**grade.counts, _PLANNED: run.num_trials}
        return replace(grade, counts=counts)

    def _judge(self, sample: Sample, run: Tau2Run | None) -> Grade:
        """Convert the recorded reward into a grade, with the checks that failed as reasons."""
        termination = None if run is None else run.termination
        if run is not None and termination in self.left_out:
            message = f"the simulation ended by {termination} and counts nowhere"
            return skipped("left_out", message)
        if "reward" not in sample.recorded:
            return _without_reward(sample, run)
        reward = as_number(sample.recorded["reward"])
        if reward is None or abs(reward) > LARGEST_SCORE:
            shown = compact(sample.recorded["reward"])[:80]
            return _unusable("unusable_reward", f"the reward is no usable number: {shown}")
        passed = 1.0 - self.tolerance <= reward <= 1.0 + self.tolerance
        about = RewardInfo() if run is None else run.reward_info
        reasons = () if passed else tuple(_reasons(about, termination))
        breakdown = about.reward_breakdown or {}
        counts = _counts(about)
        parts = {name: as_number(value) for name, value in breakdown.items()}
        rationale = "; ".join(reason.message for reason in reasons)
        return Grade(
            score=reward,
            passed=passed,
            counts=counts,
            parts=parts,
            reasons=reasons,
            rationale=rationale,
        )


def _without_reward(sample: Sample, run: Tau2Run | None) -> Grade:
    if run is not None:
        return _unusable("no_reward", "the simulation was not evaluated: no reward")
    if sample.error:
        return failed(sample.error)
    return skipped("no_reward", "the sample has no recorded reward")


def _unusable(code: str, message: str) -> Grade:
    return failed(Fault(category="data", code=code, message=message))


def _counts(about: RewardInfo) -> dict[str, int]:
    checks = about.action_checks or []
    counts = _matched("actions", checks)
    for tool_type in _TOOL_TYPES:
        of_type = [check for check in checks if check.tool_type == tool_type]
        counts |= _matched(f"{tool_type}_actions", of_type)
    return counts


def _matched(name: str, checks: list[Check]) -> dict[str, int]:
    if checks:
        total_mets = sum(map(is_met, checks))
        return {name: len(checks), f"{name}_matched": total_mets}
    return {}


def _reasons(about: RewardInfo, termination: str | None) -> Iterator[Reason]:
    """Yield the reasons why a simulation has not the full reward, by kind of check."""
    if termination not in {None, "user_stop", "agent_stop"}:
        message = f"the simulation ended by {termination}, which is never a success"
        yield Reason(code="not_judged", message=message)
    if about.db_check is not None and about.db_check.db_match is False:
        message = "the database differs from what the expected actions leave"
        yield Reason(code="database_mismatch", message=message)
    for position, check in enumerate(about.action_checks or ()):
        if check.action_match is False:
            yield _missing_action(position, check)
    yield from _unmet("env_assertions", "environment", about.env_assertions)
    yield from _unmet("communicate_checks", "communicated", about.communicate_checks)
    yield from _unmet("nl_assertions", "statement", about.nl_assertions)


def _missing_action(position: int, check: Check) -> Reason:
    """Return the reason that no call matches an expected action."""
    name = ""
    if check.action is not None:
        name = check.action.name
    expected = check.action and check.action.arguments
    message = f"no call matches action {position}, {name}"
    pointer = f"/{position}"
    return Reason(
        code="action_missing",
        pointer=pointer,
        subject=name,
        expected=expected,
        message=message,
    )


def _unmet(name: str, noun: str, checks: Checks) -> Iterator[Reason]:
    for check in checks or ():
        if check.met is False:
            wanted = check.env_assertion or check.info or check.nl_assertion
            message = f"{noun} not met: {compact(wanted)[:120]}"
            yield Reason(code=f"{name}_unmet", expected=wanted, message=message)
