"""Aggregators of tau-bench.

Partial statistics, success rates, and reliability over repeated trials.
"""

from __future__ import annotations

import abc
import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import count, islice
from math import comb
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    Figure,
    Grade,
    Grades,
    Numbers,
    Outcome,
    preset_version,
    ratio,
    ratio_interval,
)
from gradestack_plugins.statistics.mean import IntervalAggregator, unbounded_intervals
from gradestack_plugins.tau_bench.grader import finite_number, is_success, reward_of

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

    reads_labels: ClassVar[bool] = False

    share: bool = True
    """Whether scores are bound to [0, 1]; default: as the grader says."""

    @override
    def numbers(self, grade: Grade) -> dict[str, float] | None:
        if grade.outcome is Outcome.SKIPPED:
            return None
        return {"applicable": 1} | (
            {} if grade.score is None else {"graded": 1, "score": float(grade.score)}
        )


def _undefined(names: Iterable[str], why: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in names:
        figures |= {name: None, f"{name}_interval": {"reason": why}, f"{name}_reason": why}
    return figures


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
    def numbers(self, grade: Grade) -> dict[str, float] | None:
        numbers = super().numbers(grade)
        if numbers is not None and grade.score is not None:
            numbers["successes"] = int(grade.score > self.threshold)
        return numbers

    @override
    def estimate(
        self, applicable: float, graded: float, score: float, successes: float
    ) -> Mapping[str, float | None]:
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
    - ``interpretation.bands``: the score bands with the number of samples in each; words only.

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
    needs: ClassVar = frozenset({"items"})
    sums: ClassVar = frozenset({"similarities", "similarity"})

    @override
    def numbers(self, grade: Grade) -> dict[str, float] | None:
        numbers = super().numbers(grade)
        if numbers is None or grade.score is None:
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
        if grade.numbers is not None and self.sums <= grade.numbers.keys():
            return {**numbers, **{name: grade.numbers[name] for name in self.sums}}
        known = [
            similarity
            for item in grade.items
            if (similarity := finite_number(item.parts.get("argument_similarity"))) is not None
        ]
        return {**numbers, "similarities": len(known), "similarity": math.fsum(known)}

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
        share = self.share and all(
            _is_share(each.score) and _is_share(_reward(each)) for each, _ in grades.counted
        )
        figures: dict[str, Any] = {
            "n": scores.total(),
            "total": len(grades),
            "failed": sum(
                times for grade, times in grades.counted if grade.outcome is Outcome.FAILED
            ),
            "min": min(scores, default=None),
            "min_interval": {"reason": "quantile"},
            "max": max(scores, default=None),
            "max_interval": {"reason": "quantile"},
            "histogram": [
                {
                    "lower": lower,
                    "upper": upper,
                    "count": count,
                    "share": ratio(count, scores.total()),
                }
                for lower, upper, count in _binned(scores, BIN_EDGES)
            ],
            "binary": self._binary(grades, share=share),
            "binary_fail_high_partial": _cases(
                grades, lambda r, score: r < FAIL_BELOW and score > HIGH_PARTIAL
            ),
            "binary_success_low_partial": _cases(
                grades, lambda r, score: r > SUCCESS_ABOVE and score < LOW_PARTIAL
            ),
            "expected_calls": int(totals.get("expected", 0)),
            "called": int(totals.get("called", 0)),
            "made_calls": int(totals.get("made", 0)),
            "interpretation": {
                "bands": [
                    {"lower": lower, "upper": upper, "text": text, "samples": count}
                    for text, (lower, upper, count) in zip(
                        _BANDS, _binned(scores, _BAND_EDGES)[::-1], strict=True
                    )
                ],
            },
        }
        if not share:
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


MOST_K: Final = 100
"""Highest k there is a figure for when ``max_k`` is unset.

More trials than that would take long and say little.
"""
PRESETS: Final = {"tau2/pass": "a2c0247", "vitabench/pass": "14db9e3", "mcpmark/pass": "1b82b71"}
_NO_TRIAL: Final = "no task has a trial"


def _trials(grades: Grades) -> int:
    """Return the number of trials: names of runs.

    Samples without one are numbered within their task.
    """
    table = grades.table
    none = {Outcome.SKIPPED, Outcome.MISSING}
    counts = [grade.outcome not in none for grade in table.grades(grades.key)]
    verdicts, runs, tasks = table.verdicts[grades.key].codes, table.keys["run"], table.tasks()[1]
    rows = grades.rows if all(counts) else [row for row in grades.rows if counts[verdicts[row]]]
    names = set(map(runs.codes.__getitem__, rows))
    unnamed = {code for code in names if runs.values[code] is None}
    of_task = Counter([tasks[row] for row in rows if runs.codes[row] in unnamed]) if unnamed else {}
    return max(len(names - unnamed), *of_task.values(), 0)


class Task(msgspec.Struct, frozen=True):
    """A task of one model."""

    records: int
    successes: int
    trials: int
    """Distinct trials of all records of the model."""
    reward: float = 0.0
    """Sum of its scores, where a preset asks for it."""


def _figure(name: str, label: str, about: str) -> Figure:
    return Figure(
        f"{name}.{{k}}", label, about=about, divisor=f"{name} tasks {{k}}", samples="records"
    )


_of_runs = partial(Figure, divisor="records", optional=True)
_HAT = _figure(
    "pass_hat_k",
    "pass^k: all of k trials succeed",
    "mean over tasks of C(successes, k) / C(trials, k)",
)
_AT = _figure(
    "pass_at_k",
    "pass@k: one of k trials succeeds",
    "mean over tasks of 1 - C(failures, k) / C(trials, k)",
)


@attrs.frozen(kw_only=True)
class Trials(IntervalAggregator):
    """Counts records and successes of the tasks of each model; base of the two figures.

    A record is a success when its grade has ``passed`` set true, or, where a grader gives no
    verdict, when its score is within ``tolerance`` of 1. Failed grades are trials that failed.
    Skipped ones are left out as if they were not in the input. A missing one (a task of the dataset
    without a record) is a task without trials.

    Records without a trial identifier count as trials of their own: the first such record of a task
    is its trial 1, the second its trial 2, and so on.

    Attributes:
        tolerance: How far from 1 a successful score may be.
        max_k: Highest k given; when unset, all that the trials allow up to 100.
        confidence: Of the intervals, between 0 and 1.
    """

    reads_labels: ClassVar[bool] = False
    version: ClassVar[str] = "2"

    tolerance: float = attrs.field(
        default=1e-6, validator=[attrs.validators.ge(0), attrs.validators.lt(math.inf)]
    )
    max_k: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(1))
    )

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        if grade.outcome is Outcome.SKIPPED:
            return None
        return (
            {}
            if grade.outcome is Outcome.MISSING
            else {"records": 1, "successes": int(self._succeeded(grade))}
        )

    def _succeeded(self, grade: Grade) -> bool:
        if grade.outcome is not Outcome.GRADED or grade.score is None:
            return False
        return grade.passed if grade.passed is not None else is_success(grade.score, self.tolerance)

    @override
    def whole(self, grades: Grades) -> Numbers:
        return {"trials": _trials(grades)}

    @override
    def of_task(self, sums: Mapping[str, float]) -> Mapping[str, float | Fraction] | None:
        records, successes, trials = (
            int(sums.get(name, 0)) for name in ("records", "successes", "trials")
        )
        figures: dict[str, float | Fraction] = {"records": records}
        for name, shares in self._shares(
            Task(records, successes, trials, sums.get("reward", 0.0))
        ).items():
            for k, share in enumerate(shares, 1):
                figures |= {f"{name} {k}": share, f"{name} tasks {k}": 1}
        return figures if len(figures) > 1 else None

    @abc.abstractmethod
    def _shares(self, task: Task) -> Mapping[str, Iterable[Fraction]]:
        """Return a task's share of each figure for k = 1, 2, …, as far as it has one."""

    def _ks(self, most: int) -> range:
        return range(1, min(most, MOST_K if self.max_k is None else self.max_k) + 1)

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        models = grades.sums("records", "successes")[1]
        several = len(models) > 1
        tasks: dict[str, Counter[Task]] = {}
        for model, cells in models.items():
            trials = _trials(grades.of_model(model) if several else grades)
            tasks[model] = Counter(
                {
                    Task(int(records), int(successes), trials): times
                    for (records, successes), times in cells.items()
                }
            )
        figures = self._overview(sum(tasks.values(), Counter()))
        if several:
            figures["models"] = {model: self._overview(each) for model, each in tasks.items()}
        return figures

    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        by_successes: Counter[int] = Counter()
        for task, times in tasks.items():
            by_successes[task.successes] += times
        return {
            "tasks": tasks.total(),
            "records": sum(task.records * times for task, times in tasks.items()),
            "successes": sum(task.successes * times for task, times in tasks.items()),
            "tasks_by_successes": {
                str(successes): by_successes[successes] for successes in sorted(by_successes)
            },
        }


