"""Aggregator ``partial_statistics``."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypedDict

import attrs
from typing_extensions import override

from gradestack import Aggregator, CellsState, Grade, Key, Memory, Outcome, TaskCells, valid_confidence
from gradestack.exact import count_into, exact_parts
from gradestack_plugins.tau_bench.bands import BANDS, band_index, described
from gradestack_plugins.tau_bench.binary import (
    AVERAGES,
    SUCCESS_ABOVE,
    UNDEFINED,
    base_counts,
    beyond,
    count_outcome,
    explained,
    rate,
    share,
)
from gradestack_plugins.tau_bench.records import finite_number, reward_of

FAIL_BELOW = 0.1
HIGH_PARTIAL = 0.7
LOW_PARTIAL = 0.8
LISTED = 3
BIN_EDGES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Lower bounds are included. Scores below 0 (of other graders) go into the first bin, scores above 1 into the last."""

_NO_REWARD = "no graded sample has a recorded reward"
_CREDITS = TaskCells(
    "applicable",
    "graded",
    "score",
    "rewards",
    "successes",
    "reward",
    "expected",
    "called",
    "similarities",
    "similarity",
)
_CALLS = {
    "tool_selection_accuracy": ("called", "expected"),
    "argument_precision": ("similarity", "similarities"),
}
_NOTHING: list[float] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
"""The cell of a sample that is applicable and nothing else."""
_QUANTILE = {"reason": "quantile"}
_GRADED, _SKIPPED = Outcome.GRADED, Outcome.SKIPPED  # looked up once: members are properties of the class


class CaseList(TypedDict):
    """How many interesting cases there are, and the first of them as [id, run, partial score]."""

    total: int
    first: list[list[Any]]


