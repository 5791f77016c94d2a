"""Grader ``tau2_reward``: the reward tau2-bench recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

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
from gradestack.jsonio import as_list, as_map, as_number, compact
from gradestack_plugins.tau2_bench.records import Tau2Run, checks

_TOOL_TYPES = ("read", "write")
_PLANNED = "planned_trials"
"""Count that pass^k and pass@k read as the number of trials a task should have."""


@attrs.frozen(kw_only=True)
class Tau2Reward(Grader):
    """The recorded reward as the score, its parts, and what the benchmark's checks found.

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

    needs: ClassVar[frozenset[str]] = frozenset({"recorded", "native"})
    requires: ClassVar[frozenset[str]] = frozenset({"recorded"})
    graded_statuses: ClassVar[frozenset[Status]] = frozenset({Status.OK, Status.FAILED})
    metrics: ClassVar[tuple[str, ...]] = ("mean", "pass_hat_k")
    verdict_labels: ClassVar[tuple[str, str]] = ("solved", "not solved")
    native: ClassVar[type[Tau2Run]] = Tau2Run

    tolerance: float = 1e-6
    left_out: tuple[str, ...] = ("infrastructure_error",)

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
        return replace(grade, counts={**grade.counts, _PLANNED: run.num_trials})

    def _judge(self, sample: Sample, run: Tau2Run | None) -> Grade:
        if run is not None and run.termination in self.left_out:
            return skipped(
                "left_out", f"the simulation ended by {run.termination} and counts nowhere"
            )
        if "reward" not in sample.recorded:
            if run is not None:
                return _unusable("no_reward", "the simulation was not evaluated: no reward")
            return (
                failed(sample.error)
                if sample.error
                else skipped("no_reward", "the sample has no recorded reward")
            )
        reward = as_number(sample.recorded["reward"])
        if reward is None or abs(reward) > LARGEST_SCORE:
            shown = compact(sample.recorded["reward"])[:80]
            return _unusable("unusable_reward", f"the reward is no usable number: {shown}")
        passed = 1.0 - self.tolerance <= reward <= 1.0 + self.tolerance
        about, ended = (run.reward_info or {}, run.termination) if run is not None else ({}, None)
        reasons = () if passed else tuple(_reasons(about, ended))
        return Grade(
            score=reward,
            passed=passed,
            counts=_counts(about),
            parts={
                str(name): as_number(value)
                for name, value in as_map(about.get("reward_breakdown")).items()
            },
            reasons=reasons,
            rationale="; ".join(reason.message for reason in reasons),
        )


def _unusable(code: str, message: str) -> Grade:
    return failed(Fault(category="data", code=code, message=message))


def _counts(reward_info: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, kind in (("actions", None), *((f"{each}_actions", each) for each in _TOOL_TYPES)):
        met, number = checks(reward_info, "action_checks", kind)
        if number:
            found |= {name: number, f"{name}_matched": met}
    return found


def _reasons(reward_info: Mapping[str, Any], termination: str | None) -> Iterator[Reason]:
    if termination not in {None, "user_stop", "agent_stop"}:
        yield Reason(
            code="not_judged",
            message=f"the simulation ended by {termination}, which is never a success",
        )
    if as_map(reward_info.get("db_check")).get("db_match") is False:
        yield Reason(
            code="database_mismatch",
            message="the database differs from what the expected actions leave",
        )
    for place, check in enumerate(as_list(reward_info.get("action_checks"))):
        if as_map(check).get("action_match") is False:
            action = as_map(as_map(check).get("action"))
            name, expected = str(action.get("name", "")), action.get("arguments")
            said = f"no call matches action {place}, {name}"
            yield Reason(
                code="action_missing",
                pointer=f"/{place}",
                subject=name,
                expected=expected,
                message=said,
            )
    for key, about, what in (
        ("env_assertions", "env_assertion", "environment"),
        ("communicate_checks", "info", "communicated"),
        ("nl_assertions", "nl_assertion", "statement"),
    ):
        for check in as_list(reward_info.get(key)):
            if as_map(check).get("met") is False:
                wanted = as_map(check).get(about)
                yield Reason(
                    code=f"{key}_unmet",
                    expected=wanted,
                    message=f"{what} not met: {compact(wanted)[:120]}",
                )
