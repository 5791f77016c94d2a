"""Aggregator ``partial_statistics``."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import Aggregator, Figure, Grade, Grades, Numbers, Outcome, ratio, valid_confidence
from gradestack_plugins.tau_bench.bands import BANDS, band_index, described
from gradestack_plugins.tau_bench.binary import (
    AVERAGES,
    NO_GRADE,
    SUCCESS_ABOVE,
    is_share,
    outcome_numbers,
    unbounded_averages,
    undefined,
)
from gradestack_plugins.tau_bench.records import finite_number, reward_of

FAIL_BELOW: Final = 0.1
HIGH_PARTIAL: Final = 0.7
LOW_PARTIAL: Final = 0.8
LISTED: Final = 3
BIN_EDGES: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Lower bounds are included. Scores below 0 (of other graders) go into the first bin, scores above 1 into the last."""

_NO_REWARD: Final = "no graded sample has a recorded reward"
_NO_CALL: Final = "no call is expected in any graded sample"
_NOT_CALLED: Final = "no expected tool was called"


@attrs.frozen(kw_only=True)
class PartialStatistics(Aggregator):
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
    figures: ClassVar = (
        *AVERAGES,
        Figure("min", "Least score", unit="score", divisor="graded", undefined=NO_GRADE),
        Figure("max", "Greatest score", unit="score", divisor="graded", undefined=NO_GRADE),
        Figure(
            "binary.success_rate",
            "Recorded successes",
            about="rewards above 0.9 / recorded rewards",
            divisor="rewards",
            undefined=_NO_REWARD,
        ),
        Figure(
            "binary.average",
            "Mean recorded reward",
            about="sum of rewards / recorded rewards",
            divisor="rewards",
            undefined=_NO_REWARD,
        ),
        Figure(
            "tool_selection_accuracy",
            "Expected calls whose tool was called",
            about="called / expected calls",
            divisor="expected",
            undefined=_NO_CALL,
        ),
        Figure(
            "argument_precision",
            "Similarity of the arguments",
            about="mean similarity over expected calls whose tool was called",
            divisor="similarities",
            undefined=_NOT_CALLED,
        ),
    )
    needs: ClassVar = frozenset({"items"})

    confidence: float = attrs.field(default=0.95, validator=valid_confidence)
    """Of the intervals, between 0 and 1."""
    share: bool = True
    """Whether scores are bound to [0, 1]; default: as the grader says."""

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        found = outcome_numbers(grade)
        if found is None or grade.score is None:
            return found
        count = grade.counts.get
        found["expected"], found["called"] = count("expected_calls", 0), count("called", 0)
        found["made"] = count("made_calls", 0)
        if (reward := _reward(grade)) is not None:
            found["rewards"], found["reward"], found["successes"] = 1, reward, int(reward > SUCCESS_ABOVE)
        known = [
            similarity
            for item in grade.items
            if (similarity := finite_number(item.parts.get("argument_similarity"))) is not None
        ]
        found["similarities"], found["similarity"] = len(known), math.fsum(known)
        return found

    @override
    def estimate(
        self,
        applicable: float,
        graded: float,
        score: float,
        expected: float,
        called: float,
        similarities: float,
        similarity: float,
    ) -> Mapping[str, float | None]:
        return {
            "average": ratio(score, graded),
            "average_over_total": ratio(score, applicable),
            "tool_selection_accuracy": ratio(called, expected),
            "argument_precision": ratio(similarity, similarities),
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, Any]:
        totals, scores = grades.totals, Counter[float]()
        for grade, times in grades.counted:
            if grade.score is not None:
                scores[float(grade.score)] += times
        share = self.share and all(is_share(each.score) and is_share(_reward(each)) for each, _ in grades.counted)
        found: dict[str, Any] = {
            "n": scores.total(),
            "total": len(grades),
            "failed": sum(times for grade, times in grades.counted if grade.outcome is Outcome.FAILED),
            "min": min(scores, default=None),
            "min_interval": {"reason": "quantile"},
            "max": max(scores, default=None),
            "max_interval": {"reason": "quantile"},
            "histogram": _histogram(scores),
            "binary": self._binary(grades, share=share),
            "binary_fail_high_partial": _cases(grades, _fails_high),
            "binary_success_low_partial": _cases(grades, _succeeds_low),
            "expected_calls": int(totals.get("expected", 0)),
            "called": int(totals.get("called", 0)),
            "made_calls": int(totals.get("made", 0)),
            "interpretation": {"bands": described(_bands(scores))},
        }
        if not share:
            found |= unbounded_averages(grades, self.confidence)
        if not scores:
            found |= undefined(("average", "average_over_total", "min", "max"), NO_GRADE)
        if not totals.get("expected"):
            found |= undefined(("tool_selection_accuracy",), _NO_CALL)
        if not totals.get("similarities"):
            found |= undefined(("argument_precision",), _NOT_CALLED)
        return found

    def _binary(self, grades: Grades, *, share: bool) -> dict[str, Any]:
        """Return the figures of the recorded rewards."""
        sums = grades.sums("rewards", "successes", "reward")
        totals, of = sums.totals(), {"success_rate": ("successes", "rewards"), "average": ("reward", "rewards")}
        found: dict[str, Any] = {
            "threshold": SUCCESS_ABOVE,
            "n": int(totals["rewards"]),
            "successes": int(totals["successes"]),
        }
        if not totals["rewards"]:
            return {**found, **undefined(of, _NO_REWARD)}
        rates = {name: float(totals[above] / totals[below]) for name, (above, below) in of.items()}
        unbounded = () if share else ("average",)
        return {**found, **rates, **sums.ratios(of, confidence=self.confidence, unbounded=unbounded)}


def _reward(grade: Grade) -> float | None:
    """Return the recorded reward of a graded sample."""
    return None if grade.score is None else reward_of(grade.parts.get("reward"))


def _fails_high(reward: float, score: float) -> bool:
    return reward < FAIL_BELOW and score > HIGH_PARTIAL


def _succeeds_low(reward: float, score: float) -> bool:
    return reward > SUCCESS_ABOVE and score < LOW_PARTIAL


def _cases(grades: Grades, is_case: Callable[[float, float], bool]) -> dict[str, Any]:
    """Return how many samples are of a kind by reward and score, and the first of them."""

    def score_of(grade: Grade) -> float | None:
        reward = _reward(grade)
        return None if reward is None or grade.score is None or not is_case(reward, grade.score) else float(grade.score)

    total = sum(times for grade, times in grades.counted if score_of(grade) is not None)
    cases = (
        {"id": key.id, "run": key.run, "score": score}
        for key, grade in grades
        if (score := score_of(grade)) is not None
    )
    return {"total": total, "first": [*islice(cases, min(LISTED, total))]}


def _histogram(scores: Counter[float]) -> list[dict[str, Any]]:
    """Return the six bins; the last is the single value 1 (and whatever lies above)."""
    counts: Counter[int] = Counter()
    for score, times in scores.items():
        counts[bisect_right(BIN_EDGES, score)] += times
    bounds = zip((0.0, *BIN_EDGES), (*BIN_EDGES, 1.0), strict=True)
    return [
        {"lower": lower, "upper": upper, "count": counts[place], "share": ratio(counts[place], scores.total())}
        for place, (lower, upper) in enumerate(bounds)
    ]


def _bands(scores: Counter[float]) -> list[int]:
    """Return the number of samples in each score band."""
    counts: Counter[int] = Counter()
    for score, times in scores.items():
        counts[band_index(score)] += times
    return [counts[place] for place in range(len(BANDS))]
