"""Outcomes of runs, and their headline."""

from types import SimpleNamespace

import pytest

from gradestack import DataError
from gradestack.outcome.runs import has_enough, statistics
from gradestack.outcome.summary import headline_figures
from gradestack.suites.spec import Figure, Headline
from tests.core.outcomes import data


@pytest.mark.parametrize(
    ("rule", "passed", "runs", "expected"),
    [
        ("majority", 2, 4, False),
        ("majority", 3, 4, True),
        ("any", 0, 4, False),
        ("all", 4, 4, True),
        (1, 1, 4, True),
    ],
)
def test_the_rule(rule, passed, runs, expected):
    """A majority is more than half."""
    assert has_enough(rule, passed, runs) is expected


def test_runs_without_a_figure_are_left_out_of_the_mean():
    metrics = [
        {"avg_score_attempted": value, "avg_score_total": 0.1, "by_metric": {}}
        for value in (None, 0.1, 0.1)
    ]
    stats = statistics(metrics, [None, None, None])
    assert stats["avg_score_attempted"] == {"mean": 0.1, "std": 0.0, "min": 0.1, "max": 0.1}
    nothing = statistics(metrics[:1], [None])
    assert nothing["avg_score_attempted"] == {"mean": None, "std": None, "min": None, "max": None}


def test_runs_may_have_names_that_are_nearly_numbers(run_lines, record):
    with pytest.raises(DataError, match="the recording holds 2: "):
        run_lines([record("a", 1.0, run=name) for name in ("²", "9" * 5000)], num_runs=1)


HEADLINE = data(__file__, "headline.yaml")


@pytest.mark.parametrize(("metric", "name", "entry"), HEADLINE["figures"])
def test_a_figure_is_found_or_it_is_said_why_not(metric, name, entry):
    figure = Figure(label="It", grader="g", metric=metric, name=name)
    headline = Headline(figures=(figure,))
    suite = SimpleNamespace(headline=headline)
    (figure_row,) = headline_figures(
        suite, {"g": HEADLINE["metrics"]}, {"g": {"avg_score_attempted": 0.25}}
    )
    expected = {
        "label": "It",
        "figure": ".".join(filter(None, ("g", metric, name))),
        **entry,
    }
    assert figure_row == expected
