"""Figures of grades at hand."""

import pytest

import gradestack
from gradestack import ConfigError, Grade, figures
from tests.core.outcomes import data

DATA = data(__file__, "folding.yaml")


def test_aggregators_fold_rows_of_task_run_model_and_grade():
    rows = [
        ("a", 0, "m", Grade(score=1.0)),
        {"task": "a", "run": 1, "model": "m", "grade": 0.0},
        ("b", 0, "m", 1.0),
        (7, 1, "m", 1),
    ]
    found = figures(
        {"mean": {"confidence": 0.9}, "k": {"kind": "pass_at_k"}, "pass_hat_k": {"trials": "task"}},
        rows,
    )
    assert (found["mean"]["mean"], found["mean"]["clusters"]) == (0.75, 3)
    assert found["mean"]["mean_interval"]["confidence"] == 0.9
    assert found["k"]["pass_at_k"]["1"] == pytest.approx(2.5 / 3)
    assert found["pass_hat_k"]["rule"] == "task"


def test_they_are_those_of_a_run():
    samples = [
        {"id": task, "run": run, "expected": "x", "predicted": "x" if task == "a" else "y"}
        for task in "ab"
        for run in (0, 1)
    ]
    report = gradestack.grade(
        samples, graders={"g": {"kind": "exact_match"}}, metrics={"mean": {"of": "g"}}
    )
    rows = [(task, run, None, float(task == "a")) for task in "ab" for run in (0, 1)]
    assert figures({"mean": {}}, rows)["mean"] == report.aggregates["g"]["mean"]


@pytest.mark.parametrize(("metrics", "rows", "said"), DATA["what_cannot_be_folded_is_refused"])
def test_what_cannot_be_folded_is_refused(metrics, rows, said):
    with pytest.raises(ConfigError) as caught:
        figures(metrics, rows)
    assert said in " ".join([str(caught.value), *caught.value.problems])
