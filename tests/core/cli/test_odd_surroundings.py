"""Errors without a text, scores that cannot be compared, terminals without Unicode: the grader is
named and loses its own grade, and the run goes on.
"""

import os
import subprocess
import sys

import pytest

import gradestack
from gradestack import ConfigError, Grade
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
    return Grade(score=Incomparable(0.5) if sample.id == "a" else 1.0)


@pytest.mark.parametrize("grader", [raise_silently, score_oddly])
def test_only_its_own_grade_is_lost(grader):
    report = gradestack.grade(SAMPLES, {"odd": grader, "exact_match": "exact_match"})
    assert report.states["odd"]["graded"] >= 1
    assert report.states["exact_match"]["graded"] == 2


def test_an_error_without_a_text_says_so():
    assert error_text(SilentError()).startswith("SilentError: (its text cannot be written")


def test_a_terminal_that_knows_ascii_alone(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"id": "\\u017c", "predicted": "x", "expected": "x"}\n')
    command = [sys.executable, "-m", "gradestack.cli", "grade", "r.jsonl", "-o", "out"]
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **plain}, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_no_samples_at_all_are_no_limit(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"id": "a", "predicted": "x", "expected": "x"}\n')
    suite = {"name": "s", "target": {"paths": [str(path)]}, "max_samples": 0}
    with pytest.raises(ConfigError, match="max_samples"):
        gradestack.load_suite(suite)
