"""The classification aggregator, against numbers derived by hand and an independent slow
calculation.
"""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Grade, Item, Outcome, figures
from tests.core.outcomes import at, data

LABELS = ("a", "b", "c")


def graded(gold, label, **more):
    return Grade(score=float(gold == label), gold=gold, label=label, **more)


def metrics(grades, **options):
    return figures(
        {"classification": options}, [(n, None, None, grade) for n, grade in enumerate(grades)]
    )["classification"]


def scored(kind, given):
    outcome = Outcome(given.get("outcome", "graded"))
    score = float(given.get("gold") == given.get("label")) if outcome is Outcome.GRADED else None
    more = (
        {"items": tuple(scored(Item, item) for item in given["items"])} if "items" in given else {}
    )
    fields = {name: value for name, value in given.items() if name != "times"}
    return kind(**{**fields, "outcome": outcome, "score": score, **more})


def without_intervals(found):
    if not isinstance(found, dict):
        return found
    return {
        name: without_intervals(value)
        for name, value in found.items()
        if not name.endswith("_interval")
    }


@pytest.mark.parametrize("case", data(__file__, "classification.yaml"))
def test_figures(case):
    grades = [
        scored(Grade, each) for given in case["grades"] for each in [given] * given.get("times", 1)
    ]
    found = without_intervals(metrics(grades, **case.get("options", {})))
    assert {path: at(found, path) for path in case["is"]} == case["is"]
    assert not found.keys() & set(case.get("absent", ()))


def slow(grades, labels):
    """Metrics of a label set as exact fractions, straight from the definitions."""
    wanted = [grade for grade in grades if grade.gold in labels]
    found = {
        "accuracy": Fraction(sum(each.gold == each.label for each in wanted), len(wanted))
        if wanted
        else None
    }
    scores = {}
    for label in labels:
        hits = sum(each.gold == each.label == label for each in wanted)
        predicted = sum(each.label == label for each in wanted)
        support = sum(each.gold == label for each in wanted)
        precision = Fraction(hits, predicted) if predicted else None
        recall = Fraction(hits, support) if support else None
        f1 = Fraction(2 * hits, predicted + support) if predicted + support else None
        scores[label] = (precision, recall, f1)
    found["scores"] = scores
    found["macro_f1"] = sum((f1 or Fraction(0) for _, _, f1 in scores.values()), Fraction(0)) / len(
        labels
    )
    return found


grades_of = st.lists(
    st.builds(
        graded, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["a", "b", "c", "?", None])
    ),
    max_size=40,
)


@given(grades_of)
def test_matrix_totals_equal_n_and_metrics_equal_the_slow_calculation(grades):
    found = metrics(grades, labels=LABELS)
    matrix = found["confusion_matrix"]
    assert sum(map(sum, (row.values() for row in matrix.values()))) == found["n"]
    assert found["n"] + found["n_unknown_gold"] == len(grades)
    expected = slow(grades, LABELS)
    assert (found["accuracy"] is None) == (expected["accuracy"] is None)
    assert found["accuracy"] is None or abs(found["accuracy"] - expected["accuracy"]) < 1e-12
    assert abs(found["macro_f1"] - expected["macro_f1"]) < 1e-12
    for label, scores in expected["scores"].items():
        own = found["per_class"][label]
        assert own["support"] == sum(matrix[label].values())
        for name, value in zip(("precision", "recall", "f1"), scores, strict=True):
            assert (own[name] is None) == (value is None)
            assert value is None or (0 <= own[name] <= 1 and abs(own[name] - value) < 1e-12)


@given(grades_of, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(grades, random):
    shuffled = list(grades)
    random.shuffle(shuffled)
    assert json.dumps(metrics(grades, labels=LABELS)) == json.dumps(
        metrics(shuffled, labels=LABELS)
    )
