"""Aggregators of tau-bench.

Partial statistics and success rates.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    Figure,
    Grade,
    Grades,
    Outcome,
    ratio,
    ratio_interval,
)
from gradestack_plugins.statistics.mean import (
    QUANTILES,
    IntervalAggregator,
    no_intervals,
    unbounded_intervals,
)
from gradestack_plugins.tau_bench.grader import finite_number, reward_of

SUCCESS_ABOVE: Final = 0.9
"""A reward above this is a success in the statistics block (the benchmark itself uses a tolerance
around 1).
"""
FAIL_BELOW: Final = 0.1
HIGH_PARTIAL: Final = 0.7
LOW_PARTIAL: Final = 0.8
LISTED: Final = 3
BIN_EDGES: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Lower bounds are included.

Scores below 0 (of other graders) go into the first bin, scores above 1 into the last.
"""

_NO_GRADE: Final = "no sample was graded"
_NO_REWARD: Final = "no graded sample has a recorded reward"
_NO_CALL: Final = "no call is expected in any graded sample"
_NOT_CALLED: Final = "no expected tool was called"

_UNBOUNDED: Final = {"average": ("graded", "score"), "average_over_total": ("applicable", "score")}
"""Averages of scores that need not be shares: divisor and dividend."""

_SUMS: Final = (
    *("expected", "called", "made", "rewards", "reward", "successes"),
    *("similarities", "similarity"),
)

_of_graded = partial(Figure, divisor="graded", undefined=_NO_GRADE)
_of_all = partial(Figure, divisor="applicable", undefined=_NO_GRADE)
_of_rewards = partial(Figure, divisor="rewards", undefined=_NO_REWARD)
_AVERAGES: Final = (
    _of_graded("average", "Mean score", about="sum of scores / graded samples"),
    _of_all(
        "average_over_total",
        "Mean score over all samples",
        about="sum of scores / graded, failed and missing samples",
    ),
)


_BANDS: Final = (
    "perfect: every expected call was made with the expected arguments",
    "near miss: the right tools, a minor difference in the arguments",
    "partial success: right tools with wrong arguments, or some of several expected calls missing",
    "wrong approach: most of the expected tools were not called",
)
"""A rule of thumb with several expected calls: one call right and three missing is 0.25.

No figure is made of them.
"""
_BAND_EDGES: Final = (0.4, 0.9, 1.0)


@attrs.frozen(kw_only=True)
class _Averages(IntervalAggregator):
    """Mean score over graded samples, and over all that apply.

    Failed and missing ones weigh like zeros.
    """

    of_scores: ClassVar[bool] = True

    share: bool = True
    """Whether scores are bound to [0, 1]; default: as the grader says."""

    @override
    def contribution(self, grade: Grade) -> dict[str, float] | None:
        if grade.outcome is Outcome.SKIPPED:
            return None
        if grade.score is None:
            return {"applicable": 1, "graded": 0, "score": 0.0}
        return {"applicable": 1, "graded": 1, "score": float(grade.score)}


def _undefined(names: Iterable[str], why: str) -> dict[str, Any]:
    reasons = dict.fromkeys(names, why)
    return {
        **dict.fromkeys(reasons),
        **no_intervals(reasons),
        **{f"{name}_reason": why for name in reasons},
    }


