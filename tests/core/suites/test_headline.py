"""The outcome grader and the headline of a suite."""

import pytest

from gradestack import Component, ConfigError, discover, hookimpl
from gradestack.python_api import load_suite


def stack_of(fragment):
    """Return a registry whose plugin offers a stack of this fragment."""

    class Plugin:
        @hookimpl
        def gradestack_components(self):
            target = "tests.core.suites.test_headline:made"
            return (Component(kind="stack", name="theirs", target=target, summary="a stack"),)

    made.fragment = fragment
    return discover([("theirs", Plugin())])


def made():
    return made.fragment


FRAGMENT = {
    "graders": {"a": {"kind": "exact_match"}, "b": {"kind": "contains"}},
    "outcome": "b",
    "headline": {"figures": {"Contained": "b.mean", "Gone": "b.never"}},
}


@pytest.fixture
def suite(tmp_path):
    """Return a function that loads a suite over one record in gradestack's own form."""
    (tmp_path / "runs.jsonl").write_text('{"id": "a", "expected": "x", "predicted": "x"}\n')

    def load(registry=None, **content):
        runs_path = tmp_path / "runs.jsonl"
        paths = [str(runs_path)]
        data = {"target": {"paths": paths}, **content}
        return load_suite(data, registry=registry)

    return load


def outcome_of(loaded):
    if loaded.success is None:
        return None
    return (loaded.success.grader, loaded.success.rule)


def test_a_named_stack_declares_outcome_and_figures(suite):
    """A figure of an aggregator that is not in use is left out; words are the grader's.

    The suite's own win.
    """
    registry = stack_of(FRAGMENT)
    loaded = suite(registry, stack="theirs")
    outcome = outcome_of(loaded)
    assert outcome == ("b", None)
    assert loaded.headline.passed == "passed"
    assert loaded.headline.failed == "not passed"
    figures = loaded.headline.figures
    assert [(figure.label, figure.path) for figure in figures] == [("Contained", "b.mean")]
    changed = suite(
        registry, stack="theirs", headline={"figures": {"Mine": "a.mean.stderr"}, "passed": "yes"}
    )
    assert changed.headline.passed == "yes"
    assert changed.headline.failed == "not passed"
    paths = [figure.path for figure in changed.headline.figures]
    assert paths == ["a.mean.stderr"]
    worded = stack_of({**FRAGMENT, "headline": {"passed": "found"}})
    with pytest.raises(ConfigError, match=r"stack\.headline\.passed: unknown key"):
        suite(worded, stack="theirs")


def test_a_stack_decides_for_the_graders_that_are_in_use(suite):
    """Under the key they have in the suite.

    A stack none of whose graders is in use declares nothing.
    """
    registry = stack_of(FRAGMENT)
    replaced = suite(registry, stack="theirs", graders={"b": {"kind": "regex_match"}})
    outcome = outcome_of(replaced)
    assert outcome == ("b", None)
    first_figure = replaced.headline.figures[0]
    assert first_figure.path == "b.mean"
    other = suite(graders={"mine": "exact_match"})
    assert outcome_of(other) == ("mine", None)
    assert other.headline.passed == "exact match"
    loaded = suite(
        graders={"mine": "tool_success"}
    )  # the format's own stack has this grader under another key
    assert outcome_of(loaded) == ("mine", None)
    assert loaded.headline.passed == "without failed calls"
    labels = [figure.label for figure in loaded.headline.figures]
    assert labels == ["Successful calls"]


def test_a_stack_may_have_no_outcome(suite):
    registry = stack_of({**FRAGMENT, "outcome": "none"})
    outcome = outcome_of(suite(registry, stack="theirs"))
    assert outcome is None
    loaded = suite(registry, stack="theirs", outcome="a")
    assert outcome_of(loaded) == ("a", None)


def test_a_broken_headline_of_a_stack_is_told(suite):
    registry = stack_of({**FRAGMENT, "headline": {"figurs": {}}})
    with pytest.raises(ConfigError, match=r"stack\.headline\.figurs: unknown key"):
        suite(registry, stack="theirs")
