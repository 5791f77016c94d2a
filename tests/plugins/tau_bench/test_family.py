"""The family's components keep the contracts, and work together through the kernel."""

from __future__ import annotations

import json

import pytest

from gradestack import testing
from gradestack_plugins import tau_bench
from gradestack_plugins.tau_bench.aggregators import Binary, PartialStatistics
from gradestack_plugins.tau_bench.grader import TauPartial, TauReward
from gradestack_plugins.tau_bench.reader import TauBench
from gradestack_plugins.tau_bench.reliability import PassAtK, PassHatK

COMPONENTS = {f"{component.kind} {component.name}": component for component in tau_bench.gradestack_components()}


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_are_sound(name):
    """Every component loads, is documented and has plain options."""
    testing.check_component(COMPONENTS[name])


def test_components_are_complete():
    """The family offers what its page describes."""
    assert set(COMPONENTS) == {
        "reader tau_bench",
        "grader tau_partial",
        "grader tau_reward",
        "aggregator binary",
        "aggregator partial_statistics",
        "aggregator pass_hat_k",
        "aggregator pass_at_k",
        "exporter tau_bench",
        "panel reliability",
        "stack tau-bench",
    }


@pytest.mark.parametrize(
    "grader",
    [TauPartial(), TauPartial(profile="upstream", no_expected="skip"), TauReward(), TauReward(profile="upstream")],
)
def test_graders_keep_the_contract(tau, grader):
    """Graders are deterministic, pure, frugal and never raise."""
    own = [
        tau.record([("a", {"x": 1})], [tau.call("a", {"x": 2})], reward=1.0),
        tau.record([("a", {"x": float("nan")})], [tau.call(None, "[]")]),
        tau.record(info=None, reward=None),
        tau.record(info={"error": "x"}, traj=[]),
        tau.record([], []),
    ]
    testing.check_grader(grader, [tau.sample(record) for record in own])


@pytest.mark.parametrize("aggregator", [Binary(), PartialStatistics(), PassHatK(), PassHatK(trials="task"), PassAtK()])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_aggregators_keep_the_laws(aggregator, seed):
    """Merging is associative and exact over grades of every kind."""
    testing.check_aggregator(aggregator, seed=seed)


def test_reader_keeps_the_contract(tau, tmp_path):
    """The reader is repeatable and sound on broken files."""
    path, scratch = tmp_path / "r.json", tmp_path / "scratch"
    scratch.mkdir()
    path.write_text(json.dumps([tau.record(), tau.record([("a", {})], [tau.call("a")], task_id="b")], indent=2))
    testing.check_reader(TauBench(), path, scratch=scratch)


def test_stack():
    """The stack grades partially first, so that this is the headline, then by the reward."""
    from gradestack_plugins.tau_bench import stack

    assert list(stack()["graders"].items()) == [
        ("partial", {"kind": "tau_partial"}),
        ("reward", {"kind": "tau_reward"}),
    ]
    assert TauPartial.aggregators == ("mean", "partial_statistics")
    assert TauReward.aggregators == ("mean", "binary", "pass_hat_k", "pass_at_k")
