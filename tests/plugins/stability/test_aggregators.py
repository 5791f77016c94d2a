"""Stability of runs: measures, grades, aggregators."""

from __future__ import annotations

import itertools
import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Grade, Key, Outcome, skipped, testing
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.stability.aggregators import RATES, Stability, entropy, entropy_in_order, flips, measures, mode
from tests.core.outcomes import data
from tests.plugins.stability.stability_records import LABELS, PROFILES, C, D, I, T, item, record, stability

DATA = data(__file__, "aggregators.yaml")


def test_a_null_run_is_missing_in_documented_and_a_value_upstream(evaluate):
    """Four alike and a null: unstable in both, but it is entropy and a flip upstream only."""
    records = [record("a", [T, T, T, T, None])]
    found, upstream = evaluate(records), evaluate(records, profile="upstream")
    assert (found["mean_consistency_at_k"], found["mean_entropy"], found["mean_flip_rate"]) == (0.8, 0.0, 0.0)
    assert found["n_runs_missing"] == 1
    assert (upstream["mean_consistency_at_k"], upstream["mean_flip_rate"]) == (0.8, 0.25)
    assert upstream["mean_entropy"] > 0
    assert (upstream["mean_accuracy_across_runs"], found["mean_accuracy_across_runs"]) == (0.8, 0.8)


def test_a_class_called_invalid_is_a_class():
    """A gold label of that name is right where it is predicted; a value outside the label set is another thing."""
    grades = [
        (Key(id=task, run=run, ordinal=2 * place + run), Grade(score=float(label == gold), label=label, gold=gold))
        for place, (task, gold, labels) in enumerate([("a", "invalid", ["invalid", "odd"]), ("b", "x", ["x", "x"])])
        for run, label in enumerate(labels)
    ]
    found = stability(grades, labels=["invalid", "x"])
    assert (found["mean_consistency_at_k"], found["mean_accuracy_across_runs"]) == (0.75, 0.75)
    assert found["stability_at_k_gold_invalid"] == 0.0


def test_without_any_task_there_is_nothing(evaluate):
    """No metrics at all upstream; null with a reason in documented."""
    upstream = evaluate([], profile="upstream")
    assert not set(RATES) & set(upstream)
    found = evaluate([])
    assert {found[name] for name in RATES} == {None}
    assert found["coverage"] is None
    assert set(RATES) <= set(found["undefined"])


def test_figures_of_upstream_are_all_floats(evaluate):
    """Counts too."""
    found = evaluate([record("a", [T] * 5)], profile="upstream")
    assert all(isinstance(found[name], float) for name in ("n_items_total", "n_items_processed", "coverage", *RATES))


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


@pytest.mark.parametrize(("options", "said"), DATA["bad_options_are_refused_with_a_message"])
def test_bad_options_are_refused_with_a_message(options, said):
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


PARTS = ["a", "b", "a", "a", "c"]
runs_of = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9)


def test_the_mode_is_the_most_frequent_label():
    assert mode(PARTS) == ("a", 3)


@pytest.mark.parametrize(("runs", "label"), [("abab", "a"), ("baab", "b"), ("cab", "c"), ("cabbc", "c")])
def test_on_a_tie_the_label_seen_first_in_the_runs_is_the_mode(runs, label):
    """Not the alphabetically first, and not the last."""
    assert mode(list(runs))[0] == label


def test_entropy_in_bits_by_hand():
    """Three fifths, one fifth and one fifth: .6 log2(1/.6) + .4 log2 5."""
    expected = 0.6 * math.log2(1 / 0.6) + 0.4 * math.log2(5)
    assert entropy(PARTS) == pytest.approx(expected)
    assert entropy_in_order(PARTS) == pytest.approx(expected)
    assert entropy(["a"] * 7) == 0.0
    assert entropy(list("abcd")) == 2.0


def test_flips_are_changes_between_neighbours():
    """The same labels in another order flip more or less often: the rate is not permutation invariant."""
    assert flips(list("aabb")) == 1
    assert flips(list("abab")) == 3
    assert measures(list("aabb"), "a", 4, 4).flip_rate == 1 / 3
    assert measures(list("abab"), "a", 4, 4).flip_rate == 1.0


@pytest.mark.parametrize("measure", [lambda r, g: measures(r, g, len(r), 4), lambda r, g: measures(r, g, 0, 4, {})])
def test_every_measure_of_five_runs_by_hand(measure):
    """The runs are a b a a c, the gold label is a."""
    found = measure(PARTS, "a")
    assert found.consistency == 0.6
    assert (found.is_stable, found.is_mode_correct) == (False, True)
    assert (found.is_stable_and_correct, found.is_stable_but_wrong) == (False, False)
    assert found.mean_accuracy_across_runs == 0.6
    assert found.normalized_entropy == pytest.approx(found.entropy / 2)
    assert found.flip_rate == 0.75


@pytest.mark.parametrize("measure", [lambda r, g: measures(r, g, len(r), 4), lambda r, g: measures(r, g, 0, 4, {})])
def test_stable_runs_are_correct_or_wrong(measure):
    """All alike: stable and correct with the gold label, stable but wrong without; no entropy, no flips."""
    right, wrong = measure(["a"] * 5, "a"), measure(["b"] * 5, "a")
    assert (right.is_stable, right.is_stable_and_correct, right.is_stable_but_wrong) == (True, True, False)
    assert (wrong.is_stable, wrong.is_stable_and_correct, wrong.is_stable_but_wrong) == (True, False, True)
    assert (right.consistency, right.entropy, right.normalized_entropy, right.flip_rate) == (1.0, 0.0, 0.0, 0.0)


