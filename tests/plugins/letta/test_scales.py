"""Recorded scores of two scales are not averaged: the scale is asked for, and holds."""

import pytest

import gradestack
from gradestack import ConfigError

SCORES = [85, 0.2, 90]


def graded(scale=None):
    samples = []
    for number, score in enumerate(SCORES):
        samples.append({"id": str(number), "predicted": "x", "recorded": {"score": score}})
    grader = {"kind": "recorded", "metric": "score"}
    recorded = grader | ({"scale": scale} if scale else {})
    return gradestack.grade(samples, {"recorded": recorded})


def test_the_scale_is_asked_for():
    with pytest.raises(ConfigError, match=r"85 beside 0\.2") as caught:
        graded()
    assert "recorded.scale=" in str(caught.value)


@pytest.mark.parametrize(("scale", "failed"), [([0, 1], 2), ([0, 100], 0)])
def test_a_score_outside_its_scale_is_a_failed_grade(scale, failed):
    states = graded(scale).states["recorded"]
    assert states["graded"] == 3 - failed
    assert states["failed"] == failed
