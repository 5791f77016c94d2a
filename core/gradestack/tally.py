"""The figures every run has, whatever its graders: counts by state, averages, pass rates; per grader and per model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from gradestack.api import Profile
from gradestack.exact import Partials, exact_mean, merge_exact
from gradestack.exact import add_times as add_exact_times
from gradestack.gate import SampleRule, passes
from gradestack.model import JSON, Grade, Outcome


class Count(TypedDict):
    """JSON state of one grader's figures."""

    states: dict[str, int]
    sum: Partials
    passed: int
    ran: int
    """Samples whose recorded run did not fail, whatever the grade."""
    passed_ran: int
    """Those of them that pass."""


Tally = dict[str, dict[str, Count]]
"""Model (JSON text: a name, or null) -> grader key -> figures."""


def new_count() -> Count:
    """Return the figures of nothing seen."""
    return {"states": {str(outcome): 0 for outcome in Outcome}, "sum": [], "passed": 0, "ran": 0, "passed_ran": 0}


def add(tally: Tally, model: str, grades: Mapping[str, Grade], gate: SampleRule | None, *, ran: bool = True) -> None:
    """Count the grades of one sample, in place; ``ran`` says whether its recorded run did not fail."""
    counts = tally.get(model)
    if counts is None:
        counts = tally[model] = {key: new_count() for key in grades}
    for key, grade in grades.items():
        add_times(counts[key], grade.outcome, grade.score, 1, gate, ran=ran)


def add_times(
    count: Count, outcome: Outcome, score: float | None, times: int, gate: SampleRule | None, *, ran: bool
) -> None:
    """Count grades of one outcome and score, in place."""
    count["states"][outcome] += times
    if ran:
        count["ran"] += times
    if score is not None:
        passed = times if passes(gate, score) else 0
        add_exact_times(count["sum"], score, times)
        count["passed"] += passed
        if ran:
            count["passed_ran"] += passed


def _merge_count(left: Count, right: Count) -> None:
    for state, number in right["states"].items():
        left["states"][state] += number
    merge_exact(left["sum"], right["sum"])
    for name in ("passed", "ran", "passed_ran"):
        left[name] += right[name]


def merge(left: Tally, right: Tally) -> Tally:
    """Add ``right`` to ``left`` in place and return ``left``; models keep the order of their first sample."""
    for model, counts in right.items():
        mine = left.setdefault(model, {})
        for key, count in counts.items():
            _merge_count(mine.setdefault(key, new_count()), count)
    return left


def overall(tally: Tally, keys: list[str]) -> dict[str, Count]:
    """Return the figures over all models, per grader key."""
    total = {key: new_count() for key in keys}
    for counts in tally.values():
        for key, count in counts.items():
            _merge_count(total[key], count)
    return total


def figures(count: Count, profile: Profile) -> dict[str, JSON]:
    """Return one grader's figures.

    ``avg_score_attempted = sum(scores) / attempted``; ``avg_score_total = sum(scores) / total``;
    ``pass_rate = 100 x passed / attempted``. Attempted means graded: skipped, failed and missing samples are in the
    total only. 0/0 is None.

    ``upstream`` follows letta-evals' program (era A): attempted are the samples whose recorded run did not fail, passed
    are those of them that pass, while the average is over the graded ones, failed runs included; 0/0 is 0.0.
    """
    total, graded = sum(count["states"].values()), count["states"][Outcome.GRADED]
    upstream = profile == "upstream"
    attempted, passed = (count["ran"], count["passed_ran"]) if upstream else (graded, count["passed"])
    nothing = 0.0 if upstream else None
    mean = exact_mean(count["sum"], graded)
    over_all = exact_mean(count["sum"], total)
    return {
        "total": total,
        "total_attempted": attempted,
        "avg_score_attempted": nothing if mean is None else mean,
        "avg_score_total": nothing if over_all is None else over_all,
        "passed_attempts": passed,
        "failed_attempts": attempted - passed,
        "pass_rate": 100.0 * passed / attempted if attempted else nothing,
    }
