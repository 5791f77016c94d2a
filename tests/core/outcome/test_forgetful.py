"""Metrics whose merge forgets samples are left out by name, as those that raise are."""

import attrs
import pytest

import gradestack
from gradestack import Aggregator

SAMPLES = [{"id": f"t{number}", "predicted": "x", "facets": {"n": number}} for number in range(10)]


def half(sample):
    return sample.facets["n"] / 10


class Counts(Aggregator):
    """How many samples each score has."""

    forgets = ""

    def start(self):
        return {}

    def add(self, state, key, grade):
        name = str(grade.score > 0.4)
        return {**state, name: state.get(name, 0) + 1}

    def merge(self, left, right):
        if self.forgets == "right":
            return left
        if self.forgets == "left":
            return right
        if self.forgets == "alike":
            return {**left, **right}
        return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}

    def finish(self, state):
        return {"n": sum(state.values()), **state}


@attrs.frozen(kw_only=True)
class Forgetful(Counts):
    forgets: str = ""


class Shares(Counts):
    """Adds up floats as they come, so that its sums depend on where they are cut."""

    def start(self):
        return {"sum": 0.0}

    def add(self, state, key, grade):
        return {"sum": state["sum"] + grade.score / 3}

    def merge(self, left, right):
        return {"sum": left["sum"] + right["sum"]}

    def finish(self, state):
        return dict(state)


@pytest.fixture
def graded(toys, monkeypatch):
    """Return a function that grades samples with one of these metrics beside the usual ones."""
    for kind in (Forgetful, Shares):
        monkeypatch.setattr(toys, kind.__name__, kind, raising=False)
    made = [toys.component("aggregator", kind.__name__.lower(), kind.__name__) for kind in (Forgetful, Shares)]
    using = toys.make_registry(*made)

    def grade(metric, samples=SAMPLES, **more):
        return gradestack.grade(samples, half, metrics={"m": metric}, registry=using, **more)

    return grade


@pytest.mark.parametrize("forgets", ["left", "right", "alike"])
@pytest.mark.parametrize("place", [None, "out"])
def test_a_merge_that_forgets_samples_is_found(tmp_path, graded, forgets, place):
    """Its metric is left out with a warning that names it and whose it is; the other figures stand."""
    report = graded({"kind": "forgetful", "forgets": forgets}, output=place and tmp_path / place)
    said = report.summary["broken"]["half/m"]
    assert said.startswith("its merge forgets samples: of the first 10, put together from two parts,")
    assert report.aggregates["half"]["m"] == {"error": said}
    assert report.summary["warnings"] == [f"half/m (forgetful of local 0) is broken and left out: {said}"]
    assert report.exit_code == 4
    assert report.metrics["avg_score_total"] == 0.45


@pytest.mark.parametrize("metric", ["forgetful", "shares"])
def test_a_merge_that_remembers_all_is_left_in(graded, metric):
    """Also where it rounds otherwise for being cut."""
    report = graded(metric)
    assert "broken" not in report.summary
    assert report.aggregates["half"]["m"]


def test_one_sample_is_enough(graded):
    """A merge with nothing must not lose it either."""
    report = graded({"kind": "forgetful", "forgets": "right"}, SAMPLES[:1])
    assert "half/m" in report.summary["broken"]
