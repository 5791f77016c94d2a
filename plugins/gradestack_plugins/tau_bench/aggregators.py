"""Aggregators of tau-bench.

Partial statistics and success rates.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any

import attrs
from attrs.validators import gt, lt
from typing_extensions import override

from gradestack import Figure, Grade, Grades, Outcome, Ratio, ratio
from gradestack_plugins.statistics.mean import QUANTILES, IntervalAggregator, unbounded_intervals
from gradestack_plugins.tau_bench.grader import finite_number, reward_of

SUCCESS_ABOVE = 0.9
"""A reward above this is a success in the statistics block (the benchmark itself uses a tolerance
around 1).
"""
FIRST_CASES = 3
"""Interesting cases that are named."""
CASES = {
    "binary_fail_high_partial": "Binary fail but partial > 0.7",
    "binary_success_low_partial": "Binary success but partial < 0.8",
}
"""Lists of interesting cases, and the document's words for them."""

_NOTHING_GRADED = "no sample was graded"
_of_graded = partial(Ratio, of="graded", undefined=_NOTHING_GRADED)
_of_all = partial(Ratio, of="applicable", undefined=_NOTHING_GRADED)
_of_rewards = partial(Figure, divisor="rewards", undefined="no graded sample has a recorded reward")
_AVERAGES = (
    _of_graded("average", "Mean score", right="score", about="sum of scores / graded samples"),
    _of_all(
        "average_over_total",
        "Mean score over all samples",
        right="score",
        about="sum of scores / graded, failed and missing samples",
    ),
)
_EXTREME = partial(Figure, divisor="graded", unit="score", undefined=_NOTHING_GRADED)


_BANDS = {
    "1.0, perfect": "perfect: every expected call was made with the expected arguments",
    "0.9 to 1.0, near miss": "near miss: the right tools, a minor difference in the arguments",
    "0.4 to 0.9, partial success": "partial success: right tools with wrong arguments, or some of "
    "several expected calls missing",
    "0.0 to 0.4, wrong approach": "wrong approach: most of the expected tools were not called",
}
"""The document's score ranges, in its words and in those of a page.

A rule of thumb with several expected calls: one call right and three missing is 0.25. No figure is
made of them.
"""


@attrs.frozen(kw_only=True)
class _Averages(IntervalAggregator):
    """Mean score over graded samples, and over all that apply.

    Failed and missing ones weigh like zeros.
    """

    of_scores = True

    share: bool = True
    """Whether scores are bound to [0, 1]; default: as the grader says."""

    @override
    def contribution(self, grade: Grade) -> dict[str, float] | None:
        if grade.outcome is Outcome.SKIPPED:
            return None
        is_graded = grade.score is not None
        score = float(grade.score or 0)
        return {"applicable": 1, "graded": int(is_graded), "score": score}

    @override
    def figures_of(self, totals: Mapping[str, float]) -> dict[str, Any]:
        figures = dict(super().figures_of(totals))
        return figures if totals["graded"] else dict.fromkeys(figures)

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        graded = grades.totals.get("graded", 0)
        number = int(graded)
        figures = {"n": number, "total": len(grades)}
        if self.share and _are_shares(grade.score for grade, _ in grades.counted):
            return figures
        averages = {"average": ("graded", "score"), "average_over_total": ("applicable", "score")}
        return figures | unbounded_intervals(grades, averages, self.confidence)


def _are_shares(numbers: Iterable[float | None]) -> bool:
    return all(number is None or 0.0 <= number <= 1.0 for number in numbers)


@attrs.frozen(kw_only=True)
class Binary(_Averages):
    """Success rate and average of a grader's scores.

    A score is a success when it is **above** ``threshold``. ``success_rate`` and ``average`` divide
    by the graded samples; the ``…_over_total`` figures also by failed and missing ones, which then
    weigh like zeros. Skipped samples are outside both.

    Attributes:
        threshold: Scores above it are successes.
        confidence: Of the intervals, between 0 and 1.
        share: Whether scores are bound to [0, 1]; default: as the grader says.
    """

    version = "4"
    figures = (
        _of_graded(
            "success_rate",
            "Successes",
            right="successes",
            about="scores above the threshold / graded samples",
        ),
        _of_all(
            "success_rate_over_total",
            "Successes of all samples",
            right="successes",
            about="scores above the threshold / graded, failed and missing samples",
        ),
        *_AVERAGES,
    )

    threshold: float = attrs.field(default=SUCCESS_ABOVE, validator=[gt(-math.inf), lt(math.inf)])

    @override
    def contribution(self, grade: Grade) -> dict[str, float] | None:
        numbers = super().contribution(grade)
        if numbers is not None:
            is_success = grade.score is not None and grade.score > self.threshold
            numbers["successes"] = int(is_success)
        return numbers

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        successes = int(grades.totals.get("successes", 0))
        return {"threshold": self.threshold, "successes": successes, **super().compute(grades)}


