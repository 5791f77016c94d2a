"""Aggregators ``binary`` and ``partial_statistics``."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack import Aggregator, Grade, Key, Memory, Outcome
from gradestack.exact import Partials, add_exact, add_times, count_into, exact_mean, merge_exact
from gradestack_plugins.tau_bench.bands import BANDS, band_index, described
from gradestack_plugins.tau_bench.records import finite_number, reward_of

SUCCESS_ABOVE = 0.9
"""A reward above this is a success in the statistics block (the benchmark itself uses a tolerance around 1)."""
FAIL_BELOW = 0.1
HIGH_PARTIAL = 0.7
LOW_PARTIAL = 0.8
LISTED = 3
BIN_EDGES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Lower bounds are included. Scores below 0 (of other graders) go into the first bin, scores above 1 into the last."""


_NO_GRADE = "no sample was graded"
_UNDEFINED = {
    "average": _NO_GRADE,
    "success_rate": _NO_GRADE,
    "min": _NO_GRADE,
    "max": _NO_GRADE,
    "average_over_total": _NO_GRADE,
    "success_rate_over_total": _NO_GRADE,
    "tool_selection_accuracy": "no call is expected in any graded sample",
    "argument_precision": "no expected tool was called",
}
_NO_REWARD = "no graded sample has a recorded reward"


def explained(figures: dict[str, Any], why: Mapping[str, str]) -> dict[str, Any]:
    """Return figures with a ``NAME_reason`` beside every undefined one."""
    return figures | {f"{name}_reason": why[name] for name in why if name in figures and figures[name] is None}


class BinaryState(TypedDict):
    """State of :class:`Binary`."""

    counts: dict[str, int]
    successes: int
    sum: Partials


def rate(numerator: int, denominator: int) -> float | None:
    """Return a fraction, None when nothing was counted."""
    return numerator / denominator if denominator else None


_GRADED = Outcome.GRADED  # looked up once: members are properties of the class


def _count(counts: dict[str, int], outcome: Outcome, times: int = 1) -> None:
    name = "graded" if outcome is _GRADED else outcome.value
    counts[name] = counts.get(name, 0) + times


def base_counts(counts: Mapping[str, int]) -> tuple[int, int, int]:
    """Return (graded, applicable, total): samples with a score, those and failed and missing ones, all samples.

    Applicable is 0 without a graded one: what nothing is known of has no average.
    """
    graded, total = counts.get(_GRADED.value, 0), sum(counts.values())
    return graded, total - counts.get(Outcome.SKIPPED.value, 0) if graded else 0, total


@attrs.frozen(kw_only=True)
class Binary(Aggregator[BinaryState]):
    """Success rate and average of a grader's scores.

    A score is a success when it is **above** ``threshold``. ``success_rate`` and ``average`` divide by the graded
    samples; the ``…_over_total`` figures also by failed and missing ones, which then weigh like zeros. Skipped samples
    are outside both.

    Attributes:
        threshold: Scores above it are successes.
    """

    version: ClassVar[str] = "2"
    memory: ClassVar[Memory] = "constant"

    threshold: float = SUCCESS_ABOVE

    def __attrs_post_init__(self) -> None:
        """Check the threshold.

        Raises:
            ValueError: It is not finite.
        """
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be a finite number, got {self.threshold}")

    @override
    def start(self) -> BinaryState:
        return {"counts": {}, "successes": 0, "sum": []}

    @override
    def add(self, state: BinaryState, key: Key, grade: Grade) -> BinaryState:
        _count(state["counts"], grade.outcome)
        if grade.outcome is _GRADED and grade.score is not None:
            state["successes"] += grade.score > self.threshold
            add_exact(state["sum"], grade.score)
        return state

    @override
    def merge(self, left: BinaryState, right: BinaryState) -> BinaryState:
        count_into(left["counts"], right["counts"])
        left["successes"] += right["successes"]
        merge_exact(left["sum"], right["sum"])
        return left

    @override
    def finish(self, state: BinaryState) -> dict[str, Any]:
        graded, applicable, total = base_counts(state["counts"])
        figures = {
            "threshold": self.threshold,
            "successes": state["successes"],
            "n": graded,
            "total": total,
            "success_rate": rate(state["successes"], graded),
            "success_rate_over_total": rate(state["successes"], applicable),
            "average": exact_mean(state["sum"], graded),
            "average_over_total": exact_mean(state["sum"], applicable),
        }
        return explained(figures, _UNDEFINED)


