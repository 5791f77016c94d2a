"""The figures of a headline, found among what aggregators return."""

import pytest

from gradestack.outcome.headline import headline_figures
from gradestack.suites.spec import Figure, Headline

METRICS = {
    "count": {"rate": 0.5, "rate_interval": {"low": 0.25, "high": 0.75, "confidence": 0.9}, "a.b": {"c.d": 2}},
    "mean": {"mean": 0.5, "ci95": [0.25, 0.75]},
    "one": {"mean": None, "ci95": None},
    "pass_hat_k": {"pass_hat_k": {"1": 0.5, "2": 0.25}, "trials": 2},
    "at": {"at": {"1": 0.5, "2": 0.25}, "at_interval": {"1": {"low": 0.25, "high": 0.75}, "2": {"reason": "one task"}}},
    "why": {"beside": None, "beside_reason": "no case", "below": {"x": None}, "undefined": {"below.x": "nothing"}},
    "broken": {"error": "ValueError: no"},
    "words": {"words": "text", "flag": True, "empty": {}, "list": [1]},
    "models": {"rate": None, "undefined": {"rate": "several"}, "models": {"m": {"rate": 0.5}, "n": {}}},
}


class Suite:
    def __init__(self, metric, name):
        self.headline = Headline(figures=(Figure(label="It", grader="g", metric=metric, name=name),))


def entry(metric, name=""):
    (found,) = headline_figures(Suite(metric, name), {"g": METRICS}, {"g": {"avg_score_attempted": 0.25}})
    assert found.pop("label") == "It"
    assert found.pop("figure") == ".".join(filter(None, ("g", metric, name)))
    return found


def test_a_figure_comes_with_its_interval():
    """The one beside it; that of a mean is called after its confidence."""
    interval = {"low": 0.25, "high": 0.75, "confidence": 0.9}
    assert entry("count", "rate") == {"value": 0.5, "interval": interval}
    assert entry("mean") == entry("mean", "mean") == {"value": 0.5, "interval": interval | {"confidence": 0.95}}
    assert entry("one", "mean") == {"value": None, "reason": "not defined"}


def test_a_figure_inside_a_map_has_its_interval_of_the_map_beside_it():
    """Named alone it is that one's, or why there is none; of the whole map all are given."""
    assert entry("at", "1") == {"value": 0.5, "interval": {"low": 0.25, "high": 0.75}}
    assert entry("at", "at.2") == {"value": 0.25, "interval": {"reason": "one task"}}
    assert entry("at")["interval"].keys() == {"1", "2"}


def test_keys_may_have_dots_and_what_is_named_twice_need_not_be():
    """The longest key that fits is followed."""
    assert entry("count", "a.b.c.d") == {"value": 2}
    assert entry("pass_hat_k") == entry("pass_hat_k", "pass_hat_k") == {"value": {"1": 0.5, "2": 0.25}}
    assert entry("pass_hat_k", "2") == entry("pass_hat_k", "pass_hat_k.2") == {"value": 0.25}


def test_every_grader_has_an_average():
    assert entry("", "avg_score_attempted") == {"value": 0.25}


def test_an_undefined_figure_says_why():
    assert entry("why", "beside") == {"value": None, "reason": "no case"}
    assert entry("why", "below.x") == {"value": None, "reason": "nothing"}


@pytest.mark.parametrize("name", ["", "rates", "rate.x", "words", "flag", "empty", "list"])
def test_what_is_no_figure_is_said_to_be_none(name):
    for metric in ("count", "words"):
        assert entry(metric, name) == {"value": None, "reason": f"{metric} has no figure {name or metric!r}"}


def test_a_broken_aggregator_says_so():
    assert entry("broken", "rate") == {"value": None, "reason": "ValueError: no"}


def test_figures_of_several_models_stand_beside_each_other():
    assert entry("models", "rate") == {
        "value": None,
        "reason": "several",
        "models": {"m": {"value": 0.5}, "n": {"value": None, "reason": "models has no figure 'rate'"}},
    }