class PartialStatistics(_Averages):
    """The figures of the partial scoring report, over the graded samples.

    - ``average``, ``min``, ``max``, a histogram of six bins (lower bounds included, 1.0 its own
      bin).
    - ``binary``: recorded rewards (``parts["reward"]``) of the same samples; a reward above 0.9 is
      a success.
    - ``binary_fail_high_partial``: reward below 0.1 and score above 0.7;
      ``binary_success_low_partial``: reward above 0.9 and score below 0.8. Total, and the first
          three in input order.
    - ``tool_selection_accuracy``: share of the expected calls whose tool was called (sum of the
      counts ``called`` and ``expected_calls``); ``argument_precision``: mean argument similarity of
      those that were.
    - ``interpretation.bands``: the score bands with the number of samples in each; ``statements``
      has them and the two lists of cases in words.

    Works on any grader's scores; figures whose ingredients a grader does not give are null.
    """

    version = "4"
    figures = (
        *_AVERAGES,
        _EXTREME("min", "Least score"),
        _EXTREME("max", "Greatest score"),
        _of_rewards(
            "binary.success_rate",
            "Recorded successes",
            about="rewards above 0.9 / recorded rewards",
        ),
        _of_rewards(
            "binary.average", "Mean recorded reward", about="sum of rewards / recorded rewards"
        ),
        Ratio(
            "tool_selection_accuracy",
            "Expected calls whose tool was called",
            right="called",
            of="expected",
            about="called / expected calls",
            undefined="no call is expected in any graded sample",
        ),
        Ratio(
            "argument_precision",
            "Similarity of the arguments",
            right="similarity",
            of="similarities",
            about="mean similarity over expected calls whose tool was called",
            undefined="no expected tool was called",
        ),
    )

    @override
    def contribution(self, grade: Grade) -> dict[str, float] | None:
        numbers = super().contribution(grade)
        if numbers is None:
            return None
        counts = {} if grade.score is None else grade.counts
        reward = _reward(grade)
        is_success = reward is not None and reward > SUCCESS_ABOVE
        rewards = int(reward is not None)
        expected_calls = counts.get("expected_calls", 0)
        made_calls = counts.get("made_calls", 0)
        similarity_sums = _similarity_sums(grade)
        return {
            **numbers,
            "expected": expected_calls,
            "called": counts.get("called", 0),
            "made": made_calls,
            "rewards": rewards,
            "reward": reward or 0,
            "successes": int(is_success),
            **similarity_sums,
        }

    @override
    def figures_of(self, totals: Mapping[str, float]) -> dict[str, Any]:
        rewards = totals["rewards"]
        success_rate = ratio(totals["successes"], rewards)
        average = ratio(totals["reward"], rewards)
        binary = {
            "success_rate": success_rate,
            "average": average,
        }
        return {
            **super().figures_of(totals),
            "binary": binary,
        }

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        scores = Counter[float]()
        totals = Counter(grades.totals)
        rewards = [_reward(grade) for grade, _ in grades.counted]
        for grade, times in grades.counted:
            if grade.score is not None:
                scores[float(grade.score)] += times
        number = int(totals["rewards"])
        successes = int(totals["successes"])
        binary = {
            "threshold": SUCCESS_ABOVE,
            "n": number,
            "successes": successes,
        }
        if totals["rewards"]:
            fraction = Fraction(totals["reward"])
            binary["average"] = float(fraction / totals["rewards"])
        if not _are_shares(rewards):
            averages = {"average": ("rewards", "reward")}
            binary |= unbounded_intervals(grades, averages, self.confidence)
        cases = {name: _find_cases(grades, name) for name in CASES}
        failed = [times for grade, times in grades.counted if grade.outcome is Outcome.FAILED]
        by_bin = _count_by_bin(scores, (0.4, 0.9, 1.0))
        ranges = by_bin[::-1]
        bands = [
            {"lower": lower, "upper": upper, "text": text, "samples": n}
            for text, (lower, upper, n) in zip(_BANDS.values(), ranges, strict=True)
        ]
        figures = super().compute(grades) | QUANTILES | cases
        figures["failed"] = sum(failed)
        figures["min"] = min(scores, default=None)
        figures["max"] = max(scores, default=None)
        figures["histogram"] = make_histogram(scores)
        figures["binary"] = binary
        figures["expected_calls"] = int(totals["expected"])
        figures["called"] = int(totals["called"])
        figures["made_calls"] = int(totals["made"])
        figures["interpretation"] = {"bands": bands}
        if scores:
            counts = [n for _, _, n in ranges]
            band_statements = _band_statements(counts)
            case_statements = _case_statements(cases)
            figures["statements"] = [*band_statements, *case_statements]
        return figures


