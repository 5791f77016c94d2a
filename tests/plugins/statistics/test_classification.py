"""The classification aggregator, against numbers derived by hand and an independent slow calculation."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Grade, Item, Key, Outcome, figures, skipped, testing
from gradestack_plugins.statistics.classification import Classification

LABELS = ("a", "b", "c")


def graded(gold, label, **more):
    return Grade(score=float(gold == label), gold=gold, label=label, **more)


def metrics(grades, **options):
    return figures({"classification": options}, [(n, None, None, each) for n, each in enumerate(grades)])[
        "classification"
    ]


def scores(metrics, label):
    """Return a class's figures without their intervals."""
    return {name: each for name, each in metrics["per_class"][label].items() if not name.endswith("_interval")}


def pairs(*counts):
    return [graded(gold, label) for gold, label, number in counts for _ in range(number)]


def slow(grades, labels):
    """Metrics of a label set as exact fractions, straight from the definitions."""
    wanted = [each for each in grades if each.gold in labels]
    found = {"accuracy": Fraction(sum(each.gold == each.label for each in wanted), len(wanted)) if wanted else None}
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
    found["macro_f1"] = sum((f1 or Fraction(0) for _, _, f1 in scores.values()), Fraction(0)) / len(labels)
    return found


def test_metrics_of_a_small_matrix_are_those_worked_out_by_hand():
    found = metrics(pairs(("a", "a", 3), ("a", "b", 1), ("b", "b", 2), ("b", "c", 1), ("c", "a", 2)), labels=LABELS)
    assert found["n"] == 9
    assert found["n_correct"] == 5
    assert found["accuracy"] == 5 / 9
    a, b, c = (scores(found, label) for label in LABELS)
    assert a == {"precision": 3 / 5, "recall": 3 / 4, "f1": pytest.approx(2 / 3), "support": 4, "predicted": 5}
    assert b == {"precision": 2 / 3, "recall": 2 / 3, "f1": pytest.approx(2 / 3), "support": 3, "predicted": 3}
    assert c == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2, "predicted": 1}
    assert found["macro_f1"] == pytest.approx(4 / 9)
    assert found["confusion_matrix"] == {
        "a": {"a": 3, "b": 1, "c": 0, "invalid": 0},
        "b": {"a": 0, "b": 2, "c": 1, "invalid": 0},
        "c": {"a": 2, "b": 0, "c": 0, "invalid": 0},
    }


def test_rows_are_gold_and_columns_are_predictions():
    found = metrics([graded("a", "b")], labels=("a", "b"), profile="upstream")
    assert found["confusion_matrix"] == {"a": {"a": 0, "b": 1}, "b": {"a": 0, "b": 0}}


def test_macro_f1_divides_by_the_whole_label_set():
    perfect = pairs(("a", "a", 4), ("b", "b", 4))
    assert metrics(perfect, labels=("a", "b"))["macro_f1"] == 1.0
    assert metrics(perfect, labels=("a", "b", "c", "d"))["macro_f1"] == 0.5


def test_excluded_labels_leave_the_mean_but_not_the_matrix():
    grades = pairs(("b", "b", 1), ("b", "a", 1), ("c", "c", 2))
    found = metrics(grades, labels=LABELS, exclude=("a",))
    assert found["macro_f1_no_a"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["macro_f1"] == pytest.approx((0 + 2 / 3 + 1) / 3)
    assert found["per_class"]["a"]["f1"] == 0.0


def test_excluding_everything_is_undefined_in_documented_and_zero_upstream():
    options = {"labels": ("a", "b"), "exclude": ("a", "b")}
    assert metrics([graded("a", "a")], **options)["macro_f1_no_a_b"] is None
    assert metrics([graded("a", "a")], **options, profile="upstream")["macro_f1_no_a_b"] == 0.0


def test_a_prediction_outside_the_label_set_is_a_predicted_only_column():
    """Unknown and absent labels are wrong everywhere: they cost recall, never precision."""
    found = metrics([graded("a", "a"), graded("a", "?"), graded("a", None), graded("b", "b")], labels=("a", "b"))
    assert found["confusion_matrix"] == {"a": {"a": 1, "b": 0, "invalid": 2}, "b": {"a": 0, "b": 1, "invalid": 0}}
    assert found["n_invalid"] == 2
    assert found["per_class"]["a"]["precision"] == 1.0
    assert found["per_class"]["a"]["recall"] == 1 / 3
    assert "invalid" not in found["per_class"]
    assert found["accuracy"] == 0.5


def test_undefined_values_are_null_with_a_reason_in_documented():
    found = metrics([], labels=("a", "b"))
    assert found["n"] == 0
    assert found["accuracy"] is None
    assert found["undefined"]["accuracy"] == "nothing was graded"
    assert found["per_class"]["a"]["precision"] is found["per_class"]["a"]["f1"] is None
    assert found["undefined"]["per_class.a.precision"] == "never predicted"
    assert found["macro_f1"] == 0.0


def test_undefined_values_are_zero_upstream():
    found = metrics([], labels=("a", "b"), profile="upstream")
    assert found["accuracy"] == 0.0
    assert scores(found, "a") == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0, "predicted": 0}
    assert "undefined" not in found


def test_f1_of_a_class_that_is_only_gold_or_only_predicted_is_zero():
    found = metrics([graded("a", "b")], labels=LABELS)
    assert scores(found, "a") == {"precision": None, "recall": 0.0, "f1": 0.0, "support": 1, "predicted": 0}
    assert scores(found, "b") == {"precision": 0.0, "recall": None, "f1": 0.0, "support": 0, "predicted": 1}
    assert found["per_class"]["c"]["f1"] is None


