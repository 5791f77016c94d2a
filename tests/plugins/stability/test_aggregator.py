"""The stability aggregator in both profiles: every formula, every difference, and the laws of merging."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import testing
from gradestack.model import Grade, Key, Outcome, skipped
from gradestack.structure import Problems, structure
from gradestack_plugins.stability.aggregator import PER_GOLD, RATES, Stability

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
PROFILES = ("documented", "upstream")
D, T, R, C, I = (*LABELS, "invalid")  # noqa: E741


def record(uuid, runs, gold=T, **more):
    return {"uuid": uuid, "gold_label": gold, "n_runs": len(runs), "run_labels": runs, **more}


def item(uuid, gold=T):
    return {"uuid": uuid, "question": "q", "correct_answer": gold}


def fold(aggregator, graded):
    return aggregator.finish(testing.fold(aggregator, graded))


def run(identifier, label, gold=T, ordinal=0, **more):
    key = Key(id=identifier, model=more.pop("model", None), ordinal=ordinal, facets=more.pop("facets", {}))
    return key, Grade(score=float(label == gold), label=label, gold=gold, **more)


def test_the_divisor_is_the_tasks_processed_in_documented_and_the_datasets_rows_upstream(evaluate):
    """One stable task of four dataset rows: 1 against a quarter, and the same coverage."""
    dataset = [item("a"), item("b"), item("c"), item("d")]
    found = evaluate([record("a", [T] * 5)], dataset)
    assert (found["n_items_total"], found["n_items_processed"], found["coverage"]) == (4, 1, 0.25)
    assert (found["stability_at_k"], found["mean_consistency_at_k"]) == (1.0, 1.0)
    assert found["n_items_without_runs"] == 3
    upstream = evaluate([record("a", [T] * 5)], dataset, profile="upstream")
    assert (upstream["n_items_total"], upstream["n_items_processed"], upstream["coverage"]) == (4.0, 1.0, 0.25)
    assert (upstream["stability_at_k"], upstream["mean_consistency_at_k"]) == (0.25, 0.25)
    assert upstream["stability_at_k_gold_tool_call"] == 1.0


@pytest.mark.parametrize("profile", PROFILES)
def test_the_divisor_can_be_chosen_in_either_profile(evaluate, profile):
    """Both items and processed do the same in either."""
    records, dataset = [record("a", [T] * 5)], [item("a"), item("b")]
    assert evaluate(records, dataset, profile=profile, divisor="items")["stability_at_k"] == 0.5
    assert evaluate(records, dataset, profile=profile, divisor="processed")["stability_at_k"] == 1.0


def test_records_outside_the_dataset_are_left_out_in_documented_and_pass_one_upstream(evaluate):
    """Upstream sums over every record, so coverage and rates can be 2; documented counts the stranger apart."""
    records = [record("a", [T] * 3), record("x", [T] * 3)]
    found = evaluate(records, [item("a")])
    assert (found["coverage"], found["stability_at_k"], found["n_items_outside_dataset"]) == (1.0, 1.0, 1)
    upstream = evaluate(records, [item("a")], profile="upstream")
    assert (upstream["coverage"], upstream["stability_at_k"]) == (2.0, 2.0)


def test_a_dataset_uuid_that_occurs_twice_counts_twice_in_the_total(evaluate):
    """One record then covers half of two rows."""
    for profile in PROFILES:
        found = evaluate([record("a", [T] * 3)], [item("a"), item("a")], profile=profile)
        assert (found["n_items_total"], found["coverage"]) == (2, 0.5)


def test_without_a_dataset_the_total_is_the_tasks_seen(evaluate):
    """Coverage is then 1."""
    for profile in PROFILES:
        found = evaluate([record("a", [T] * 3), record("b", [D] * 3)], profile=profile)
        assert (found["n_items_total"], found["coverage"], found["stability_at_k"]) == (2, 1.0, 1.0)


def test_normalised_entropy_of_invalid_values(evaluate):
    """Five different values: 1.0 in documented, which counts a fifth label for that task only; 1.161 upstream."""
    records = [record("a", [D, T, R, C, I]), record("b", [D, T, R, C])]
    found, upstream = evaluate(records), evaluate(records, profile="upstream")
    assert found["mean_normalized_entropy"] == pytest.approx((1.0 + 1.0) / 2)
    assert upstream["mean_normalized_entropy"] == pytest.approx((math.log2(5) / 2 + 1.0) / 2)
    assert found["mean_entropy"] == pytest.approx((math.log2(5) + 2) / 2)


def test_a_failed_run_is_a_value_like_any_other(evaluate):
    """Five invalid runs are stable but wrong."""
    for profile in PROFILES:
        found = evaluate([record("a", [I] * 5)], profile=profile)
        assert (found["stability_at_k"], found["stable_but_wrong_rate"], found["mean_entropy"]) == (1.0, 1.0, 0.0)


def test_one_run_per_task_has_no_flip_rate_in_documented_and_zero_upstream(evaluate):
    """Null with a reason; tasks with two runs alone make the mean."""
    found = evaluate([record("a", [T])])
    assert found["mean_flip_rate"] is None
    assert found["undefined"]["mean_flip_rate"] == "no task has two runs"
    assert evaluate([record("a", [T]), record("b", [T, D])])["mean_flip_rate"] == 1.0
    assert evaluate([record("a", [T])], profile="upstream")["mean_flip_rate"] == 0.0
    assert evaluate([record("a", [T]), record("b", [T, D])], profile="upstream")["mean_flip_rate"] == 0.5


def test_more_runs_than_asked_for(evaluate):
    """Documented takes the runs that are there for k; upstream divides by n_runs and passes 1."""
    records = [record("a", [T] * 6, n_runs=5)]
    found, upstream = evaluate(records), evaluate(records, profile="upstream")
    assert (found["mean_consistency_at_k"], found["stability_at_k"]) == (1.0, 1.0)
    assert (upstream["mean_consistency_at_k"], upstream["stability_at_k"]) == (1.2, 0.0)


@pytest.mark.parametrize("profile", PROFILES)
def test_fewer_runs_than_asked_for_are_counted_and_not_stable(evaluate, profile):
    """Consistency is m / n_runs, the task is not stable, and the missing runs are shown."""
    found = evaluate([record("a", [T] * 3, n_runs=5)], profile=profile)
    assert (found["mean_consistency_at_k"], found["stability_at_k"]) == (0.6, 0.0)
    assert (found["n_runs_expected"], found["n_runs_recorded"], found["n_runs_missing"]) == (5, 3, 2)
    assert found["tasks_by_k"] == {"5": 1}


@pytest.mark.parametrize("profile", PROFILES)
def test_without_n_runs_the_runs_recorded_count(evaluate, profile):
    """0 or nothing means as many as there are."""
    for n_runs in (0, None):
        assert evaluate([record("a", [T] * 3, n_runs=n_runs)], profile=profile)["stability_at_k"] == 1.0


def test_a_null_run_is_missing_in_documented_and_a_value_upstream(evaluate):
    """Four alike and a null: unstable in both, but it is entropy and a flip upstream only."""
    records = [record("a", [T, T, T, T, None])]
    found, upstream = evaluate(records), evaluate(records, profile="upstream")
    assert (found["mean_consistency_at_k"], found["mean_entropy"], found["mean_flip_rate"]) == (0.8, 0.0, 0.0)
    assert found["n_runs_missing"] == 1
    assert (upstream["mean_consistency_at_k"], upstream["mean_flip_rate"]) == (0.8, 0.25)
    assert upstream["mean_entropy"] > 0
    assert upstream["mean_accuracy_across_runs"] == 0.8
    assert found["mean_accuracy_across_runs"] == 1.0


def test_derived_fields_are_trusted_upstream_and_computed_anew_in_documented(evaluate):
    """A record that lies about itself."""
    lies = {"consistency": 0.1, "is_stable": False, "is_stable_and_correct": True, "entropy": 1.5, "flip_rate": 0.7}
    records = [record("a", [T] * 5, **lies)]
    upstream, found = evaluate(records, profile="upstream"), evaluate(records)
    names = ("mean_consistency_at_k", "stability_at_k", "stable_and_correct_rate", "mean_entropy", "mean_flip_rate")
    assert [upstream[name] for name in names] == [0.1, 0.0, 1.0, 1.5, 0.7]
    assert upstream["mean_normalized_entropy"] == 0.75
    assert [found[name] for name in names] == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_a_record_without_runs(evaluate):
    """Processed upstream, with what it says and 0 for the rest; a task without runs in documented."""
    records = [record("a", [], n_runs=5, consistency=0.5), record("b", [T] * 5)]
    upstream, found = evaluate(records, profile="upstream"), evaluate(records)
    assert (upstream["n_items_processed"], upstream["mean_consistency_at_k"]) == (2.0, 0.75)
    assert (found["n_items_processed"], found["n_items_without_runs"], found["coverage"]) == (1, 1, 0.5)


def test_an_unknown_gold_label(evaluate):
    """Upstream counts the task as processed and adds nothing; documented fails its runs and leaves it out."""
    records = [record("a", [T] * 5), record("b", [T] * 5, gold="maybe"), record("c", [T] * 5, gold=None)]
    upstream = evaluate(records, profile="upstream")
    assert (upstream["n_items_processed"], upstream["coverage"]) == (3.0, 1.0)
    assert upstream["stability_at_k"] == pytest.approx(1 / 3)
    assert upstream["n_items_unknown_gold"] == 2
    found = evaluate(records)
    assert (found["n_items_processed"], found["stability_at_k"]) == (1, 1.0)


def test_a_missing_gold_label(evaluate):
    """The task is not counted as processed in either profile."""
    lacking = record("b", [T] * 5)
    del lacking["gold_label"]
    for profile in PROFILES:
        found = evaluate([record("a", [T] * 5), lacking], profile=profile)
        assert (found["n_items_processed"], found["n_items_without_gold"]) == (1, 1)


def test_per_gold_label_means_divide_by_that_labels_tasks(evaluate):
    """Two tasks of one label, one of another, none of the rest: null in documented, 0.0 upstream."""
    records = [record("a", [T, T]), record("b", [T, D]), record("c", [C, C], gold=C)]
    found, upstream = evaluate(records), evaluate(records, profile="upstream")
    for each in (found, upstream):
        assert each["stability_at_k_gold_tool_call"] == 0.5
        assert each["mean_consistency_at_k_gold_tool_call"] == 0.75
        assert each["mean_flip_rate_gold_tool_call"] == 0.5
        assert each["mean_accuracy_across_runs_gold_tool_call"] == 0.75
        assert each["mode_correct_rate_gold_tool_call"] == 1.0
        assert each["mean_entropy_gold_tool_call"] == 0.5
        assert each["mean_normalized_entropy_gold_tool_call"] == 0.25
        assert each["stability_at_k_gold_cannot_answer"] == 1.0
        assert "stable_and_correct_rate_gold_tool_call" not in each
    assert {found[f"{name}_gold_direct"] for name in PER_GOLD} == {None}
    assert {upstream[f"{name}_gold_direct"] for name in PER_GOLD} == {0.0}
    assert (found["n_items_gold_tool_call"], found["n_items_gold_direct"]) == (2, 0)


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


def test_standard_errors_are_over_tasks(evaluate):
    """Sample standard deviation of the tasks' values over the root of their number; none below two tasks."""
    found = evaluate([record("a", [T] * 4), record("b", [T, T, D, D])])
    assert found["stderr"]["mean_consistency_at_k"] == pytest.approx(math.sqrt(0.125) / math.sqrt(2))
    assert evaluate([record("a", [T] * 4)])["stderr"]["mean_consistency_at_k"] is None