def _with_version(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


@attrs.frozen(kw_only=True)
class PassHatK(Trials):
    """pass^k: the chance that k trials of a task, drawn at random, all succeed, averaged over
    tasks.

    With c successes of a task in n trials, ``pass^k = mean over tasks of C(c, k) / C(n, k)`` for k
    = 1, 2, …; exact fractions, rounded once at the end.

    - ``trials: file`` (tau-bench, the default): n is the number of distinct trial identifiers in
      the input (of the same model: each file is one where several are read), k runs to n. A task
      that lacks a trial counts as failing it; a task recorded more often than n times can raise the
      figure above 1, as in the original.
    - ``trials: task`` (tau2-bench): n is the number of records of that task, k runs to the smallest
      n. Tasks without any record are left out and counted in ``tasks_without_trials``.

    Presets are what other benchmarks compute. ``tau2/pass``: by task, a success is a score within
    1e-6 of 1. ``vitabench/pass``: by task, a success is a score of exactly 1; also ``pass_at_k``
    and ``average_at_k``, the mean score, over the tasks with at least k records. ``mcpmark/pass``:
    for k = the number of runs, ``pass_hat_k`` the share of tasks that succeed in all and
    ``pass_at_k`` in any; ``pass_at_1`` the mean share of tasks that succeed in a run, with
    ``pass_at_1_std``; a task that a run lacks failed there.

    Attributes:
        trials: What n is.
        preset: What another benchmark computes.
    """

    figures: ClassVar = (
        _HAT,
        _AT,
        _figure(
            "average_at_k",
            "average@k: mean score",
            "mean score of a task, over the tasks with k records",
        ),
        _of_runs(
            "pass_at_1", "pass@1: a trial succeeds", about="mean over runs of successes / tasks"
        ),
        _of_runs(
            "pass_at_1_std", "Standard deviation of pass@1 over runs", better="lower", unit="score"
        ),
    )

    trials: Literal["file", "task"] | None = None
    preset: str | None = attrs.field(default=None, converter=_with_version)

    def __attrs_post_init__(self) -> None:
        if self.preset is None:
            return
        contradicting = {"trials": self.trials is not None, "tolerance": self.tolerance != 1e-6}
        contradicting["max_k"] = self._is("mcpmark") and self.max_k is not None
        if names := [name for name, contradicts in contradicting.items() if contradicts]:
            raise ValueError(
                f"the preset {self.preset} leaves no choice for {', '.join(names)}; leave out "
                "either"
            )

    def _is(self, *names: str) -> bool:
        return self.preset is not None and self.preset.partition("/")[0] in names

    @override
    def numbers(self, grade: Grade) -> Numbers | None:
        numbers = super().numbers(grade)
        return (
            {**numbers, "reward": float(grade.score or 0.0)}
            if numbers and self._is("vitabench")
            else numbers
        )

    @override
    def _succeeded(self, grade: Grade) -> bool:
        if not self._is("tau2", "vitabench"):
            return super()._succeeded(grade)
        if grade.outcome is not Outcome.GRADED or grade.score is None:
            return False
        return is_success(grade.score, 1e-6 if self._is("tau2") else 0.0)

    def _n(self, task: Task) -> int:
        return task.records if self._by_task() else task.trials

    def _by_task(self) -> bool:
        return self.trials == "task" or self._is("tau2", "vitabench")

    @override
    def _shares(self, task: Task) -> Mapping[str, Iterable[Fraction]]:
        if self._is("mcpmark"):
            return {}
        n, c, records = self._n(task), task.successes, task.records
        shares: dict[str, Iterable[Fraction]] = {
            "pass_hat_k": [Fraction(comb(c, k), comb(n, k)) for k in self._ks(n)]
        }
        if self._is("vitabench"):
            shares["pass_at_k"] = [_one_of(task, k) for k in self._ks(records)]
            shares["average_at_k"] = [Fraction(task.reward) / records for _ in self._ks(records)]
        return shares

    @override
    def estimate(self, **sums: float) -> Mapping[str, Any]:
        hat = _mean_shares(sums, "pass_hat_k", of_all=True)
        return {**hat, **_mean_shares(sums, "pass_at_k"), **_mean_shares(sums, "average_at_k")}

    @override
    def compute(self, grades: Grades) -> dict[str, Any]:
        figures = super().compute(grades)
        if not self._is("mcpmark"):
            return figures
        if "models" not in figures:
            return figures | self._mcpmark(grades)
        for model in figures["models"]:
            figures["models"][model] |= self._mcpmark(grades.of_model(model))
        return figures | _no_figures(_MCPMARK, "several models, each with runs of its own")

    def _mcpmark(self, grades: Grades) -> dict[str, Any]:
        """Return MCPMark's figures of one model's k runs of all tasks, rounded as there.

        Their intervals are not.
        """
        runs: Counter[str] = Counter()
        for key, grade in grades:
            if grade.outcome in {Outcome.GRADED, Outcome.FAILED}:
                runs[json.dumps(key.run)] += self._succeeded(grade)
        if "null" in runs or not runs:
            return _no_figures(_MCPMARK, "the runs are not named" if runs else _NO_TRIAL)
        tasks = grades.sums("records", "successes")[0]
        total, k = sum(tasks.values()), len(runs)
        rates = [round(runs[name] / total, 6) for name in sorted(runs)]
        mean = sum(rates) / k
        figures: dict[str, Any] = {
            "pass_at_1": round(mean, 4),
            "pass_at_1_std": round((sum((rate - mean) ** 2 for rate in rates) / k) ** 0.5, 4),
        }
        shares: dict[str, Counter[tuple[float, ...]]] = {name: Counter() for name in _MCPMARK}
        for (records, successes), times in tasks.items():
            shares["pass_at_1"][1, successes / k] += times
            shares["pass_at_k"][1, float(successes > 0)] += times
            shares["pass_hat_k"][1, float(successes == records >= k)] += times
        n = int(sum(records * times for (records, _), times in tasks.items()))
        for name, parts in shares.items():
            interval = {**ratio_interval(parts, n=n, confidence=self.confidence)}
            if name != "pass_at_1":
                share = round(sum(share * times for (_, share), times in parts.items()) / total, 4)
                figures[name], interval = {str(k): share}, {str(k): interval}
            figures[f"{name}_interval"] = interval
        return figures

    @override
    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        ns = [n for n in map(self._n, tasks) if n]
        names = (
            ("pass_hat_k", "pass_at_k", "average_at_k")
            if self._is("vitabench")
            else ("pass_hat_k",)
        )
        return {
            **({} if ns else _no_figures(names, _NO_TRIAL)),
            **({} if self.preset is None else {"preset": self.preset}),
            "rule": "task" if self._by_task() else "file",
            "trials": min(ns, default=0),
            "tasks_without_trials": sum(
                times for task, times in tasks.items() if not self._n(task)
            ),
            **super()._overview(tasks),
        }


_MCPMARK: Final = ("pass_at_1", "pass_at_k", "pass_hat_k")


@attrs.frozen(kw_only=True)
class PassAtK(Trials):
    """pass@k: the chance that at least one of k trials of a task, drawn at random, succeeds,
    averaged over tasks.

    With c successes in the n records of a task,
    ``pass@k = mean over tasks with n >= k of 1 - C(n - c, k) / C(n, k)``. Tasks with fewer than k
    records have no such figure; ``tasks_at_k`` says how many took part.
    """

    figures: ClassVar = (_AT,)

    @override
    def _shares(self, task: Task) -> Mapping[str, Iterable[Fraction]]:
        return {"pass_at_k": [_one_of(task, k) for k in self._ks(task.records)]}

    @override
    def estimate(self, **sums: float) -> Mapping[str, Any]:
        return _mean_shares(sums, "pass_at_k")

    @override
    def _overview(self, tasks: Counter[Task]) -> dict[str, Any]:
        ks = self._ks(max((task.records for task in tasks), default=0))
        at_k = {
            str(k): sum(times for task, times in tasks.items() if task.records >= k) for k in ks
        }
        nothing = {} if ks else _no_figures(["pass_at_k"], _NO_TRIAL)
        return {**nothing, "tasks_at_k": at_k, **super()._overview(tasks)}


def _one_of(task: Task, k: int) -> Fraction:
    """Return the chance that one of k records of a task, drawn at random, is a success."""
    return 1 - Fraction(comb(task.records - task.successes, k), comb(task.records, k))


def _mean_shares(sums: Mapping[str, Any], name: str, *, of_all: bool = False) -> dict[str, Any]:
    """Return the mean share for k = 1, 2, …, over the tasks that have one.

    With ``of_all``, k ends where a task has no share any more, rather than where none has.
    Thousands of records of one trial, which pass^k counts as successes of few trials, make means
    beyond any float: None.
    """
    means: dict[str, float | None] = {}
    for k in count(1):
        tasks = sums.get(f"{name} tasks {k}", 0)
        if not tasks or (of_all and tasks < sums[f"{name} tasks 1"]):
            break
        try:
            means[str(k)] = float(Fraction(sums.get(f"{name} {k}", 0)) / tasks)
        except OverflowError:
            means[str(k)] = None
    return {name: means} if means else {}


def _no_figures(names: Iterable[str], reason: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in names:
        figures |= {name: None, f"{name}_reason": reason}
    return figures
