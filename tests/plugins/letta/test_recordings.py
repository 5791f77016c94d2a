"""The choice of the metric a grader takes; the rest is in sessions of the command line."""

import pytest

import gradestack


def test_scores_of_samples_in_memory_are_decided_on_alike():
    samples = [{"id": "a", "predicted": "x", "recorded": {"speed": 0.5, "taste": 1, "note": "n"}}]
    with pytest.raises(gradestack.ConfigError) as caught:
        gradestack.grade(samples, "recorded")
    problems = str(caught.value.problems)
    assert "name one with `metric`: speed, taste" in problems
    avg_score_attempted = gradestack.grade(samples, {"taste": "recorded"}).metrics[
        "avg_score_attempted"
    ]
    assert avg_score_attempted == 1.0
