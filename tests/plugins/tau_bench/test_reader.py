"""Readers of tau-bench: results, recognition, reference data."""

import json
from pathlib import Path

import pytest

from gradestack import BadRecord, Sample, testing
from gradestack_plugins.statistics.reliability import PassHatK
from gradestack_plugins.tau_bench.aggregators import Binary
from gradestack_plugins.tau_bench.grader import TauReward
from gradestack_plugins.tau_bench.reader import TauBench
from tests.core.outcomes import data

DATA = data(__file__, "reader.yaml")


@pytest.mark.parametrize(
    ("record", "reason"),
    [*DATA["bad_records_are_reported"], ("x" * 500, 'expected an object, found "xxx')],
)
def test_bad_records_are_reported(tau, tmp_path, record, reason):
    """A record without a usable id is a bad record with its place and reason, kept whole.

    The next one is read.
    """
    path = tmp_path / "r.json"
    text = json.dumps([record, tau.record()])
    path.write_text(text)
    bad, good = tau.read(path)
    assert isinstance(bad, BadRecord)
    assert isinstance(good, Sample)
    assert bad.reason.startswith(reason)
    reason_count = len(bad.reason)
    assert reason_count < 150
    assert bad.source.ordinal == 0
    assert bad.native == record


def test_results_go_to_their_calls(tau):
    first = tau.call("a", {}, "i")
    second = tau.call("b", {}, "j")
    third = tau.call("c", {}, "i")

    def tool_result(identifier, text):
        return {"role": "tool", "tool_call_id": identifier, "content": text}

    traj = [
        first,
        second,
        tool_result("j", "B"),
        tool_result("i", "A"),
        third,
        tool_result("i", "C"),
        tool_result("k", "lost"),
    ]
    record = tau.record(traj=traj)
    calls = tau.sample(record).calls
    assert [(call.name, call.result, call.error) for call in calls] == [
        ("a", "A", None),
        ("b", "B", None),
        ("c", "C", None),
    ]


def test_act_and_react_runs(tau):
    """Actions behind the last "Action:" are calls, "API output.

    " messages their results, ``respond`` is speech.
    """
    traj = data(__file__, "reader.yaml")["traj_of_act_and_react_runs"]
    record = tau.record(traj=traj)
    sample = tau.sample(record)
    assert [
        (call.name, dict(call.arguments), call.result, call.error) for call in sample.calls
    ] == [
        ("look", {"id": 1}, "Error: unknown", "Error: unknown"),
        ("act", {}, "done", None),
    ]
    assert sample.text == "All done."


def test_odd_values_survive(tau, tmp_path):
    """NaN, huge integers and lone surrogates are read as the standard library reads them."""
    path = tmp_path / "r.json"
    record = tau.record(reward=10**30)
    text = json.dumps(record).replace('"Do it."', '"\\ud800 \\u0000"').replace('"u"', "NaN")
    path.write_text(f"\ufeff[{text}]", encoding="utf-8")
    (sample,) = tau.read(path)
    assert sample.input == "\ud800 \x00"
    reward = sample.recorded["reward"]
    assert reward == 10**30
    task = sample.native.record["info"]["task"]
    user_id = task["user_id"]
    expected = sample.native.record["info"]["task"]["user_id"]
    assert user_id != expected


HEAD = 64 * 1024


def sniff(value, indent=None):
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, indent=indent)
    return TauBench.sniff(Path("x.json"), text.encode()[:HEAD])


@pytest.mark.parametrize("indent", [None, 2])
def test_result_files_are_recognised(tau, indent):
    error = {
        "task_id": 1,
        "reward": 0.0,
        "info": {"error": "x", "traceback": "}]"},
        "traj": [],
        "trial": 0,
    }
    record = tau.record()
    assert sniff([record], indent) > 0.9
    assert sniff([error, tau.record()], indent) > 0.9
    assert sniff([{"task_id": 1, "reward": 0, "traj": []}], indent) > 0.9


@pytest.mark.parametrize("value", DATA["other_files_are_not"])
def test_other_files_are_not(value):
    """Lists of other records, objects, JSON Lines and garbage are not claimed."""
    assert sniff(value) == 0.0


def test_bad_first_records_do_not_hide_the_format(tau):
    record = tau.record()
    assert sniff([{"x": 1}, [], record]) > 0.9
    assert sniff([{"x": 1}] * 5 + [tau.record()]) == 0.0


@pytest.fixture(scope="module")
def samples(tau, reference_file):
    return tau.read(reference_file)


def test_rewards(tau, samples):
    """84 successes; pass^1 to pass^4 and the successes per task are the published ones."""
    grades = [TauReward().grade(sample) for sample in samples]
    success_rate = tau.fold(Binary(), grades, samples)["success_rate"]
    assert success_rate == 0.42
    out = tau.fold(PassHatK(), grades, samples)
    expected = {"1": 0.42, "2": 41 / 150, "3": 0.22, "4": 0.2}
    assert out["pass_hat_k"] == expected
    assert out["tasks_by_successes"] == {"0": 14, "1": 12, "2": 10, "3": 4, "4": 10}


def test_reader_keeps_the_contract(tau, tmp_path):
    path = tmp_path / "r.json"
    record = tau.record()
    text = json.dumps([record, tau.record([("a", {})], [tau.call("a")], task_id="b")], indent=2)
    path.write_text(text)
    testing.check_reader(TauBench(), path, scratch=tmp_path)
