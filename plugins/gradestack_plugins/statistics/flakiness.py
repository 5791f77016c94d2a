"""Aggregator ``flakiness``: tasks that pass sometimes, and the worth of runs of one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

import attrs
from typing_extensions import override

from gradestack import JSON, Figure, Grade, Grades, Numbers, ratio
from gradestack_plugins.statistics.mean import IntervalAggregator

Tasks = Mapping[tuple[int, int], int]
"""Runs and passes -> how many tasks have them."""


_of_runs = partial(Figure, divisor="runs", undefined="one run", optional=True, pooled=False)
_FLAKY = "tasks of which some runs pass and some do not / tasks with several runs"
_VARIANCE = "mean over tasks of c (k - c) / (k (k - 1))"
_ICC = "(MSB - MSW) / (MSB + (n0 - 1) MSW)"


@attrs.frozen(kw_only=True)
class Flakiness(IntervalAggregator):
    """Differences between a task's runs, over pass or fail (the grader's verdict, else a score from
    ``threshold`` on).

    With c passes in the k runs of a task, over tasks with two runs and more:

    - a task is ``flaky`` when 0 < c < k; ``flaky_share`` with its interval; ``always`` and
      ``never`` the others
    - ``within_variance`` = mean of c (k - c) / (k (k - 1))
    - ``icc`` = (MSB - MSW) / (MSB + (n0 - 1) MSW), from the one-way analysis of variance of runs by
      task. It says how much alike runs of one task are; n0 is the mean number of runs, less their
      spread where they differ
    - ``design_effect`` = 1 + (runs per task - 1) icc, and ``worth`` = runs / design_effect: so many
      independent samples

    All null with one run a task. All but ``worth``, which grows with the number of tasks, have
    intervals. With several models, ``models`` has these figures for each. ``saturated`` counts the
    tasks that every model always or never passes: they cannot tell models apart.
    """

    figures = (
        _of_runs("flaky_share", "Flaky tasks", "lower", "share", _FLAKY),
        _of_runs(
            "within_variance",
            "Variance within tasks",
            "lower",
            "score",
            _VARIANCE,
            least=0.0,
            most=0.5,
        ),
        _of_runs("icc", "Intra-class correlation", "neither", "score", _ICC, least=-1.0, most=1.0),
        _of_runs(
            "design_effect",
            "Design effect",
            "neither",
            "score",
            "1 + (runs per task - 1) icc",
            least=0.0,
        ),
        _of_runs("worth", "Independent samples", "higher", "count", "runs / design effect"),
    )

    threshold: float = 1.0
    """Score from which a run passes, where its grader has no verdict of its own."""

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        if grade.passed is None:
            passed = grade.score >= self.threshold
        else:
            passed = grade.passed
        return {"runs": 1, "passes": int(passed)}

    @override
    def task_contribution(self, sums: Mapping[str, float]) -> Numbers | None:
        runs, passes = _runs_and_passes(sums)
        if runs < 2:
            return None
        within = passes * (runs - passes) / runs
        flaky = int(0 < passes < runs)
        between = passes * passes / runs
        variance = within / (runs - 1)
        squared = runs * runs
        return {
            "runs": runs,
            "several": 1,
            "flaky": flaky,
            "squared": squared,
            "passes": passes,
            "between": between,
            "within": within,
            "variance": variance,
        }

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        runs = totals["runs"]
        several = totals["several"]
        icc = _correlation(totals) if several > 1 else None
        if icc is None:
            effect = None
        else:
            effect = 1 + (runs / several - 1) * icc
        flaky_share = ratio(totals["flaky"], several)
        within_variance = ratio(totals["variance"], several)
        worth = runs / effect if effect else None
        return {
            "flaky_share": flaky_share,
            "within_variance": within_variance,
            "icc": icc,
            "design_effect": effect,
            "worth": worth,
        }

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        models: dict[str, Counter[tuple[int, int]]] = {model: Counter() for model in grades.models}
        always = never = every = 0
        for parts, times in grades.tasks_by_model().items():
            tasks = {model: _runs_and_passes(dict(numbers)) for model, numbers in parts}
            for model, task in tasks.items():
                models[model][task] += times
            every += times
            always += times * all(runs == passes for runs, passes in tasks.values())
            never += times * all(passes == 0 for _, passes in tasks.values())
        saturated: JSON = {"always": always, "never": never, "of": every}
        figures = {model: _counts(tasks) for model, tasks in models.items() if tasks}
        if len(figures) > 1:
            return {"saturated": saturated, "models": {**figures}}
        counts = _counts({})
        figure = next(iter(figures.values()), counts)
        return {"saturated": saturated, **figure}


def _correlation(totals: Mapping[str, float]) -> float | None:
    """Return the intra-class correlation of several tasks."""
    runs = totals["runs"]
    several = totals["several"]
    passes = totals["passes"]
    between = totals["between"]
    within = totals["within"]
    squared = totals["squared"]
    mean_between = (between - passes**2 / runs) / (several - 1)
    mean_within = within / (runs - several)
    mean_runs = (runs - squared / runs) / (several - 1)
    spread = mean_between + (mean_runs - 1) * mean_within
    return (mean_between - mean_within) / spread if spread else None


def _counts(tasks: Tasks) -> dict[str, JSON]:
    """Return the numbers of tasks and runs of a model."""
    times_by_task = {task: times for task, times in tasks.items() if task[0] > 1}
    several = Counter(times_by_task)
    always = Counter({task: times for task, times in several.items() if task[0] == task[1]})
    never = Counter({task: times for task, times in several.items() if not task[1]})
    total_tasks = sum(tasks.values())
    total = several.total()
    return {
        "tasks": total_tasks,
        "tasks_with_several_runs": total,
        "always": always.total(),
        "never": never.total(),
        "flaky": (several - always - never).total(),
        "runs": sum(runs * times for (runs, _), times in several.items()),
        "worth_interval": {"reason": "it grows with the tasks" if several else "one run"},
    }


def _runs_and_passes(numbers: Mapping[str, float]) -> tuple[int, int]:
    number = int(numbers.get("passes", 0))
    return int(numbers["runs"]), number
