"""The stability aggregator over any grades: keys, values and options, and rates."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Grade, Key, Outcome, skipped, testing
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.stability.aggregators import RATES, Stability
from tests.plugins.stability.stability_records import LABELS, PROFILES, C, D, I, T, item, record, stability


def run(identifier, label, gold=T, ordinal=0, **more):
    key = Key(id=identifier, model=more.pop("model", None), ordinal=ordinal, facets=more.pop("facets", {}))
    return key, Grade(score=float(label == gold), label=label, gold=gold, **more)


@pytest.mark.parametrize("profile", PROFILES)
def test_sweeps_at_several_temperatures_stay_apart(evaluate, profile):
    """The same task in two sweeps is two tasks of k runs, not one of 2k, unless asked for."""
    records = [record("a", [T] * 3, ckpt_name="cold"), record("b", [T] * 3, ckpt_name="hot")]
    keyed = [
        run("a", label, ordinal=n, facets={"experiment": sweep})
        for n, (sweep, label) in enumerate([("cold", T), ("cold", T), ("hot", D), ("hot", D)])
    ]
    assert stability(keyed, profile=profile, labels=LABELS)["stability_at_k"] == 1.0
    assert stability(keyed, profile=profile, labels=LABELS, by=())["stability_at_k"] == 0.0
    assert evaluate(records, profile=profile)["n_items_total"] == 2


@pytest.mark.parametrize("profile", PROFILES)
def test_models_stay_apart(profile):
    keyed = [run("a", T, model="m1"), run("a", D, model="m2", ordinal=1), run("a", C, ordinal=2)]
    found = stability(keyed, profile=profile, labels=LABELS)
    assert (found["n_items_total"], found["stability_at_k"]) == (3, 1.0)


def scored(identifier, score, ordinal=0, passed=None):
    return Key(id=identifier, ordinal=ordinal), Grade(score=score, passed=passed)


@pytest.mark.parametrize("profile", PROFILES)
def test_grades_without_labels_are_passes_and_fails(profile):
    """The grader's verdict, else the score against the threshold; passing is the gold label, two is the label set."""
    graded = [
        scored("a", 1.0),
        scored("a", 0.999, 1),
        scored("b", 0.2, 2, passed=True),
        scored("b", 0.2, 3, passed=True),
    ]
    found = stability(graded, profile=profile)
    assert (found["stability_at_k"], found["stable_and_correct_rate"]) == (0.5, 0.5)
    assert found["mean_entropy"] == found["mean_normalized_entropy"] == 0.5
    assert found["mean_accuracy_across_runs"] == 0.75
    assert found["labels"] == ["pass", "fail"]
    assert not [name for name in found if "_gold_pass" in name]
    assert stability(graded, profile=profile, threshold=0.9)["stability_at_k"] == 1.0


def test_labels_can_be_set_aside_for_pass_and_fail():
    """With value: passed two different wrong labels are the same outcome."""
    graded = [run("a", D), run("a", C, ordinal=1)]
    assert stability(graded, labels=LABELS)["stability_at_k"] == 0.0
    found = stability(graded, value="passed")
    assert (found["stability_at_k"], found["stable_but_wrong_rate"]) == (1.0, 1.0)


def test_with_value_label_a_score_alone_is_no_value():
    """Nothing is made up."""
    assert stability([scored("a", 1.0)], value="label")["n_items_without_runs"] == 1


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.MISSING, Outcome.SKIPPED])
def test_runs_without_a_value_are_counted_and_keep_a_task_from_being_stable(outcome):
    graded = [run("a", T), run("a", T, ordinal=1), (Key(id="a", ordinal=2), Grade(outcome=outcome))]
    found = stability(graded, labels=LABELS)
    assert (found["mean_consistency_at_k"], found["stability_at_k"]) == (2 / 3, 0.0)
    assert (found["n_runs_expected"], found["n_runs_missing"]) == (3, 1)
    assert found["n_runs_failed"] == (outcome is Outcome.FAILED)
    assert found["n_runs_skipped"] == (outcome is Outcome.SKIPPED)
    assert (found["mean_entropy"], found["mean_flip_rate"]) == (0.0, 0.0)


def test_a_task_without_any_value_is_not_processed():
    """It lowers the coverage."""
    found = stability([run("a", T), (Key(id="b"), skipped("x", "y"))], labels=LABELS)
    assert (found["n_items_total"], found["coverage"], found["n_items_without_runs"]) == (2, 0.5, 1)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_number_of_runs_asked_for_can_be_given(profile):
    """Where records do not say, an option does."""
    found = stability([run("a", T), run("a", T, ordinal=1)], profile=profile, labels=LABELS, runs=4)
    assert (found["mean_consistency_at_k"], found["stability_at_k"]) == (0.5, 0.0)


