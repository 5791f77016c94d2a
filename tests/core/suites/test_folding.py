"""Figures of grades at hand."""

import pytest

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
    computed = figures(
        {"mean": {"confidence": 0.9}, "k": {"kind": "pass_at_k"}, "pass_hat_k": {"trials": 1}},
        rows,
    )
    mean = computed["mean"]["mean"]
    assert mean == 0.75
    clusters = computed["mean"]["clusters"]
    assert clusters == 3
    mean_interval = computed["mean"]["mean_interval"]
    confidence = mean_interval["confidence"]
    assert confidence == 0.9
    pass_at_k = computed["k"]["pass_at_k"]
    assert pass_at_k["1"] == pytest.approx(2.5 / 3)
    trials = computed["pass_hat_k"]["trials"]
    assert trials == 1


@pytest.mark.parametrize(("metrics", "rows", "message"), DATA["what_cannot_be_folded_is_refused"])
def test_what_cannot_be_folded_is_refused(metrics, rows, message):
    with pytest.raises(ConfigError) as caught:
        figures(metrics, rows)
    problems = caught.value.problems
    expected = " ".join([str(caught.value), *problems])
    assert message in expected
