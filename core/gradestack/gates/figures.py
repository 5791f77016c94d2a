"""The figures of every grader, from what was counted: averages, pass rates."""

from __future__ import annotations

from gradestack.api import Profile
from gradestack.grading.counts import Count
from gradestack.model import JSON


def grader_figures(count: Count, profile: Profile) -> dict[str, JSON]:
    """Return one grader's figures.

    ``avg_score_attempted = sum(scores) / attempted``; ``avg_score_total = sum(scores) / (graded + failed + missing)``;
    ``pass_rate = 100 x passed / attempted``. Attempted means graded. Skipped samples, to which the grader does not
    apply, are outside all of these; ``total`` alone counts them. Without a graded sample each is None.

    ``upstream`` follows letta-evals' program (era A): attempted are the samples whose recorded run did not fail, passed
    are those of them that pass, the average is over the graded ones, failed runs included, or over all; 0/0 is 0.0.
    """
    total, graded = sum(count.states.values()), count.graded
    upstream = profile == "upstream"
    attempted, passed = (count.ran, count.passed_ran) if upstream else (graded, count.passed)
    nothing = 0.0 if upstream else None
    mean = over_all = nothing
    if graded:
        mean = float(count.sum / graded)
        over_all = float(count.sum / (total if upstream else graded + count.lost))
    return {
        "total": total,
        "total_attempted": attempted,
        "avg_score_attempted": mean,
        "avg_score_total": over_all,
        "passed_attempts": passed,
        "failed_attempts": attempted - passed,
        "pass_rate": 100.0 * passed / attempted if attempted else nothing,
    }
