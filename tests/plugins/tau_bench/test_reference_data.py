"""Figures of the field's gpt-4o airline run; skipped unless GRADESTACK_REFERENCE_DATA names the data."""

from __future__ import annotations

import json

import pytest

from gradestack_plugins.tau_bench.__main__ import main
from gradestack_plugins.tau_bench.aggregators import Binary, PartialStatistics
from gradestack_plugins.tau_bench.grader import TauPartial, TauReward
from gradestack_plugins.tau_bench.reader import TauBench
from gradestack_plugins.tau_bench.reliability import PassHatK

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


@pytest.fixture(scope="module")
def samples(tau, reference_file):
    return tau.read(reference_file)


def test_the_file_is_recognised(reference_file):
    """The first 64 KiB are enough."""
    assert TauBench.sniff(reference_file, reference_file.read_bytes()[: 64 * 1024]) > 0.9


def test_shape(samples):
    """Two hundred records, 1,164 calls, 632 expected calls, 28 records that expect nothing, 5 cut off."""
    assert len(samples) == 200
    assert sum(len(sample.calls) for sample in samples) == 1164
    assert sum(len(sample.expected.calls) for sample in samples) == 632
    assert sum(not sample.expected.calls for sample in samples) == 28
    assert sum(sample.recorded["judged"] is False for sample in samples) == 5


@PROFILES
def test_partial_scores(tau, samples, profile):
    """Average, histogram, binary figures and lists are the published ones; every score is the independent scorer's."""
    grades = [TauPartial(profile=profile).grade(sample) for sample in samples]
    assert [grade.score for grade in grades] == [tau.ref_score(sample.native.record) for sample in samples]
    out = tau.fold(PartialStatistics(), grades, samples)
    assert abs(out["average"] - 0.59634117965368) < 1e-12
    assert (out["min"], out["max"]) == (0.0, 1.0)
    assert [entry["count"] for entry in out["histogram"]] == [53, 8, 24, 20, 44, 51]
    assert (out["binary"]["successes"], out["binary"]["n"], out["binary"]["average"]) == (84, 200, 0.42)
    high, low = out["binary_fail_high_partial"], out["binary_success_low_partial"]
    assert (high["total"], low["total"]) == (65, 43)
    assert [(case["id"], f"{case['score']:.2f}") for case in high["first"]] == [
        ("0", "0.95"),
        ("2", "0.77"),
        ("7", "0.93"),
    ]
    assert [(case["id"], case["score"]) for case in low["first"]] == [("12", 0.0), ("18", 0.0), ("24", 0.0)]


def test_without_records_that_expect_nothing(tau, samples):
    """Leaving out the 28 records that expect nothing gives the average 0.6818."""
    grades = [TauPartial(no_expected="skip").grade(sample) for sample in samples]
    out = tau.fold(PartialStatistics(), grades, samples)
    assert (out["n"], round(out["average"], 4)) == (172, 0.6818)


@PROFILES
def test_rewards(tau, samples, profile):
    """84 successes; pass^1 to pass^4 and the successes per task are the published ones."""
    grades = [TauReward(profile=profile).grade(sample) for sample in samples]
    assert tau.fold(Binary(), grades, samples)["success_rate"] == 0.42
    out = tau.fold(PassHatK(), grades, samples)
    assert out["pass_hat_k"] == {"1": 0.42, "2": 41 / 150, "3": 0.22, "4": 0.2}
    assert out["tasks_by_successes"] == {"0": 14, "1": 12, "2": 10, "3": 4, "4": 10}
    assert tau.fold(PassHatK(trials="task"), grades, samples)["pass_hat_k"] == out["pass_hat_k"]


def test_script(tau, reference_file, tmp_path, capsys):
    """The script's output file is the standard library's text of the scored records; the block shows the figures."""
    target = tmp_path / "out.json"
    assert main([str(reference_file), "-o", str(target)]) == 0
    records = json.loads(reference_file.read_bytes())
    scored = [record | {"partial_score": tau.ref_score(record)} for record in records]
    assert target.read_text() == json.dumps(scored, indent=2)
    out = capsys.readouterr().out
    assert "Success rate: 84/200 (42.0%)\n  Average: 0.420\n\nPartial Scoring:\n  Average: 0.596\n" in out
    assert "  [0.8-1.0):  44 tasks ( 22.0%)\n  [1.0]:  51 tasks ( 25.5%)\n" in out
    assert "  Binary fail but partial > 0.7: 65 tasks\n    Task 0: partial=0.95\n" in out
