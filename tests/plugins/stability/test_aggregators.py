"""The stability aggregator over recorded sweeps, in both profiles: every formula, every difference."""

from __future__ import annotations

import math

import pytest

from gradestack import Grade, Key
from gradestack_plugins.stability.aggregators import PER_GOLD, RATES
from tests.plugins.stability.stability_records import PROFILES, C, D, I, R, T, item, record, stability


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
