"""The share of trials that passed stands first in a comparison."""

import pytest

import gradestack
from gradestack.comparison.lines import lines


def graded(right, out):
    samples = [
        {"id": f"t{task}", "run": run, "expected": "x", "predicted": "x" if run < right(task) else "y"}
        for task in range(20)
        for run in range(2)
    ]
    return gradestack.grade(samples, graders={"exact": "exact_match"}, output=out)


@pytest.fixture
def data(tmp_path):
    """Return the comparison of a run that passes half of its trials with one that passes all of some tasks."""
    before, after = graded(lambda task: 1, tmp_path / "a"), graded(lambda task: 2 if task < 15 else 0, tmp_path / "b")
    return gradestack.compare(before, after).data


def test_the_outcome_is_compared_by_task(data):
    rate = data["outcome"]
    assert (rate["grader"], rate["a"], rate["b"], rate["difference"]) == ("exact", 0.5, 0.75, 0.25)
    assert (rate["better"], rate["worse"], rate["same"], rate["tasks"]) == (15, 5, 0, 20)
    assert rate["p_holm"] == rate["p"] < 0.05
    assert rate["verdict"] == "better"


def test_it_stands_first_on_the_console(data):
    text = lines(data)
    rows = [line for line in text if "difference" in line and line.startswith("  ")]
    assert rows[0].startswith("  The right text (exact)")
    assert "better" in rows[0]
