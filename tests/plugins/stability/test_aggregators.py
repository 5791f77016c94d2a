"""Stability of runs: measures, grades, aggregators."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Grade, Key, Outcome
from gradestack.suites.options import Problems, structure
from gradestack_plugins.stability.aggregators import (
    MEANS,
    Stability,
    Task,
)
from tests.core.outcomes import data
from tests.plugins.stability.stability_records import LABELS, I, T, record, stability

DATA = data(__file__, "aggregators.yaml")


def test_a_null_run_is_missing(evaluate):
    """Four alike and a null: not stable, but neither entropy nor a flip."""
    rates = evaluate([record("a", [T, T, T, T, None])])
    names = ("mean_consistency_at_k", "mean_entropy", "mean_flip_rate", "mean_accuracy_across_runs")
    assert [rates[name] for name in names] == [0.8, 0.0, 0.0, 0.8]
    assert rates["n_runs_missing"] == 1


def test_without_any_task_there_is_nothing(evaluate):
    """Null with a reason."""
    rates = evaluate([])
    for name in ("coverage", *MEANS):
        assert rates[name] is None
        rate = rates[f"{name}_interval"]
        reason = rate["reason"]
        assert reason.startswith("no task")


def run(identifier, label, gold=T, ordinal=0, **more):
    model = more.pop("model", None)
    facets = more.pop("facets", {})
    key = Key(id=identifier, model=model, ordinal=ordinal, facets=facets)
    score = float(label == gold)
    return key, Grade(score=score, label=label, gold=gold, **more)


@pytest.mark.parametrize("case", DATA["graded"], ids=lambda case: case["name"])
def test_grades_by_hand(case):
    """Runs are graded by their label against ``gold``, or as they say themselves."""
    graded = []
    for ordinal, given_run in enumerate(case["runs"]):
        gold = T if "label" in given_run else None
        fields = {"gold": gold, "outcome": "graded", **given_run}
        key = Key(
            ordinal=ordinal,
            **{name: fields.pop(name) for name in ("id", "model", "facets") if name in fields},
        )
        if "label" in fields:
            label = fields["label"]
            fields["score"] = float(label == fields["gold"])
        outcome = Outcome(fields["outcome"])
        graded.append((key, Grade(**{**fields, "outcome": outcome})))
    options = case.get("options", {})
    rates = stability(graded, **options)
    for name, value in case["is"].items():
        rate = rates[name]
        assert rate == (pytest.approx(value) if isinstance(value, float) else value), name


def test_sweeps_that_name_themselves_stay_apart(evaluate):
    records = [record("a", [T] * 3, ckpt_name="cold"), record("b", [T] * 3, ckpt_name="hot")]
    n_items_total = evaluate(records)["n_items_total"]
    assert n_items_total == 2


@pytest.mark.parametrize(("options", "message"), DATA["bad_options_are_refused_with_a_message"])
def test_bad_options_are_refused_with_a_message(options, message):
    with pytest.raises(Problems, match=message):
        structure(options, Stability)


sweeps = st.lists(
    st.tuples(
        st.lists(st.sampled_from([*LABELS, I]), min_size=1, max_size=6),
        st.sampled_from(LABELS),
        st.integers(0, 2),
    ),
    max_size=8,
)


def graded_of(sweeps):
    graded = []
    for n, (labels, gold, lost_runs) in enumerate(sweeps):
        for label in labels:
            identifier = f"t{n}"
            graded.append(run(identifier, label, gold, ordinal=len(graded)))
        graded += [
            (Key(id=f"t{n}", ordinal=len(graded) + k), Grade(outcome=Outcome.FAILED))
            for k in range(lost_runs)
        ]
    return graded


@given(sweeps)
def test_every_rate_lies_between_zero_and_one(given_sweeps):
    """Whatever the runs; and the parts of a whole add up."""
    graded = graded_of(given_sweeps)
    rates = stability(graded, labels=LABELS)
    for name in MEANS:
        if name != "mean_entropy":
            rate = rates[name]
            assert rate is None or 0 <= rates[name] <= 1
    if given_sweeps:
        both = rates["stable_and_correct_rate"] + rates["stable_but_wrong_rate"]
        assert rates["stability_at_k"] == pytest.approx(both)
        assert rates["stability_at_k"] <= rates["mean_consistency_at_k"]
        expected = sum(len(labels) + lost_runs for labels, _, lost_runs in given_sweeps)
        assert rates["n_runs_expected"] == expected


@given(sweeps, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(given_sweeps, shuffler):
    shuffled = list(given_sweeps)
    shuffler.shuffle(shuffled)
    one, two = (
        stability(graded_of(sweeps_in_order), labels=LABELS)
        for sweeps_in_order in (given_sweeps, shuffled)
    )
    text = json.dumps(one)
    assert text == json.dumps(two)


def measures_of(runs, k, labels):
    task = Task(id="t", runs=list(runs), gold="a", n_asked=k)
    task.measure(labels)
    return task.measures


@pytest.mark.parametrize(
    ("runs", "mode_is_a"), [("abab", 1.0), ("baab", 0.0), ("cab", 0.0), ("acbba", 1.0)]
)
def test_on_a_tie_the_label_seen_first_in_the_runs_is_the_mode(runs, mode_is_a):
    """Not the alphabetically first, and not the last."""
    measures = measures_of(runs, 0, "abcd")
    mode_correct_rate = measures["mode_correct_rate"]
    assert mode_correct_rate == mode_is_a


@pytest.mark.parametrize("case", DATA["measures"], ids=lambda case: case["name"])
def test_measures_by_hand(case):
    labels = case.get("labels", "abcd")
    rates = measures_of(case["runs"], case["k"], labels)
    for name, value in case["is"].items():
        rate = rates[name]
        assert rate == (pytest.approx(value) if isinstance(value, float) else value), name