def _is_share(number: float | None) -> bool:
    return number is None or 0.0 <= number <= 1.0


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

    version: ClassVar[str] = "3"
    figures: ClassVar = (
        _of_graded(
            "success_rate", "Successes", about="scores above the threshold / graded samples"
        ),
        _of_all(
            "success_rate_over_total",
            "Successes of all samples",
            about="scores above the threshold / graded, failed and missing samples",
        ),
        *_AVERAGES,
    )

    threshold: float = attrs.field(
        default=SUCCESS_ABOVE,
        validator=[attrs.validators.gt(-math.inf), attrs.validators.lt(math.inf)],
    )

    @override
    def contribution(self, grade: Grade) -> dict[str, float] | None:
        numbers = super().contribution(grade)
        if numbers is not None:
            is_success = grade.score is not None and grade.score > self.threshold
            numbers["successes"] = int(is_success)
        return numbers

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        applicable = totals["applicable"]
        graded = totals["graded"]
        score = totals["score"]
        successes = totals["successes"]
        return {
            "success_rate": ratio(successes, graded),
            "success_rate_over_total": ratio(successes, applicable),
            "average": ratio(score, graded),
            "average_over_total": ratio(score, applicable),
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, Any]:
        graded = grades.totals.get("graded", 0)
        share = self.share and all(_is_share(grade.score) for grade, _ in grades.counted)
        return {
            "threshold": self.threshold,
            "successes": int(grades.totals.get("successes", 0)),
            "n": int(graded),
            "total": len(grades),
            **({} if share else unbounded_intervals(grades, _UNBOUNDED, self.confidence)),
            **({} if graded else _undefined([each.name for each in self.figures], _NO_GRADE)),
        }