def _band_statements(counts: Sequence[int]) -> Iterator[str]:
    """Yield the number of samples in each of the document's score ranges."""
    total = sum(counts)
    for name, n in zip(_BANDS, counts, strict=True):
        yield f"Partial score {name}: {n} of {total} ({100 * n / total:.1f}%)"


def _case_statements(cases: Mapping[str, Any]) -> Iterator[str]:
    """Yield the document's interesting cases, as far as there are any."""
    for name, of_case in cases.items():
        number = of_case["total"]
        if number:
            first = ", ".join(map(_case_text, of_case["first"]))
            runs = "run" if number == 1 else "runs"
            yield f"{CASES[name]}: {number} {runs}; first: {first}"


def _case_text(case: Mapping[str, Any]) -> str:
    if case["run"] is None:
        trial = ""
    else:
        trial = f" (trial {case['run']})"
    return f"task {case['id']}{trial} partial={case['score']:.2f}"


def _similarity_sums(grade: Grade) -> Mapping[str, float]:
    """Return the number and the sum of the argument similarities of a grade's items."""
    if grade.numbers is not None and "similarity" in grade.numbers:
        return grade.numbers
    known = [finite_number(item.parts.get("argument_similarity")) for item in grade.items]
    similarities = [similarity for similarity in known if similarity is not None]
    return {"similarities": len(similarities), "similarity": math.fsum(similarities)}


def _reward(grade: Grade) -> float | None:
    if grade.score is None:
        return None
    return reward_of(grade.parts.get("reward"))


def case_of(reward: float | None, score: float | None) -> str | None:
    """Return the list of interesting cases that a score and the reward beside it are in."""
    if reward is None or score is None:
        return None
    if reward < 0.1 and score > 0.7:
        return "binary_fail_high_partial"
    if reward > SUCCESS_ABOVE and score < 0.8:
        return "binary_success_low_partial"
    return None


def _find_cases(grades: Grades, name: str) -> dict[str, Any]:
    """Return the number of interesting cases, and the first of them."""
    n = sum(
        times for grade, times in grades.counted if case_of(_reward(grade), grade.score) == name
    )
    cases = (
        {"id": key.id, "run": key.run, "score": float(grade.score or 0)}
        for key, grade in grades
        if case_of(_reward(grade), grade.score) == name
    )
    return {"total": n, "first": [*islice(cases, min(FIRST_CASES, n))]}


def make_histogram(scores: Counter[float]) -> list[dict[str, float | None]]:
    """Return bounds, number and share of the scores in each bin; a lower bound is included.

    Scores below 0 (of other graders) go into the first bin, scores above 1 into the last.
    """
    total = scores.total()
    by_bin = _count_by_bin(scores, (0.2, 0.4, 0.6, 0.8, 1.0))
    return [
        {"lower": lower, "upper": upper, "count": n, "share": ratio(n, total)}
        for lower, upper, n in by_bin
    ]


def _count_by_bin(scores: Counter[float], edges: Sequence[float]) -> list[tuple[float, float, int]]:
    """Return lower and upper bound of each bin, and how many scores are in it.

    The last is 1 and what lies above.
    """
    counts = Counter[int]()
    for score, times in scores.items():
        counts[bisect_right(edges, score)] += times
    bounds = zip((0.0, *edges), (*edges, 1.0), strict=True)
    return [(lower, upper, counts[position]) for position, (lower, upper) in enumerate(bounds)]