def test_the_label_set_is_what_is_declared_or_seen():
    graded = [run("a", "x", gold="x"), run("a", "invalid", gold="x", ordinal=1), run("b", "y", gold="y", ordinal=2)]
    assert stability(graded)["labels"] == ["x", "y"]
    declared = {"label_set": {"labels": ["x", "y", "z"]}}
    assert stability([run("a", "x", gold="x", metadata=declared)])["labels"] == ["x", "y", "z"]
    assert stability(graded, labels=("y", "x"))["labels"] == ["y", "x"]


def test_the_order_of_runs_is_the_recorded_one():
    """The tie goes to the label recorded first."""
    found = stability([run("a", label) for label in [D, T, T, D]], labels=LABELS)
    assert (found["mode_correct_rate"], found["mean_flip_rate"]) == (0.0, 2 / 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": 0}, "at least 1"),
        ({"labels": ["a"]}, "two different"),
        ({"labels": ["a", "a"]}, "two different"),
        ({"divisor": "all"}, "expected one of"),
        ({"value": "score"}, "expected one of"),
    ],
)
def test_bad_options_are_refused_with_a_message(options, said):
    """Options that make no sense are configuration errors."""
    with pytest.raises(Problems, match=said):
        structure(options, Stability)


sweeps = st.lists(
    st.tuples(
        st.lists(st.sampled_from([*LABELS, I]), min_size=1, max_size=6), st.sampled_from(LABELS), st.integers(0, 2)
    ),
    max_size=8,
)


def graded_of(given):
    graded = []
    for n, (labels, gold, lost) in enumerate(given):
        for label in labels:
            graded.append(run(f"t{n}", label, gold, ordinal=len(graded)))
        graded += [(Key(id=f"t{n}", ordinal=len(graded) + k), Grade(outcome=Outcome.FAILED)) for k in range(lost)]
    return graded


@given(sweeps)
def test_every_rate_lies_between_zero_and_one(given_sweeps):
    """Whatever the runs; and the parts of a whole add up."""
    found = stability(graded_of(given_sweeps), labels=LABELS)
    for name in RATES:
        if name != "mean_entropy":
            assert found[name] is None or 0 <= found[name] <= 1
    if given_sweeps:
        both = found["stable_and_correct_rate"] + found["stable_but_wrong_rate"]
        assert found["stability_at_k"] == pytest.approx(both)
        assert found["stability_at_k"] <= found["mean_consistency_at_k"]
        assert found["n_runs_expected"] == sum(len(labels) + lost for labels, _, lost in given_sweeps)


@given(sweeps, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(given_sweeps, shuffler):
    """Tasks in any order give exactly the same means."""
    shuffled = list(given_sweeps)
    shuffler.shuffle(shuffled)
    one, two = (stability(graded_of(each), labels=LABELS) for each in (given_sweeps, shuffled))
    assert json.dumps(one) == json.dumps(two)


@given(sweeps)
def test_both_profiles_agree_where_nothing_is_special(given_sweeps):
    """Complete tasks of two or more valid runs have the same means in both profiles."""
    plain = [
        ([label for label in labels if label != I] or [T], gold, 0)
        for labels, gold, _ in given_sweeps
        if len(labels) > 1
    ]
    plain = [(labels * 2, gold, 0) for labels, gold, _ in plain]
    one, two = (stability(graded_of(plain), labels=LABELS, profile=each) for each in PROFILES)
    for name in RATES if plain else ():
        assert one[name] == pytest.approx(two[name], abs=1e-12)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_contract_holds(keyed, profile):
    """Declared figures, the same for any cut, on sweeps with every oddity and on random grades."""
    records = [
        record("a", [T, D, T, None]),
        record("b", [], n_runs=3, entropy=0.5),
        record("c", [7, I, T], gold="maybe"),
        record("x", [C] * 5, gold=C, n_runs=7, consistency=0.2),
    ]
    dataset = [item("a"), item("b"), item("c"), item("d")]
    aggregator = Stability(profile=profile)
    testing.check_aggregator(aggregator, keyed(records, dataset, profile=profile))
    testing.check_aggregator(aggregator)
    testing.check_aggregator(Stability(profile=profile, value="passed", by=("domain",)))