def test_a_single_run_has_no_flip_rate():
    """Null in documented, 0.0 upstream."""
    assert measures(["a"], "a", 1, 4).flip_rate is None
    assert measures(["a"], "a", 1, 4, {}).flip_rate == 0.0


def test_five_different_values_over_four_labels():
    """Documented normalises by five labels and reaches 1; upstream divides by log2 4 and reaches 1.161."""
    runs = ["a", "b", "c", "d", "invalid"]
    assert measures(runs, "a", 5, 5).normalized_entropy == 1.0
    assert measures(runs, "a", 5, 4, {}).normalized_entropy == pytest.approx(1.161, abs=5e-4)


def test_a_label_set_of_one_has_no_normalised_entropy():
    """log2 1 is 0: undefined in documented, 0.0 upstream."""
    assert measures(["a", "a"], "a", 2, 1).normalized_entropy is None
    assert measures(["a", "a"], "a", 2, 1, {}).normalized_entropy == 0.0


def test_fewer_runs_than_asked_for_are_not_stable():
    """Three of five alike: m/k is three fifths, and so is the accuracy; upstream's is over the runs that are there."""
    found, original = measures(["a"] * 3, "a", 5, 4), measures(["a"] * 3, "a", 5, 4, {})
    assert (found.consistency, found.is_stable, found.mean_accuracy_across_runs) == (0.6, False, 0.6)
    assert (original.consistency, original.is_stable, original.mean_accuracy_across_runs) == (0.6, False, 1.0)
    assert found.flip_rate == original.flip_rate == 0.0


def test_more_runs_than_asked_for_pass_one_upstream():
    """Six alike where five were asked for: m/k is 1.2 and m differs from k."""
    found = measures(["a"] * 6, "a", 5, 4, {})
    assert (found.consistency, found.is_stable) == (1.2, False)


def test_upstream_trusts_what_the_record_says():
    """Every derived field that is there is taken as it is; the others follow from it."""
    trusted = {"entropy": 0.5, "is_stable": True, "flip_rate": 0.9}
    found = measures(PARTS, "a", 5, 4, trusted)
    assert (found.entropy, found.normalized_entropy, found.flip_rate) == (0.5, 0.25, 0.9)
    assert (found.is_stable, found.is_stable_and_correct) == (True, True)
    assert found.consistency == 0.6


def test_upstream_recomputes_the_mode_unless_label_and_count_are_there():
    """One of the two is not enough."""
    both = measures(PARTS, "a", 5, 4, {"mode_label": "b", "mode_count": 5})
    assert (both.consistency, both.is_stable, both.is_mode_correct, both.is_stable_but_wrong) == (
        1.0,
        True,
        False,
        True,
    )
    for one in ({"mode_label": "b"}, {"mode_count": 5}):
        found = measures(PARTS, "a", 5, 4, one)
        assert (found.consistency, found.is_mode_correct) == (0.6, True)


def test_upstream_without_runs_counts_what_is_not_there_as_zero():
    """A record without labels keeps its derived fields and nothing else."""
    found = measures([], "a", 5, 4, {"consistency": 0.8})
    assert (found.consistency, found.entropy, found.is_stable, found.flip_rate) == (0.8, 0.0, False, 0.0)


@given(runs_of, st.randoms(use_true_random=False))
def test_all_but_mode_ties_and_flips_are_permutation_invariant(runs, shuffler):
    other = list(runs)
    shuffler.shuffle(other)
    one, two = measures(runs, "a", len(runs), 4), measures(other, "a", len(runs), 4)
    for name in ("consistency", "is_stable", "mean_accuracy_across_runs", "entropy", "normalized_entropy"):
        assert getattr(one, name) == getattr(two, name)


@given(runs_of, st.sampled_from("abcd"), st.integers(0, 3))
def test_every_measure_lies_between_zero_and_one(runs, gold, lost):
    """With any runs and some lost ones; entropy is at most log2 of the number of labels."""
    found = measures(runs, gold, len(runs) + lost, 4)
    for name in ("consistency", "mean_accuracy_across_runs", "normalized_entropy"):
        assert 0 <= getattr(found, name) <= 1
    assert found.flip_rate is None or 0 <= found.flip_rate <= 1
    assert 0 <= found.entropy <= 2
    assert found.is_stable == (len(set(runs)) == 1 and not lost)
    assert found.is_stable == (found.is_stable_and_correct or found.is_stable_but_wrong)


@given(runs_of)
def test_entropy_and_flips_vanish_together_with_instability(runs):
    """Alike runs have neither; differing runs have both."""
    alike = len(set(runs)) == 1
    assert (entropy(runs) == 0) == alike == (flips(runs) == 0)
    assert entropy(runs) == pytest.approx(entropy_in_order(runs))


def test_random_runs_agree_with_a_direct_calculation():
    """A hundred random tasks against formulas written out once more."""
    noise = random.Random(3)  # noqa: S311 - test data
    for _ in range(100):
        runs = [noise.choice("abcd") for _ in range(noise.randint(2, 8))]
        counts = {label: runs.count(label) for label in set(runs)}
        found = measures(runs, "b", len(runs), 4)
        assert found.consistency == max(counts.values()) / len(runs)
        direct = sum(-c / len(runs) * math.log2(c / len(runs)) for c in counts.values())
        assert found.entropy == pytest.approx(direct, abs=1e-12)
        changed = [one != two for one, two in itertools.pairwise(runs)]
        assert found.flip_rate == changed.count(True) / len(changed)
        assert found.mean_accuracy_across_runs == counts.get("b", 0) / len(runs)
