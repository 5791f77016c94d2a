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

    ``avg_score_attempted = sum(scores) / attempted``; ``avg_score_total = sum(scores) / (graded + failed + missing)``;
    ``pass_rate = 100 x passed / attempted``. Attempted means graded. Skipped samples, to which the grader does not
    apply, are outside all of these; ``total`` alone counts them. Without a graded sample each is None.

    ``upstream`` follows letta-evals' program (era A): attempted are the samples whose recorded run did not fail, passed
    are those of them that pass, the average is over the graded ones, failed runs included, or over all; 0/0 is 0.0.
    """
    states = count["states"]
    total, graded = sum(states.values()), states[Outcome.GRADED]
    upstream = profile == "upstream"
    attempted, passed = (count["ran"], count["passed_ran"]) if upstream else (graded, count["passed"])
    nothing = 0.0 if upstream else None
    mean = over_all = nothing
    if graded:
        mean = exact_mean(count["sum"], graded)
        over_all = exact_mean(count["sum"], total if upstream else graded + ungraded(states))
    return {
        "total": total,
        "total_attempted": attempted,
        "avg_score_attempted": mean,
        "avg_score_total": over_all,
        "passed_attempts": passed,
        "failed_attempts": attempted - passed,
        "pass_rate": 100.0 * passed / attempted if attempted else nothing,
    }


def ungraded(states: Mapping[str, int]) -> int:
    """Return how many samples a grader applies to and has no score for: those that failed or are missing."""
    return states[Outcome.FAILED] + states[Outcome.MISSING]