@pytest.mark.parametrize("profile", PROFILES)
def test_sweeps_at_several_temperatures_stay_apart(evaluate, profile):
    """The same task in two sweeps is two tasks of k runs, not one of 2k, unless asked for."""
    records = [record("a", [T] * 3, ckpt_name="cold"), record("b", [T] * 3, ckpt_name="hot")]
    keyed = [
        run("a", label, ordinal=n, facets={"experiment": sweep})
        for n, (sweep, label) in enumerate([("cold", T), ("cold", T), ("hot", D), ("hot", D)])
    ]
    assert fold(Stability(profile=profile, labels=LABELS), keyed)["stability_at_k"] == 1.0
    assert fold(Stability(profile=profile, labels=LABELS, by=()), keyed)["stability_at_k"] == 0.0
    assert evaluate(records, profile=profile)["n_items_total"] == 2


@pytest.mark.parametrize("profile", PROFILES)
def test_models_stay_apart(profile):
    """The runs of one model are compared with each other only."""
    keyed = [run("a", T, model="m1"), run("a", D, model="m2", ordinal=1), run("a", C, ordinal=2)]
    found = fold(Stability(profile=profile, labels=LABELS), keyed)
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
    found = fold(Stability(profile=profile), graded)
    assert (found["stability_at_k"], found["stable_and_correct_rate"]) == (0.5, 0.5)
    assert found["mean_entropy"] == found["mean_normalized_entropy"] == 0.5
    assert found["mean_accuracy_across_runs"] == 0.75
    assert found["labels"] == ["pass", "fail"]
    assert not [name for name in found if "_gold_pass" in name]
    assert fold(Stability(profile=profile, threshold=0.9), graded)["stability_at_k"] == 1.0


