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
    score = float(gold == label)
    return Grade(score=score, gold=gold, label=label, **more)


def metrics(grades, **options):
    return figures(
        {"classification": options}, [(n, None, None, grade) for n, grade in enumerate(grades)]
    )["classification"]


def scored(kind, given_fields):
    outcome = Outcome(given_fields.get("outcome", "graded"))
    score = None
    if outcome is Outcome.GRADED:
        gold = given_fields.get("gold")
        label = given_fields.get("label")
        score = float(gold == label)
    if "items" in given_fields:
        more = {"items": tuple(scored(Item, item) for item in given_fields["items"])}
    else:
        more = {}
    fields = {name: value for name, value in given_fields.items() if name != "times"}
    return kind(**{**fields, "outcome": outcome, "score": score, **more})


def without_intervals(metrics):
    if not isinstance(metrics, dict):
        return metrics
    without_intervals_by_name = {}
    for name, value in metrics.items():
        if not name.endswith("_interval"):
            without_intervals_by_name[name] = without_intervals(value)
    return without_intervals_by_name


@pytest.mark.parametrize("case", data(__file__, "classification.yaml"))
def test_figures(case):
    grades = []
    for fields in case["grades"]:
        times = fields.get("times", 1)
        for grade_fields in [fields] * times:
            grades.append(scored(Grade, grade_fields))
    options = case.get("options", {})
    figures = without_intervals(metrics(grades, **options))
    paths = case["is"]
    assert {path: at(figures, path) for path in paths} == case["is"]
    absent = set(case.get("absent", ()))
    keys = figures.keys()
    assert not keys & absent


def slow(grades, labels):
    """Metrics of a label set as exact fractions, straight from the definitions."""
    wanted = [grade for grade in grades if grade.gold in labels]
    accuracy = None
    if wanted:
        accuracy = Fraction(sum(counted.gold == counted.label for counted in wanted), len(wanted))
    figures = {"accuracy": accuracy}
    scores = {}
    for label in labels:
        hits = sum(counted.gold == counted.label == label for counted in wanted)
        predicted = sum(counted.label == label for counted in wanted)
        support = sum(counted.gold == label for counted in wanted)
        precision = Fraction(hits, predicted) if predicted else None
        recall = Fraction(hits, support) if support else None
        f1 = None
        if predicted + support:
            f1 = Fraction(2 * hits, predicted + support)
        scores[label] = (precision, recall, f1)
    figures["scores"] = scores
    fraction = Fraction(0)
    count = sum((f1 or Fraction(0) for _, _, f1 in scores.values()), fraction)
    figures["macro_f1"] = count / len(labels)
    return figures


grades_of = st.lists(
    st.builds(
        graded, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["a", "b", "c", "?", None])
    ),
    max_size=40,
)


@given(grades_of)
def test_matrix_totals_equal_n_and_metrics_equal_the_slow_calculation(grades):
    figures = metrics(grades, labels=LABELS)
    matrix = figures["confusion_matrix"]
    rows = matrix.values()
    sums = map(sum, (row.values() for row in rows))
    assert sum(sums) == figures["n"]
    n_unknown_gold = figures["n_unknown_gold"]
    assert figures["n"] + n_unknown_gold == len(grades)
    expected = slow(grades, LABELS)
    accuracy = figures["accuracy"]
    assert (accuracy is None) == (expected["accuracy"] is None)
    assert figures["accuracy"] is None or abs(figures["accuracy"] - expected["accuracy"]) < 1e-12
    size = abs(figures["macro_f1"] - expected["macro_f1"])
    assert size < 1e-12
    for label, scores in expected["scores"].items():
        figures_of_label = figures["per_class"][label]
        assert figures_of_label["support"] == sum(matrix[label].values())
        for name, value in zip(("precision", "recall", "f1"), scores, strict=True):
            assert (figures_of_label[name] is None) == (value is None)
            assert value is None or (
                0 <= figures_of_label[name] <= 1 and abs(figures_of_label[name] - value) < 1e-12
            )


@given(grades_of, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(grades, random):
    shuffled = list(grades)
    random.shuffle(shuffled)
    text = json.dumps(metrics(grades, labels=LABELS))
    expected = json.dumps(metrics(shuffled, labels=LABELS))
    assert text == expected
