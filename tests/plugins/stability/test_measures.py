"""The stability of one task, by hand and by identities."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack_plugins.stability.aggregators import entropy, entropy_in_order, flips, measures, mode

PARTS = ["a", "b", "a", "a", "c"]
runs_of = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9)


def test_the_mode_is_the_most_frequent_label():
    """With its multiplicity."""
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