def test_labels_can_be_set_aside_for_pass_and_fail():
    """With value: passed two different wrong labels are the same outcome."""
    graded = [run("a", D), run("a", C, ordinal=1)]
    assert fold(Stability(labels=LABELS), graded)["stability_at_k"] == 0.0
    found = fold(Stability(value="passed"), graded)
    assert (found["stability_at_k"], found["stable_but_wrong_rate"]) == (1.0, 1.0)


def test_with_value_label_a_score_alone_is_no_value():
    """Nothing is made up."""
    assert fold(Stability(value="label"), [scored("a", 1.0)])["n_items_without_runs"] == 1


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.MISSING, Outcome.SKIPPED])
def test_runs_without_a_value_are_counted_and_keep_a_task_from_being_stable(outcome):
    """They belong to the k runs that were asked for."""
    graded = [run("a", T), run("a", T, ordinal=1), (Key(id="a", ordinal=2), Grade(outcome=outcome))]
    found = fold(Stability(labels=LABELS), graded)
    assert (found["mean_consistency_at_k"], found["stability_at_k"]) == (2 / 3, 0.0)
    assert (found["n_runs_expected"], found["n_runs_missing"]) == (3, 1)
    assert found["n_runs_failed"] == (outcome is Outcome.FAILED)
    assert found["n_runs_skipped"] == (outcome is Outcome.SKIPPED)
    assert (found["mean_entropy"], found["mean_flip_rate"]) == (0.0, 0.0)


