"""The stability aggregator over recorded sweeps, in both profiles: every formula, every difference."""

from __future__ import annotations

from gradestack import Grade, Key
from gradestack_plugins.stability.aggregators import RATES
from tests.plugins.stability.stability_records import T, record, stability


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
