"""The package as its author tests it: the conformance kit, and what its figures mean."""

from importlib.metadata import version

import pytest
from gradestack_shout import gradestack_components
from gradestack_shout.aggregate import Loudest
from gradestack_shout.grader import Shout

from gradestack import Sample, discover, grade, testing


@pytest.mark.parametrize("component", gradestack_components(), ids=lambda component: component.name)
def test_components_are_what_they_say(component):
    """Each is found by its name, in this distribution, and is a class of its kind."""
    testing.check_component(component)
    _, plugin = discover().find(component.kind, component.name)
    assert (plugin.distribution, plugin.version) == ("gradestack-shout", version("gradestack-shout"))


def test_the_grader_keeps_its_contract():
    """It is pure, reads only what it says it needs, and stands hostile samples."""
    testing.check_grader(Shout())
    testing.check_grader(Shout(limit=0.0))


def test_the_aggregator_keeps_the_laws():
    """Any split of the grades comes to the same."""
    testing.check_aggregator(Loudest())


@pytest.mark.parametrize(("text", "score", "passed"), [("all", 0.0, False), ("ALl", 2 / 3, True), ("ALL!", 1.0, True)])
def test_the_score_is_the_share_of_capitals(text, score, passed):
    """Among letters only; from the limit on it passes."""
    found = Shout().grade(Sample(id="a", text=text))
    assert (found.score, found.passed) == (score, passed)


def test_it_is_graded_by_name():
    """Its grader and both aggregators, over samples in memory; a sample without letters is skipped."""
    samples = [
        {"id": "calm", "predicted": "well"},
        {"id": "loud", "predicted": "WELL"},
        {"id": "mute", "predicted": "!"},
    ]
    with grade(samples, graders=["shout"]) as report:
        assert report.states["shout"] == {"graded": 2, "skipped": 1, "failed": 0, "missing": 0}
        assert report.aggregates["shout"]["loudest"] == {"id": "loud", "score": 1.0}
        assert report.metrics["avg_score_attempted"] == 0.5
