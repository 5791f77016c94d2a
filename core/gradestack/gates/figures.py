"""The figures of every grader, from what was counted: averages, pass rates."""

from __future__ import annotations

from collections.abc import Mapping

from gradestack.api import Profile
from gradestack.exact import exact_mean
from gradestack.grading.counts import Count, SampleRule, Tally, add_count, add_times, new_count
from gradestack.model import JSON, Grade, Outcome


def count_grades(
    tally: Tally, model: str, grades: Mapping[str, Grade], gate: SampleRule | None, *, ran: bool = True
) -> None:
    """Count the grades of one sample, in place; ``ran`` says whether its recorded run did not fail."""
    counts = tally.get(model)
    if counts is None:
        counts = tally[model] = {key: new_count() for key in grades}
    for key, grade in grades.items():
        add_times(counts[key], grade.outcome, grade.score, 1, gate, ran=ran)


def overall(tally: Tally, keys: list[str]) -> dict[str, Count]:
    """Return the figures over all models, per grader key."""
    total = {key: new_count() for key in keys}
    for counts in tally.values():
        for key, count in counts.items():
            add_count(total[key], count)
    return total


def grader_figures(count: Count, profile: Profile) -> dict[str, JSON]:
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
