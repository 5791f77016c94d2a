"""Errors without a text, scores that cannot be compared, terminals without Unicode: the grader is
named and loses its own grade, and the run goes on.
"""

import pytest

import gradestack
from gradestack import Grade
from gradestack.errors import error_text

SAMPLES = [{"id": name, "predicted": "x", "expected": "x"} for name in ("a", "b")]


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Incomparable(float):
    def __le__(self, other):
        raise KeyError("no comparison")

    __ge__ = __lt__ = __gt__ = __le__


def raise_silently(sample):
    if sample.id == "a":
        raise SilentError
    return 1.0


def score_oddly(sample):
    score = 1.0
    if sample.id == "a":
        score = Incomparable(0.5)
    return Grade(score=score)


@pytest.mark.parametrize("grader", [raise_silently, score_oddly])
def test_only_its_own_grade_is_lost(grader):
    report = gradestack.grade(SAMPLES, {"odd": grader, "exact_match": "exact_match"})
    graded = report.states["odd"]["graded"]
    assert graded >= 1
    exact_match = report.states["exact_match"]
    assert exact_match["graded"] == 2


def test_an_error_without_a_text_says_so():
    assert error_text(SilentError()).startswith("SilentError: (its text cannot be written")