def test_a_task_without_any_value_is_not_processed():
    """It lowers the coverage."""
    found = fold(Stability(labels=LABELS), [run("a", T), (Key(id="b"), skipped("x", "y"))])
    assert (found["n_items_total"], found["coverage"], found["n_items_without_runs"]) == (2, 0.5, 1)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_number_of_runs_asked_for_can_be_given(profile):
    """Where records do not say, an option does."""
    found = fold(Stability(profile=profile, labels=LABELS, runs=4), [run("a", T), run("a", T, ordinal=1)])
    assert (found["mean_consistency_at_k"], found["stability_at_k"]) == (0.5, 0.0)


def test_the_label_set_is_what_is_declared_or_seen():
    """Option, then the grades' declaration, then the labels seen without invalid."""
    graded = [run("a", "x", gold="x"), run("a", "invalid", gold="x", ordinal=1), run("b", "y", gold="y", ordinal=2)]
    assert fold(Stability(), graded)["labels"] == ["x", "y"]
    declared = {"label_set": {"labels": ["x", "y", "z"]}}
    assert fold(Stability(), [run("a", "x", gold="x", metadata=declared)])["labels"] == ["x", "y", "z"]
    assert fold(Stability(labels=("y", "x")), graded)["labels"] == ["y", "x"]


def test_the_order_of_runs_is_the_recorded_one_whatever_order_they_are_folded_in():
    """The ordinal decides; the tie goes to the label recorded first."""
    graded = [run("a", label, ordinal=n) for n, label in enumerate([D, T, T, D])]
    straight = fold(Stability(labels=LABELS), graded)
    backwards = fold(Stability(labels=LABELS), graded[::-1])
    assert json.dumps(straight) == json.dumps(backwards)
    assert straight["mode_correct_rate"] == 0.0
    assert straight["mean_flip_rate"] == 2 / 3


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
    found = fold(Stability(labels=LABELS), graded_of(given_sweeps))
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
    one, two = (fold(Stability(labels=LABELS), graded_of(each)) for each in (given_sweeps, shuffled))
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
    one, two = (fold(Stability(labels=LABELS, profile=each), graded_of(plain)) for each in PROFILES)
    for name in RATES if plain else ():
        assert one[name] == pytest.approx(two[name], abs=1e-12)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_laws_of_merging_hold(keyed, profile):
    """Identity, associativity, any split and JSON round trips, on sweeps with every oddity and on random grades."""
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
