"""Whatever judges goes by the direction a grader declares: words, counts of tasks and trials, leaderboard and gates."""

import json
from typing import ClassVar

import pytest

import gradestack
from gradestack import Grade, Grader, compare, load_report

FEW = {str(task): [0.0, 0.0] for task in range(20)}
MANY = {str(task): [1.0, 1.0 if task < 15 else 0.0] for task in range(20)}


def grader(better, verdict=None):
    class Recorded(Grader):
        def grade(self, sample):
            score = sample.recorded["score"]
            return Grade(score=score, passed=None if verdict is None else verdict(score))

    Recorded.better = better
    return Recorded


def graded(out, scores, of, *, gate=None, models=None):
    samples = [
        {"id": task, "run": run, "recorded": {"score": score}, **({"model": model} if model else {})}
        for model, tasks in (models or {None: scores}).items()
        for task, runs in tasks.items()
        for run, score in enumerate(runs)
    ]
    gradestack.grade(samples, {"g": of}, gate=gate, output=out)
    return out


@pytest.mark.parametrize(
    ("better", "word", "flips", "tasks", "outcome"),
    [
        ("higher", "better", (35, 0), (20, 0), "better"),
        ("lower", "worse", (0, 35), (0, 20), "worse"),
        ("neither", "higher", (0, 0), (None, None), None),
    ],
)
def test_a_rise_is_judged_by_the_direction(tmp_path, command, better, word, flips, tasks, outcome):
    a, b = (graded(tmp_path / name, scores, grader(better)) for name, scores in (("a", FEW), ("b", MANY)))
    data = compare(a, b, output=tmp_path / "out").data
    assert data["metrics"]["g"]["verdict"] == word
    assert (data["metrics"]["g"]["better"], data["metrics"]["g"]["worse"]) == tasks
    assert (data["flips"]["fixed"], data["flips"]["broken"]) == flips
    assert data["outcome"]["verdict"] == (outcome or data["outcome"]["verdict"])
    assert f"b is {word} than a on g by 0.875" in data["sentence"]
    assert json.loads((tmp_path / "out" / "comparison.json").read_text()) == data
    said = command("compare", str(a), str(b)).out
    assert f"  {word}  " in said
    assert ("35 trials fixed, 0 broken" in said, "0 trials fixed, 35 broken" in said) == (
        better == "higher",
        better == "lower",
    )
    for page in ("comparison.html", "comparison.md"):
        assert word in (tmp_path / "out" / page).read_text(encoding="utf-8")


def test_tasks_that_changed_alike_are_listed_losing_ones_first(tmp_path):
    scores = {"fell": [0.0], "rose": [1.0], "same": [1.0]}
    before = {"fell": [1.0], "rose": [0.0], "same": [1.0]}
    for better, first in (("higher", "fell"), ("lower", "rose")):
        runs = [graded(tmp_path / f"{better}{n}", each, grader(better)) for n, each in enumerate((before, scores))]
        assert compare(*runs).data["flips"]["tasks"][0]["task"] == first


def test_a_verdict_of_its_own_decides_whatever_the_direction(tmp_path):
    of = grader("lower", verdict=lambda score: score < 0.75)
    half = {task: [0.5, 0.5] for task in FEW}
    a, b, c = (graded(tmp_path / name, each, of) for name, each in (("a", FEW), ("b", half), ("c", MANY)))
    assert compare(a, b).data["flips"]["broken"] == 0
    assert compare(a, c).data["flips"]["broken"] == 35


def test_a_leaderboard_has_the_lowest_first_where_lower_is_better(tmp_path):
    models = {"many": MANY, "few": FEW, "more": {task: [1.0, 1.0] for task in FEW}}
    for better, order in (("higher", ["more", "many", "few"]), ("lower", ["few", "many", "more"])):
        board = compare(graded(tmp_path / better, None, grader(better), models=models)).data["groups"]
        assert [each["name"].rpartition("::")[2] for each in board] == order
        assert board[0 if better == "lower" else 2]["ranks"] == ([1, 1] if better == "lower" else [3, 3])


@pytest.mark.parametrize(
    ("better", "flips", "margin"),
    [("higher", "passed", "passed"), ("lower", "failed", "failed"), ("neither", "undecided", "passed")],
)
def test_gates_go_by_the_direction(tmp_path, better, flips, margin):
    before = graded(tmp_path / "before", FEW, grader(better))
    for name, rule, outcome in (("flips", {"max_flips": 0}, flips), ("margin", {"not_worse_than": 0.05}, margin)):
        gate = {"metric_key": "g", "baseline": str(before), **rule}
        graded(tmp_path / name, MANY, grader(better), gate=gate)
        assert load_report(tmp_path / name).gates[0]["outcome"] == outcome


@pytest.mark.parametrize(
    ("better", "passed", "rule"),
    [("higher", 35, "g score >= 1"), ("lower", 5, "g score <= 0"), ("neither", 0, "verdict of g")],
)
def test_a_run_counts_successes_by_the_direction(tmp_path, better, passed, rule):
    report = load_report(graded(tmp_path / "run", MANY, grader(better)))
    assert (report.summary["outcome"]["passed"], report.summary["outcome"]["rule"]) == (passed, rule)
    assert sum(row["passed"] is True for row in report.rows()) == passed


class Failing(Grader):
    """Fails of tasks whose score is negative."""

    better: ClassVar = "lower"

    def grade(self, sample):
        if sample.recorded["score"] < 0:
            msg = "broken"
            raise ValueError(msg)
        return Grade(score=sample.recorded["score"])


def test_crashing_more_does_not_win_where_lower_is_better(tmp_path):
    """A failed trial counts as the worst share there is."""
    a = graded(tmp_path / "a", {"1": [0.5], "2": [0.5]}, Failing)
    b = graded(tmp_path / "b", {"1": [-1.0], "2": [0.5]}, Failing)
    metric = compare(a, b).data["metrics"]["g"]
    assert (metric["difference"], metric["worse"]) == (0.25, 1)