@attrs.frozen(kw_only=True)
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

    version: ClassVar[str] = "3"
    figures: ClassVar = (
        *_AVERAGES,
        _of_graded("min", "Least score", unit="score"),
        _of_graded("max", "Greatest score", unit="score"),
        _of_rewards(
            "binary.success_rate",
            "Recorded successes",
            about="rewards above 0.9 / recorded rewards",
        ),
        _of_rewards(
            "binary.average", "Mean recorded reward", about="sum of rewards / recorded rewards"
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

    @override
    def contribution(self, grade: Grade) -> dict[str, float] | None:
        numbers = super().contribution(grade)
        if numbers is None:
            return None
        numbers |= dict.fromkeys(_SUMS, 0)
        if grade.score is None:
            return numbers
        count = grade.counts.get
        numbers["expected"], numbers["called"] = count("expected_calls", 0), count("called", 0)
        numbers["made"] = count("made_calls", 0)
        if (reward := _reward(grade)) is not None:
            numbers["rewards"], numbers["reward"], numbers["successes"] = (
                1,
                reward,
                int(reward > SUCCESS_ABOVE),
            )
        return {**numbers, **_similarity_sums(grade)}

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        applicable = totals["applicable"]
        graded = totals["graded"]
        score = totals["score"]
        expected = totals["expected"]
        called = totals["called"]
        similarities = totals["similarities"]
        similarity = totals["similarity"]
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
        are_shares = self.share and all(_is_share(grade.score) for grade, _ in grades.counted)
        are_rewards_shares = all(_is_share(_reward(grade)) for grade, _ in grades.counted)
        figures: dict[str, Any] = {
            "n": scores.total(),
            "total": len(grades),
            "failed": sum(
                times for grade, times in grades.counted if grade.outcome is Outcome.FAILED
            ),
            "min": min(scores, default=None),
            "max": max(scores, default=None),
            **QUANTILES,
            "histogram": [
                {
                    "lower": lower,
                    "upper": upper,
                    "count": count,
                    "share": ratio(count, scores.total()),
                }
                for lower, upper, count in _binned(scores, BIN_EDGES)
            ],
            "binary": self._binary(grades, share=are_rewards_shares),
            "binary_fail_high_partial": _cases(
                grades, lambda r, score: r < FAIL_BELOW and score > HIGH_PARTIAL
            ),
            "binary_success_low_partial": _cases(
                grades, lambda r, score: r > SUCCESS_ABOVE and score < LOW_PARTIAL
            ),
            "expected_calls": int(totals.get("expected", 0)),
            "called": int(totals.get("called", 0)),
            "made_calls": int(totals.get("made", 0)),
        }
        ranges = _binned(scores, _BAND_EDGES)[::-1]
        figures["interpretation"] = {
            "bands": [
                {"lower": lower, "upper": upper, "text": text, "samples": count}
                for text, (lower, upper, count) in zip(_BANDS, ranges, strict=True)
            ],
        }
        if scores:
            figures["statements"] = [*_range_statements(ranges), *_case_statements(figures)]
        if not are_shares:
            figures |= unbounded_intervals(grades, _UNBOUNDED, self.confidence)
        if not scores:
            figures |= _undefined(("average", "average_over_total", "min", "max"), _NO_GRADE)
        if not totals.get("expected"):
            figures |= _undefined(("tool_selection_accuracy",), _NO_CALL)
        if not totals.get("similarities"):
            figures |= _undefined(("argument_precision",), _NOT_CALLED)
        return figures

    def _binary(self, grades: Grades, *, share: bool) -> dict[str, Any]:
        totals, of = (
            grades.totals,
            {"success_rate": ("successes", True), "average": ("reward", share)},
        )
        n = int(totals.get("rewards", 0))
        figures: dict[str, Any] = {
            "threshold": SUCCESS_ABOVE,
            "n": n,
            "successes": int(totals.get("successes", 0)),
        }
        if not n:
            return figures | _undefined(of, _NO_REWARD)
        for name, (above, bound) in of.items():
            tasks = grades.sums("rewards", above)[0]
            figures[name] = float(Fraction(totals[above]) / n)
            figures[f"{name}_interval"] = {
                **ratio_interval(tasks, confidence=self.confidence, share=bound)
            }
        return figures


_RANGES: Final = (
    "Partial score 1.0, perfect",
    "Partial score 0.9 to 1.0, near miss",
    "Partial score 0.4 to 0.9, partial success",
    "Partial score 0.0 to 0.4, wrong approach",
)


def _range_statements(ranges: Sequence[tuple[float, float, int]]) -> Iterator[str]:
    """Yield how many samples are in each of the document's four score ranges."""
    total = sum(count for _, _, count in ranges)
    for name, (_, _, count) in zip(_RANGES, ranges, strict=True):
        yield f"{name}: {count} of {total} ({100 * count / total:.1f}%)"


def _case_statements(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the document's interesting cases, as far as there are any."""
    names = {
        "binary_fail_high_partial": f"Binary fail but partial > {HIGH_PARTIAL}",
        "binary_success_low_partial": f"Binary success but partial < {LOW_PARTIAL}",
    }
    for key, name in names.items():
        cases = figures[key]
        if cases["total"]:
            first = ", ".join(_case_text(case) for case in cases["first"])
            number = cases["total"]
            yield f"{name}: {number} {'run' if number == 1 else 'runs'}; first: {first}"


def _case_text(case: Mapping[str, Any]) -> str:
    trial = "" if case["run"] is None else f" (trial {case['run']})"
    return f"task {case['id']}{trial} partial={case['score']:.2f}"


def _similarity_sums(grade: Grade) -> Mapping[str, float]:
    """Return the number and the sum of the argument similarities of a grade's items."""
    if grade.numbers is not None and "similarity" in grade.numbers:
        return grade.numbers
    known = [finite_number(item.parts.get("argument_similarity")) for item in grade.items]
    similarities = [each for each in known if each is not None]
    return {"similarities": len(similarities), "similarity": math.fsum(similarities)}


def _reward(grade: Grade) -> float | None:
    return None if grade.score is None else reward_of(grade.parts.get("reward"))


def _cases(grades: Grades, is_case: Callable[[float, float], bool]) -> dict[str, Any]:
    def applies(grade: Grade) -> bool:
        reward = _reward(grade)
        return reward is not None and grade.score is not None and is_case(reward, grade.score)

    total = sum(times for grade, times in grades.counted if applies(grade))
    cases = (
        {"id": key.id, "run": key.run, "score": float(grade.score or 0)}
        for key, grade in grades
        if applies(grade)
    )
    return {"total": total, "first": [*islice(cases, min(LISTED, total))]}


def _binned(scores: Counter[float], edges: Sequence[float]) -> list[tuple[float, float, int]]:
    """Return lower and upper bound of each bin, and how many scores are in it.

    The last is 1 and what lies above.
    """
    counts: Counter[int] = Counter()
    for score, times in scores.items():
        counts[bisect_right(edges, score)] += times
    bounds = zip((0.0, *edges), (*edges, 1.0), strict=True)
    return [(lower, upper, counts[place]) for place, (lower, upper) in enumerate(bounds)]
