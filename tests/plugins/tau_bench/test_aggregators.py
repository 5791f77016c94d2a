"""Aggregators ``binary`` and ``partial_statistics``."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from gradestack import Fault, Grade, Item, Key, Outcome, failed, skipped
from gradestack_plugins.tau_bench.aggregators import BANDS, Binary, PartialStatistics, band_index
from tests.core.outcomes import data

DATA = data(__file__, "aggregators.yaml")

FAILED = failed(Fault(category="data", code="x"))
SKIPPED = skipped("x", "y")
MISSING = Grade(outcome=Outcome.MISSING)


def graded(score, reward=None, similarities=(), counts=None):
    items = tuple(Item(id=str(i), parts={"argument_similarity": s}) for i, s in enumerate(similarities))
    return Grade(score=score, parts={} if reward is None else {"reward": reward}, items=items, counts=counts or {})


def test_binary(tau):
    """Successes are scores above the threshold; failed and missing grades count over the total, skipped ones do not."""
    out = tau.fold(Binary(), [graded(1.0), graded(0.9), graded(0.91), graded(0.0), FAILED, MISSING, SKIPPED])
    assert without_intervals(out) == {
        "threshold": 0.9,
        "successes": 2,
        "n": 4,
        "total": 7,
        "success_rate": 0.5,
        "success_rate_over_total": 2 / 6,
        "average": float((1 + Fraction(0.9) + Fraction(0.91)) / 4),
        "average_over_total": float((1 + Fraction(0.9) + Fraction(0.91)) / 6),
    }


def without_intervals(figures):
    return {name: value for name, value in figures.items() if not name.endswith("_interval")}


def test_rates_and_averages_have_intervals(tau):
    """By task, of the samples they divide by; a task without any has no part, and scores beyond 1 make no share."""
    keys = [Key(id=task, run=number % 2, ordinal=number) for number, task in enumerate("aabbcd")]
    counts = {"expected_calls": 2, "called": 1, "made_calls": 1}
    grades = [graded(1.0, 1.0, [0.5], counts), graded(0.0), graded(1.0, 0.0), graded(1.0), FAILED, SKIPPED]
    rates = tau.fold(Binary(), zip(keys, grades, strict=True))
    parts = {name: rates[f"{name}_interval"] for name in ("success_rate", "success_rate_over_total", "average")}
    assert [(each["n"], each["clusters"]) for each in parts.values()] == [(4, 2), (5, 3), (4, 2)]
    assert parts["success_rate"]["low"] < rates["success_rate"] < parts["success_rate"]["high"]
    partial = tau.fold(PartialStatistics(confidence=0.9), zip(keys, grades, strict=True))
    assert partial["average_interval"]["confidence"] == 0.9
    assert (partial["binary"]["average_interval"]["n"], partial["binary"]["average_interval"]["clusters"]) == (2, 2)
    assert partial["tool_selection_accuracy_interval"] == {"reason": "one task"}
    beyond = tau.fold(Binary(), zip(keys[:4], [graded(1.5), *grades[1:4]], strict=True))
    assert [beyond[f"{name}_interval"]["method"] for name in ("success_rate", "average")] == ["logit_t", "t"]


def test_binary_threshold(tau):
    """Another threshold gives other successes; one that is not finite is refused."""
    assert tau.fold(Binary(threshold=0.5), [graded(0.5), graded(0.6)])["successes"] == 1
    with pytest.raises(ValueError, match="threshold"):
        Binary(threshold=math.inf)


def test_binary_of_nothing(tau):
    """Without graded samples the rates are undefined, with the reason; over the total as well."""
    out = tau.fold(Binary(), [])
    assert (out["success_rate"], out["average"], out["average_over_total"]) == (None, None, None)
    assert out["success_rate_reason"] == "no sample was graded"
    assert out["average_over_total_reason"] == "no sample was graded"
    assert out["average_interval"] == {"reason": "no sample was graded"}
    failed = tau.fold(Binary(), [FAILED])
    assert (failed["average_over_total"], failed["average_over_total_interval"]) == (None, out["average_interval"])


def test_partial_statistics_figures(tau):
    """Average, range, histogram, binary block, accuracy and precision, over graded samples."""
    counts = {"expected_calls": 2, "called": 1, "made_calls": 5}
    grades = [graded(0.25, 0.0, [0.5], counts), graded(1.0, 1.0, [1.0, 0.75], counts), graded(0.5), FAILED, SKIPPED]
    out = tau.fold(PartialStatistics(), grades)
    assert (out["n"], out["total"], out["failed"]) == (3, 5, 1)
    assert (out["average"], out["min"], out["max"]) == (float(Fraction(7, 12)), 0.25, 1.0)
    assert out["average_over_total"] == 1.75 / 4
    binary = without_intervals(out["binary"])
    assert binary == {"threshold": 0.9, "n": 2, "successes": 1, "success_rate": 0.5, "average": 0.5}
    assert (out["expected_calls"], out["called"], out["made_calls"]) == (4, 2, 10)
    assert (out["tool_selection_accuracy"], out["argument_precision"]) == (0.5, 0.75)


@pytest.mark.parametrize(("score", "place"), [*DATA["histogram_bins"], (math.nextafter(1, 0), 4)])
def test_histogram_bins(tau, score, place):
    """Lower bounds belong to the bin; 1.0 has its own; scores outside go to the ends."""
    bins = tau.fold(PartialStatistics(), [graded(score)])["histogram"]
    assert [entry["count"] for entry in bins] == [int(index == place) for index in range(6)]
    assert [(entry["lower"], entry["upper"]) for entry in bins] == [
        (0.0, 0.2),
        (0.2, 0.4),
        (0.4, 0.6),
        (0.6, 0.8),
        (0.8, 1.0),
        (1.0, 1.0),
    ]
    assert bins[place]["share"] == 1.0


def test_interesting_cases(tau):
    """Both lists take strict bounds, count all and name the first three in input order."""
    keys = [Key(id=str(number), run=0, ordinal=number) for number in range(9)]
    grades = [
        graded(0.71, 0.0),
        graded(0.7, 0.0),
        graded(1.0, 0.1),
        graded(1.0, 0.0),
        graded(0.9, 0.05),
        graded(0.8, 0.0),
        graded(0.79, 1.0),
        graded(0.8, 1.0),
        graded(0.0, 0.9),
    ]
    out = tau.fold(PartialStatistics(), zip(keys, grades, strict=True))
    assert out["binary_fail_high_partial"] == data(__file__, "aggregators.yaml")["interesting_cases"]
    assert out["binary_success_low_partial"] == {"total": 1, "first": [{"id": "6", "run": 0, "score": 0.79}]}


def test_undefined_figures_are_null_with_a_reason(tau):
    """Nothing to divide by: null, and why."""
    out = tau.fold(PartialStatistics(), [graded(1.0)])
    assert (out["tool_selection_accuracy"], out["argument_precision"]) == (None, None)
    assert out["tool_selection_accuracy_reason"] == "no call is expected in any graded sample"
    assert out["argument_precision_reason"] == "no expected tool was called"
    assert out["binary"]["average"] is None
    assert out["binary"]["average_reason"] == "no graded sample has a recorded reward"
    empty = tau.fold(PartialStatistics(), [])
    assert (empty["average"], empty["min"], empty["max"]) == (None, None, None)
    assert [entry["share"] for entry in empty["histogram"]] == [None] * 6
    assert "average_reason" not in tau.fold(PartialStatistics(), [graded(1.0)])


def test_parts_that_are_not_finite_are_left_out(tau):
    """A reward or similarity of another grader that is no finite number is ignored."""
    out = tau.fold(PartialStatistics(), [graded(1.0, math.nan, [math.inf, 0.5])])
    assert (out["binary"]["n"], out["argument_precision"]) == (0, 0.5)


def test_bands():
    """Lower bounds belong to the band, 1.0 is its own band, and the aggregator counts samples per band."""
    labels = {score: BANDS[band_index(score)].label for score in (1.0, 0.95, 0.9, 0.4, 0.39, 0.0, -1.0)}
    assert labels == {
        1.0: "perfect",
        0.95: "near miss",
        0.9: "near miss",
        0.4: "partial success",
        0.39: "wrong approach",
        0.0: "wrong approach",
        -1.0: "wrong approach",
    }


def test_bands_are_shown_as_interpretation(tau):
    """The bands come with the figures, best first, each with its words and number of samples."""
    bands = tau.fold(PartialStatistics(), [graded(0.95), graded(0.0), graded(0.1)])["interpretation"]["bands"]
    assert [(band["lower"], band["upper"], band["samples"]) for band in bands] == [
        (1.0, 1.0, 0),
        (0.9, 1.0, 1),
        (0.4, 0.9, 0),
        (0.0, 0.4, 2),
    ]
    assert bands[1]["text"].startswith("near miss: ")