class PartialState(TypedDict):
    """State of :class:`PartialStatistics`."""

    counts: dict[str, int]
    min: float | None
    max: float | None
    bins: list[int]
    bands: list[int]
    fail_high: CaseList
    success_low: CaseList
    made_calls: int
    outside: int
    """Scores and rewards beyond [0, 1]."""
    cells: CellsState


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

    version: ClassVar[str] = "3"
    memory: ClassVar[Memory] = "per_key"

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""
    share: bool = True
    """Whether scores are bound to [0, 1]; default: as the grader says."""

    @override
    def start(self) -> PartialState:
        return {
            "counts": {},
            "min": None,
            "max": None,
            "bins": [0] * (len(BIN_EDGES) + 1),
            "bands": [0] * len(BANDS),
            "fail_high": {"total": 0, "first": []},
            "success_low": {"total": 0, "first": []},
            "made_calls": 0,
            "outside": 0,
            "cells": _CREDITS.start(),
        }

    @override
    def add(self, state: PartialState, key: Key, grade: Grade) -> PartialState:
        return PartialStatistics.add_many(self, state, (key,), (grade,))

    @override
    def add_many(self, state: PartialState, keys: Sequence[Key], grades: Sequence[Grade]) -> PartialState:
        scored = [grade for grade in grades if grade.outcome is _GRADED and grade.score is not None]
        if len(scored) == len(grades):
            count_outcome(state["counts"], _GRADED, len(grades))
        else:
            for grade in grades:
                count_outcome(state["counts"], grade.outcome)
        for score, times in Counter([float(grade.score) for grade in scored if grade.score is not None]).items():
            _widen(state, score, score)
            state["bins"][bisect_right(BIN_EDGES, score)] += times
            state["bands"][band_index(score)] += times
            state["outside"] += beyond(score) * times
        state["made_calls"] += sum([grade.counts.get("made_calls", 0) for grade in scored])
        if len(told := [each for each in grades if each.outcome is not _SKIPPED]) < len(grades):
            keys = [key for key, grade in zip(keys, grades, strict=True) if grade.outcome is not _SKIPPED]
        for key, grade in [pair for pair in zip(keys, told, strict=True) if pair[1].parts]:
            self._add_reward(state, key, grade)
        _CREDITS.add_many(state["cells"], keys, [_cell_of(each) for each in told])
        return state

    def _add_reward(self, state: PartialState, key: Key, grade: Grade) -> None:
        reward = reward_of(grade.parts.get("reward"))
        if reward is None or grade.outcome is not _GRADED or grade.score is None:
            return
        score, success = float(grade.score), reward > SUCCESS_ABOVE
        state["outside"] += beyond(reward)
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
        left["made_calls"] += right["made_calls"]
        left["outside"] += right["outside"]
        _CREDITS.merge(left["cells"], right["cells"])
        left["fail_high"] = _joined(left["fail_high"], right["fail_high"])
        left["success_low"] = _joined(left["success_low"], right["success_low"])
        return left

    @override
    def finish(self, state: PartialState) -> dict[str, Any]:
        graded, applicable, total = base_counts(state["counts"])
        cells = _CREDITS.together(state["cells"])
        totals = cells.totals()
        rewards = {"success_rate": ("successes", "rewards"), "average": ("reward", "rewards")}
        options: dict[str, Any] = {
            "confidence": self.confidence,
            "unbounded": AVERAGES if state["outside"] or not self.share else (),
        }
        binary = {
            "threshold": SUCCESS_ABOVE,
            "n": int(totals["rewards"]),
            "successes": int(totals["successes"]),
            "success_rate": share(totals["successes"], totals["rewards"]),
            "average": share(totals["reward"], totals["rewards"]),
            **cells.ratios(rewards, **options),
        }
        figures = {
            "n": graded,
            "total": total,
            "failed": state["counts"].get(Outcome.FAILED.value, 0),
            "average": share(totals["score"], graded),
            "average_over_total": share(totals["score"], applicable),
            "min": state["min"],
            "min_interval": _QUANTILE,
            "max": state["max"],
            "max_interval": _QUANTILE,
            "histogram": _histogram(state["bins"], graded),
            "binary": explained(binary, {"success_rate": _NO_REWARD, "average": _NO_REWARD}),
            "binary_fail_high_partial": _cases(state["fail_high"]),
            "binary_success_low_partial": _cases(state["success_low"]),
            "expected_calls": int(totals["expected"]),
            "called": int(totals["called"]),
            "made_calls": state["made_calls"],
            "tool_selection_accuracy": share(totals["called"], totals["expected"]),
            "argument_precision": share(totals["similarity"], totals["similarities"]),
            "interpretation": {"bands": described(state["bands"])},
            **cells.ratios(AVERAGES | _CALLS, **options),
            **cells.model_ratios(AVERAGES | _CALLS, **options),
        }
        return explained(figures, UNDEFINED)


def _cell_of(grade: Grade) -> list[float]:
    """Return what a sample adds to its task; failed and missing ones are applicable and nothing else."""
    if grade.outcome is not _GRADED or grade.score is None:
        return _NOTHING
    counts, reward = grade.counts, grade.parts.get("reward") if grade.parts else None
    similarities = [item.parts.get("argument_similarity") for item in grade.items]
    return _cell(grade.score, reward, counts.get("expected_calls", 0), counts.get("called", 0), *similarities)


@lru_cache(maxsize=4096, typed=True)
def _cell(score: float, recorded: Any, expected: int, called: int, *similarities: Any) -> list[float]:
    """Return the cell of a graded sample; equal ones are one object, as thousands are kept."""
    reward = reward_of(recorded)
    rewards, successes = (0, 0) if reward is None else (1, int(reward > SUCCESS_ABOVE))
    similar = [each for each in map(finite_number, similarities) if each is not None]
    similarity, *rest = exact_parts(similar) if len(similar) > 1 else similar or [0.0]
    graded = [1, 1, float(score), rewards, successes, reward or 0.0, expected, called, len(similar), similarity]
    for part in rest:
        graded += [*[0.0] * 9, part]
    return graded


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
