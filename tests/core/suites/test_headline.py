"""The outcome grader and the headline of a suite."""

from __future__ import annotations

import pytest

from gradestack import Component, ConfigError, discover, hookimpl
from gradestack.python_api import load_suite
from tests.core.outcomes import read


def stack_of(fragment):
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
        data = {"target": {"paths": [str(tmp_path / "runs.jsonl")]}, **content}
        return load_suite(data, registry=registry)

    return load


def outcome_of(found):
    return None if found.success is None else (found.success.grader, found.success.rule)


def test_the_first_grader_decides_where_nothing_else_does(suite):
    """Whatever a gate that is not of a letta-evals suite compares; its rule says nothing of success."""
    graders = {"first": "exact_match", "second": "contains"}
    found = suite(graders=graders, gate={"metric_key": "second", "op": "gte", "value": 0.5})
    assert (outcome_of(found), found.main) == (("first", None), "second")
    assert [figure.path for figure in found.headline.figures] == ["first.mean.mean"]


def test_a_suite_names_its_outcome(suite):
    graders = {"first": "exact_match", "second": "contains"}
    assert outcome_of(suite(graders=graders, outcome="second")) == ("second", None)
    assert outcome_of(suite(graders=graders, outcome="none")) is None
    assert outcome_of(suite(graders={"none": "contains", **graders}, outcome="none")) == ("none", None)
    with pytest.raises(ConfigError, match=r"outcome: no grader has the key 'secnd' \(did you mean 'second'\?\)"):
        suite(graders=graders, outcome="secnd")


def test_in_a_letta_suite_the_gate_decides(suite):
    """Graders of ``kind: tool`` and a flat gate: its grader, by its rule for one score."""
    graders = {"first": "exact_match", "second": {"kind": "tool", "function": "contains"}}
    gate = {"metric_key": "second", "op": "gte", "value": 0.5}
    found = suite(graders=graders, gate=gate)
    assert outcome_of(found) == ("second", found.gates[0])
    assert found.headline.letta
    assert outcome_of(suite(graders=graders, gate={**gate, "kind": "simple"})) == ("first", None)
    without = suite(graders=graders)
    assert (outcome_of(without), without.headline.letta) == (("first", None), True)
    assert outcome_of(suite(graders=graders, gates=[gate])) == ("first", None)
    assert outcome_of(suite(graders=graders, gate=gate, outcome="first")) == ("first", None)


def test_a_named_stack_declares_outcome_and_figures(suite):
    """A figure of an aggregator that is not in use is left out; words are the grader's; the suite's own win."""
    registry = stack_of(FRAGMENT)
    found = suite(registry, stack="theirs")
    assert outcome_of(found) == ("b", None)
    assert (found.headline.passed, found.headline.failed) == ("passed", "not passed")
    assert [(figure.label, figure.path) for figure in found.headline.figures] == [("Contained", "b.mean")]
    changed = suite(registry, stack="theirs", headline={"figures": {"Mine": "a.mean.stderr"}, "passed": "yes"})
    assert (changed.headline.passed, changed.headline.failed) == ("yes", "not passed")
    assert [figure.path for figure in changed.headline.figures] == ["a.mean.stderr"]
    worded = stack_of({**FRAGMENT, "headline": {"passed": "found"}})
    with pytest.raises(ConfigError, match="theirs: headline: words for a verdict are the grader's"):
        suite(worded, stack="theirs")


def test_a_stack_decides_for_the_graders_that_are_in_use(suite):
    """Under the key they have in the suite; a stack none of whose graders is in use declares nothing."""
    registry = stack_of(FRAGMENT)
    replaced = suite(registry, stack="theirs", graders={"b": {"kind": "regex_match"}})
    assert (outcome_of(replaced), replaced.headline.figures[0].path) == (("b", None), "b.mean")
    other = suite(graders={"mine": "exact_match"})
    assert (outcome_of(other), other.headline.passed) == (("mine", None), "exact match")
    own = suite(graders={"mine": "tool_success"})  # the format's own stack has this grader under another key
    assert (outcome_of(own), own.headline.passed) == (("mine", None), "without failed calls")
    assert [figure.label for figure in own.headline.figures] == ["Successful calls"]


def test_a_stack_may_have_no_outcome(suite):
    registry = stack_of({**FRAGMENT, "outcome": "none"})
    assert outcome_of(suite(registry, stack="theirs")) is None
    assert outcome_of(suite(registry, stack="theirs", outcome="a")) == ("a", None)


def test_a_broken_headline_of_a_stack_is_told(suite):
    registry = stack_of({**FRAGMENT, "headline": {"figurs": {}}})
    with pytest.raises(ConfigError, match=r"theirs: headline\.figurs: unknown key"):
        suite(registry, stack="theirs")


def test_success_is_counted_and_written_into_rows(run_lines, record):
    """One verdict in row and summary: the outcome grader's own, else a full score; null where it did not grade."""
    records = [record("a", 1.0), record("b", 0.5), record("c", 0.9), record("d", recorded={"do": "skip"})]
    report = run_lines(records, graders={"toy": "toy"}, gate={"op": "gte", "value": 0.5})
    assert [row["passed"] for row in report.rows()] == [True, False, False, None]
    summary = read(report)
    interval = summary["outcome"].pop("share_interval")
    assert (interval["clusters"], interval["n"], interval["method"]) == (3, 3, "logit_t")
    assert interval["low"] < 1 / 3 < interval["high"]
    assert summary["outcome"] == {
        "grader": "toy",
        "rule": "toy score >= 1",
        "words": {"passed": "passed", "failed": "not passed"},
        "passed": 1,
        "failed": 2,
        "share": 1 / 3,
        "per_model": None,
    }
    assert (summary["metrics"]["passed_attempts"], summary["pass_rule"]) == (3, "toy score >= 0.5")
    assert "(successes)" not in str(summary)
    assert not [each for each in read(report, "header.json")["components"] if each["key"] == "(successes)"]


def test_without_an_outcome_no_row_passes_or_fails(run_lines, record):
    report = run_lines([record("a", 1.0), record("b", 0.5)], graders={"toy": "toy"}, outcome="none")
    assert [row["passed"] for row in report.rows()] == [None, None]
    assert read(report)["outcome"] is None


def test_words_are_the_outcome_graders_and_only_of_its_own_verdict(suite):
    """A gate's rule for one score in a letta-evals suite is not the verdict that the words are about."""
    graders = {"first": {"kind": "tool", "function": "contains"}, "second": "exact_match"}
    gate = {"metric_key": "second", "op": "gte", "value": 0.5}
    assert suite(graders=graders, gate=gate).headline.passed == "passed"
    assert suite(graders=graders, gate=gate, outcome="second").headline.passed == "exact match"
    assert outcome_of(suite(graders={"usage": "usage", "text": "exact_match"})) == ("text", None)
