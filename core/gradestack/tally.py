"""The figures every run has, whatever its graders: counts by state, averages, pass rates; per grader and per model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from gradestack.api import Profile
from gradestack.exact import Partials, add_exact, exact_mean, merge_exact
from gradestack.gate import SampleRule, passes
from gradestack.model import JSON, Grade, Outcome


class Count(TypedDict):
    """JSON state of one grader's figures."""

    states: dict[str, int]
    sum: Partials
    passed: int


Tally = dict[str, dict[str, Count]]
"""Model (JSON text: a name, or null) -> grader key -> figures."""


def _new() -> Count:
    return {"states": {str(outcome): 0 for outcome in Outcome}, "sum": [], "passed": 0}


def add(tally: Tally, model: str, grades: Mapping[str, Grade], gate: SampleRule | None) -> None:
    """Count the grades of one sample, in place."""
    counts = tally.get(model)
    if counts is None:
        counts = tally[model] = {key: _new() for key in grades}
    for key, grade in grades.items():
        count = counts[key]
        count["states"][grade.outcome] += 1
        if grade.score is not None:
            add_exact(count["sum"], grade.score)
            count["passed"] += passes(gate, grade.score)


def _merge_count(left: Count, right: Count) -> None:
    for state, number in right["states"].items():
        left["states"][state] += number
    merge_exact(left["sum"], right["sum"])
    left["passed"] += right["passed"]


def merge(left: Tally, right: Tally) -> Tally:
    """Add ``right`` to ``left`` in place and return ``left``; models keep the order of their first sample."""
    for model, counts in right.items():
        mine = left.setdefault(model, {})
        for key, count in counts.items():
            _merge_count(mine.setdefault(key, _new()), count)
    return left


def overall(tally: Tally, keys: list[str]) -> dict[str, Count]:
    """Return the figures over all models, per grader key."""
    total = {key: _new() for key in keys}
    for counts in tally.values():
        for key, count in counts.items():
            _merge_count(total[key], count)
    return total


def figures(count: Count, profile: Profile) -> dict[str, JSON]:
    """Return one grader's figures.

    ``avg_score_attempted = sum(scores) / attempted``; ``avg_score_total = sum(scores) / total``;
    ``pass_rate = 100 x passed / attempted``. Attempted means graded: skipped, failed and missing samples are in the
    total only. 0/0 is None in ``documented`` and 0.0 in ``upstream``.
    """
    total, attempted = sum(count["states"].values()), count["states"][Outcome.GRADED]
    nothing = 0.0 if profile == "upstream" else None
    mean = exact_mean(count["sum"], attempted)
    over_all = exact_mean(count["sum"], total)
    return {
        "total": total,
        "total_attempted": attempted,
        "avg_score_attempted": nothing if mean is None else mean,
        "avg_score_total": nothing if over_all is None else over_all,
        "passed_attempts": count["passed"],
        "failed_attempts": attempted - count["passed"],
        "pass_rate": 100.0 * count["passed"] / attempted if attempted else nothing,
    }