class CaseList(TypedDict):
    """How many interesting cases there are, and the first of them as [id, run, partial score]."""

    total: int
    first: list[list[Any]]


class PartialState(TypedDict):
    """State of :class:`PartialStatistics`."""

    counts: dict[str, int]
    sum: Partials
    min: float | None
    max: float | None
    bins: list[int]
    bands: list[int]
    rewards: int
    successes: int
    reward_sum: Partials
    fail_high: CaseList
    success_low: CaseList
    calls: dict[str, int]
    similarities: int
    similarity_sum: Partials


@attrs.frozen(kw_only=True)
class PartialStatistics(Aggregator[PartialState]):
    """The figures of the partial scoring report, over the graded samples.

    - ``average``, ``min``, ``max``, a histogram of six bins (lower bounds included, 1.0 its own bin).
    - ``binary``: recorded rewards (``parts["reward"]``) of the same samples; a reward above 0.9 is a success.
    - ``binary_fail_high_partial``: reward below 0.1 and score above 0.7; ``binary_success_low_partial``: reward above
      0.9 and score below 0.8. Total, and the first three in input order.
    - ``tool_selection_accuracy``: share of the expected calls whose tool was called (sum of the counts ``called`` and
      ``expected_calls``); ``argument_precision``: mean argument similarity of those that were.
    - ``interpretation.bands``: the score bands with the number of samples in each; words only.

    Works on any grader's scores; figures whose ingredients a grader does not give are null.
    """

    version: ClassVar[str] = "2"
    memory: ClassVar[Memory] = "constant"

    @override
    def start(self) -> PartialState:
        return {
            "counts": {},
            "sum": [],
            "min": None,
            "max": None,
            "bins": [0] * (len(BIN_EDGES) + 1),
            "bands": [0] * len(BANDS),
            "rewards": 0,
            "successes": 0,
            "reward_sum": [],
            "fail_high": {"total": 0, "first": []},
            "success_low": {"total": 0, "first": []},
            "calls": {"expected_calls": 0, "called": 0, "made_calls": 0},
            "similarities": 0,
            "similarity_sum": [],
        }

    @override
    def add(self, state: PartialState, key: Key, grade: Grade) -> PartialState:
        return PartialStatistics.add_many(self, state, (key,), (grade,))

    @override
    def add_many(self, state: PartialState, keys: Sequence[Key], grades: Sequence[Grade]) -> PartialState:
        scored = [grade for grade in grades if grade.outcome is _GRADED and grade.score is not None]
        if len(scored) == len(grades):
            _count(state["counts"], _GRADED, len(grades))
        else:
            for grade in grades:
                _count(state["counts"], grade.outcome)
        for score, times in Counter([float(grade.score) for grade in scored if grade.score is not None]).items():
            add_times(state["sum"], score, times)
            _widen(state, score, score)
            state["bins"][bisect_right(BIN_EDGES, score)] += times
            state["bands"][band_index(score)] += times
        calls = state["calls"]
        for name in calls:
            calls[name] += sum([grade.counts.get(name, 0) for grade in scored])
        found = Counter([item.parts.get("argument_similarity") for grade in scored for item in grade.items])
        for value, times in found.items():
            similarity = finite_number(value)
            if similarity is not None:
                state["similarities"] += times
                add_times(state["similarity_sum"], similarity, times)
        for key, grade in zip(keys, grades, strict=True):
            if grade.parts and (reward := reward_of(grade.parts.get("reward"))) is not None:
                self._add_reward(state, key, grade, reward)
        return state

    def _add_reward(self, state: PartialState, key: Key, grade: Grade, reward: float) -> None:
        if grade.outcome is not _GRADED or grade.score is None:
            return
        score = float(grade.score)
        state["rewards"] += 1
        add_exact(state["reward_sum"], reward)
        success = reward > SUCCESS_ABOVE
        state["successes"] += success
        if reward < FAIL_BELOW and score > HIGH_PARTIAL:
            _list_case(state["fail_high"], key, score)
        elif success and score < LOW_PARTIAL:
            _list_case(state["success_low"], key, score)

    @override
    def merge(self, left: PartialState, right: PartialState) -> PartialState:
        count_into(left["counts"], right["counts"])
        if right["min"] is not None and right["max"] is not None:
            _widen(left, right["min"], right["max"])
        left["bins"] = [a + b for a, b in zip(left["bins"], right["bins"], strict=True)]
        left["bands"] = [a + b for a, b in zip(left["bands"], right["bands"], strict=True)]
        count_into(left["calls"], right["calls"])
        left["rewards"] += right["rewards"]
        left["successes"] += right["successes"]
        left["similarities"] += right["similarities"]
        merge_exact(left["sum"], right["sum"])
        merge_exact(left["reward_sum"], right["reward_sum"])
        merge_exact(left["similarity_sum"], right["similarity_sum"])
        left["fail_high"] = _joined(left["fail_high"], right["fail_high"])
        left["success_low"] = _joined(left["success_low"], right["success_low"])
        return left

    @override
    def finish(self, state: PartialState) -> dict[str, Any]:
        graded, applicable, total = base_counts(state["counts"])
        calls = state["calls"]
        binary = {
            "threshold": SUCCESS_ABOVE,
            "n": state["rewards"],
            "successes": state["successes"],
            "success_rate": rate(state["successes"], state["rewards"]),
            "average": exact_mean(state["reward_sum"], state["rewards"]),
        }
        figures = {
            "n": graded,
            "total": total,
            "failed": state["counts"].get(Outcome.FAILED.value, 0),
            "average": exact_mean(state["sum"], graded),
            "average_over_total": exact_mean(state["sum"], applicable),
            "min": state["min"],
            "max": state["max"],
            "histogram": _histogram(state["bins"], graded),
            "binary": explained(binary, {"success_rate": _NO_REWARD, "average": _NO_REWARD}),
            "binary_fail_high_partial": _cases(state["fail_high"]),
            "binary_success_low_partial": _cases(state["success_low"]),
            **calls,
            "tool_selection_accuracy": rate(calls["called"], calls["expected_calls"]),
            "argument_precision": exact_mean(state["similarity_sum"], state["similarities"]),
            "interpretation": {"bands": described(state["bands"])},
        }
        return explained(figures, _UNDEFINED)


def _histogram(bins: list[int], graded: int) -> list[dict[str, Any]]:
    """Return the six bins; the last is the single value 1 (and whatever lies above)."""
    lowers, uppers = (0.0, *BIN_EDGES), (*BIN_EDGES, 1.0)
    return [
        {"lower": lower, "upper": upper, "count": count, "share": rate(count, graded)}
        for lower, upper, count in zip(lowers, uppers, bins, strict=True)
    ]


def _widen(state: PartialState, low: float, high: float) -> None:
    state["min"] = low if state["min"] is None else min(state["min"], low)
    state["max"] = high if state["max"] is None else max(state["max"], high)


def _list_case(cases: CaseList, key: Key, score: float) -> None:
    cases["total"] += 1
    if len(cases["first"]) < LISTED:
        cases["first"].append([key.id, key.run, score])


def _joined(left: CaseList, right: CaseList) -> CaseList:
    return {"total": left["total"] + right["total"], "first": (left["first"] + right["first"])[:LISTED]}


def _cases(cases: CaseList) -> dict[str, Any]:
    first = [{"id": identifier, "run": run, "score": score} for identifier, run, score in cases["first"]]
    return {"total": cases["total"], "first": first}