def test_ungraded_samples_stand_beside_n():
    grades = [
        graded("a", "a"),
        skipped("x", "y"),
        Grade(outcome=Outcome.FAILED),
        Grade(outcome=Outcome.MISSING, gold="a"),
        Grade(score=1.0, label="a"),
        graded("other", "a"),
    ]
    found = metrics(grades, labels=("a", "b"))
    assert found["n"] == 1
    names = ("n_skipped", "n_failed", "n_missing", "n_no_gold", "n_unknown_gold")
    assert [found[name] for name in names] == [1, 1, 1, 1, 1]


def test_coerced_and_dropped_predictions_count_as_invalid():
    grades = [
        graded("a", "a", counts={"converted": 1}),
        graded("a", "a", counts={"converted": 1, "missing": 1}),
        Grade(outcome=Outcome.SKIPPED, gold="a", counts={"dropped": 1}),
        graded("a", "?"),
    ]
    found = metrics(grades, labels=("a", "b"))
    assert (found["n_invalid"], found["n_converted"], found["n_missing"]) == (4, 2, 1)


def test_without_a_label_set_the_labels_seen_count():
    """Labels are those of gold and predictions, sorted; an invalid prediction is none of them."""
    found = metrics([graded("y", "x"), graded("x", "invalid"), graded("z", "z")])
    assert found["labels"] == ["x", "y", "z"]
    assert found["confusion_matrix"]["x"] == {"x": 0, "y": 0, "z": 0, "invalid": 1}


@pytest.mark.parametrize("options", [{}, {"labels": ("invalid", "x")}])
def test_a_class_called_invalid_is_a_class(options):
    grades = [graded("invalid", "invalid"), graded("invalid", "x"), graded("x", None), graded("x", "x")]
    found = metrics(grades, **options)
    assert found["labels"] == ["invalid", "x"]
    assert found["confusion_matrix"] == {
        "invalid": {"invalid": 1, "x": 1, "(invalid)": 0},
        "x": {"invalid": 0, "x": 1, "(invalid)": 1},
    }
    assert (found["n"], found["n_correct"], found["accuracy"], found["n_invalid"]) == (4, 2, 0.5, 1)
    assert found["per_class"]["invalid"]["recall"] == 0.5


def test_grades_may_declare_the_label_set():
    """A declared label set keeps its order and its excluded labels; the option wins over it."""
    declared = {"label_set": {"labels": ["z", "a"], "exclude": ["z"]}}
    grades = [graded("a", "a", metadata=declared)]
    assert metrics(grades)["labels"] == ["z", "a"]
    assert metrics(grades)["macro_f1_no_z"] == 1.0
    assert metrics(grades, labels=("a", "b"), exclude=())["labels"] == ["a", "b"]


def item(identifier, gold, label, **more):
    return Item(id=identifier, score=float(gold == label), gold=gold, label=label, **more)


def test_items_can_be_prediction_sets_of_their_own():
    """With sets every item id gets the full metrics; the grade's own label stays the main set."""
    grades = [
        graded("a", "a", items=(item("one", "a", "a"), item("two", "a", "b"))),
        graded("b", "b", items=(item("one", "b", "b"), Item(id="two", outcome=Outcome.MISSING, gold="b"))),
    ]
    found = metrics(grades, labels=("a", "b"), items="sets")
    assert found["accuracy"] == 1.0
    assert found["sets"]["one"]["accuracy"] == 1.0
    assert found["sets"]["two"]["accuracy"] == 0.0
    assert (found["sets"]["two"]["n"], found["sets"]["two"]["n_missing"]) == (1, 1)
    assert "sets" not in metrics(grades, labels=("a", "b"))


def test_items_can_be_pooled():
    """With pool every item is an observation and the grade itself is not."""
    grades = [graded("a", "a", items=(item("1", "a", "b"), item("2", "b", "b"))), graded("b", "b")]
    found = metrics(grades, labels=("a", "b"), items="pool")
    assert (found["n"], found["n_correct"]) == (3, 2)


grades_of = st.lists(
    st.builds(graded, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["a", "b", "c", "?", None])), max_size=40
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
    assert json.dumps(metrics(grades, labels=LABELS)) == json.dumps(metrics(shuffled, labels=LABELS))


@pytest.mark.parametrize("profile", ["documented", "upstream"])
@pytest.mark.parametrize("items", ["declared", "sets", "pool", "ignore"])
def test_the_contract_holds(profile, items):
    declared = {"label_set": {"labels": ["a", "b"], "exclude": ["a"], "items": "sets"}}
    grades = [
        graded("ab"[n % 2], "abc?"[n % 4], metadata=declared if n % 3 else {}, items=(item(f"s{n % 3}", "a", "b"),))
        for n in range(40)
    ]
    keyed = [(Key(id=str(n), ordinal=n), each) for n, each in enumerate(grades)]
    aggregator = Classification(profile=profile, items=items)
    testing.check_aggregator(aggregator, keyed)
    testing.check_aggregator(aggregator)


def test_a_class_that_counts_as_0_in_the_macro_average_is_named():
    """Its own F1 is null; the average over the others has no such note, nor has the profile upstream."""
    rows = [
        ("1", 0, None, Grade(score=1.0, gold="a", label="a")),
        ("2", 0, None, Grade(score=0.0, gold="b", label="a")),
    ]
    options = {"labels": ["a", "b", "c"], "exclude": ["c"]}
    found = figures({"classification": options}, rows)["classification"]
    assert found["per_class"]["c"]["f1"] is None
    assert found["macro_f1_note"] == "c counts as 0: neither in the gold labels nor predicted"
    assert "macro_f1_no_c_note" not in found
    old = figures({"classification": options | {"profile": "upstream"}}, rows)["classification"]
    assert not [name for name in old if name.endswith("_note")]
