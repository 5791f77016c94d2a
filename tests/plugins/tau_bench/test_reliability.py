"""Aggregators ``pass_hat_k`` and ``pass_at_k``."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Fault, Grade, Key, Outcome, failed, skipped
from gradestack.cli import main
from gradestack_plugins.tau_bench.reliability import PassAtK, PassHatK

FAILED = failed(Fault(category="data", code="x"))


def entry(task, run, success, model=None):
    return Key(id=task, run=run, model=model), Grade(score=float(success), passed=bool(success))


def rows(**tasks):
    """Return entries from strings of 0 and 1, one per trial; "." is a trial that is not there."""
    return [
        entry(task, run, mark == "1") for task, marks in tasks.items() for run, mark in enumerate(marks) if mark != "."
    ]


def test_pass_hat_k_by_hand(tau):
    """Three tasks with 3, 4 and 0 of 4 successes."""
    out = tau.fold(PassHatK(), rows(a="1110", b="1111", c="0000"))
    assert out["pass_hat_k"] == {
        "1": float(Fraction(7, 12)),
        "2": 0.5,
        "3": float(Fraction(5, 12)),
        "4": float(Fraction(1, 3)),
    }
    assert (out["trials"], out["rule"], out["tasks"], out["records"], out["successes"]) == (4, "file", 3, 12, 7)
    assert out["tasks_by_successes"] == {"0": 1, "3": 1, "4": 1}


def test_pass_at_k_by_hand(tau):
    """The same three tasks: one success among k."""
    out = tau.fold(PassAtK(), rows(a="1110", b="1111", c="0000"))
    two_thirds = float(Fraction(2, 3))
    assert out["pass_at_k"] == {"1": float(Fraction(7, 12)), "2": two_thirds, "3": two_thirds, "4": two_thirds}
    assert out["tasks_at_k"] == {"1": 3, "2": 3, "3": 3, "4": 3}


def test_the_drawing_of_trials_is_what_is_counted(tau):
    """Both figures equal the share of all k-subsets of trials, enumerated."""
    marks = {"a": [1, 0, 1, 1, 0], "b": [0, 0, 0, 1, 0], "c": [1, 1, 1, 1, 1]}
    entries = rows(**{task: "".join(map(str, found)) for task, found in marks.items()})
    hat, at = tau.fold(PassHatK(), entries)["pass_hat_k"], tau.fold(PassAtK(), entries)["pass_at_k"]
    for k in range(1, 6):
        draws = [list(itertools.combinations(found, k)) for found in marks.values()]
        assert hat[str(k)] == float(sum(Fraction(sum(map(all, drawn)), len(drawn)) for drawn in draws) / 3)
        assert at[str(k)] == float(sum(Fraction(sum(map(any, drawn)), len(drawn)) for drawn in draws) / 3)


def test_a_missing_trial_counts_as_failed_by_file_and_not_by_task(tau):
    """Rule ``file`` divides by the trials of the file, rule ``task`` by those of the task."""
    entries = rows(a="11", b="1.")
    assert tau.fold(PassHatK(), entries)["pass_hat_k"] == {"1": 0.75, "2": 0.5}
    assert tau.fold(PassHatK(trials="file"), entries)["pass_hat_k"] == {"1": 0.75, "2": 0.5}
    assert tau.fold(PassHatK(trials="task"), entries)["pass_hat_k"] == {"1": 1.0}
    assert tau.fold(PassAtK(), entries)["pass_at_k"] == {"1": 1.0, "2": 1.0}
    assert tau.fold(PassAtK(), entries)["tasks_at_k"] == {"1": 2, "2": 1}


def test_tasks_present_more_often_than_trials_can_exceed_one(tau):
    """Two runs with the same trial numbers in one file: more successes than trials, as in the original."""
    entries = [*rows(a="11"), *rows(a="11")]
    assert tau.fold(PassHatK(), entries)["pass_hat_k"] == {"1": 2.0, "2": 6.0}
    assert tau.fold(PassHatK(trials="task"), entries)["pass_hat_k"] == {"1": 1.0, "2": 1.0, "3": 1.0, "4": 1.0}


def test_figures_beyond_any_number_are_undefined(tau):
    """Masses of records of the same trials give null rather than an error."""
    key, grade = entry("a", 0, 1)
    others = [entry("b", run, 0) for run in range(200)]
    out = tau.fold(PassHatK(max_k=200), [*others, *[(key, grade)] * 20_000])
    assert out["pass_hat_k"]["1"] == 20_000 / 200 / 2
    assert out["pass_hat_k"]["200"] is None


def test_failed_grades_are_failed_trials_and_skipped_ones_none(tau):
    """A failed grade is a trial that failed; a skipped one is as if it were not there."""
    entries = [*rows(a="1"), (Key(id="a", run=1), FAILED), (Key(id="a", run=2), skipped("x", "y"))]
    out = tau.fold(PassHatK(), entries)
    assert (out["pass_hat_k"], out["trials"], out["records"]) == ({"1": 0.5, "2": 0.0}, 2, 2)


def test_missing_tasks(tau):
    """A task without any record fails all trials by file; by task it is left out and counted."""
    entries = [*rows(a="11"), (Key(id="b"), Grade(outcome=Outcome.MISSING))]
    assert tau.fold(PassHatK(), entries)["pass_hat_k"] == {"1": 0.5, "2": 0.5}
    by_task = tau.fold(PassHatK(trials="task"), entries)
    assert (by_task["pass_hat_k"], by_task["tasks_without_trials"], by_task["tasks"]) == ({"1": 1.0, "2": 1.0}, 1, 2)
    assert tau.fold(PassAtK(), entries)["tasks_at_k"] == {"1": 1, "2": 1}


def test_success_without_a_verdict(tau):
    """Where a grader gives no verdict, a score within the tolerance of 1 is a success; a verdict goes first."""
    scores = [1.0, 0.9999995, 1.0000005, 0.99]
    entries = [(Key(id=str(number), run=0), Grade(score=score)) for number, score in enumerate(scores)]
    assert tau.fold(PassHatK(), entries)["successes"] == 3
    assert tau.fold(PassHatK(tolerance=0.02), entries)["successes"] == 4
    assert tau.fold(PassHatK(), [(Key(id="a", run=0), Grade(score=1.0, passed=False))])["successes"] == 0
    assert tau.fold(PassHatK(), [(Key(id="a", run=0), Grade(score=0.0, passed=True))])["successes"] == 1


def test_records_without_trial_identifiers(tau):
    """They are numbered within their task, so that both rules have trials to count."""
    entries = [entry("a", None, 1), entry("a", None, 0), entry("b", None, 1)]
    assert tau.fold(PassHatK(), entries)["pass_hat_k"] == {"1": 0.5, "2": 0.0}
    assert tau.fold(PassHatK(trials="task"), entries)["pass_hat_k"] == {"1": 0.75}


def test_trial_identifiers_are_distinct_by_type(tau):
    """Trial 1 and trial "1" are two trials."""
    assert tau.fold(PassHatK(), [entry("a", 1, 1), entry("a", "1", 0)])["trials"] == 2


def test_models_have_their_own_trials(tau):
    """Tasks of two models are different tasks; each model has its own number of trials, k runs to the smaller."""
    entries = [entry("a", run, 1, "m") for run in range(3)] + [entry("a", run, run, "n") for run in range(2)]
    out = tau.fold(PassHatK(), entries)
    assert (out["pass_hat_k"], out["trials"], out["tasks"]) == ({"1": 0.75, "2": 0.5}, 2, 2)


def test_tasks_of_several_models_are_clustered(tau):
    """The figure is the mean over models and tasks; its interval leaves out a task under all models at once."""
    both = [entry(task, 0, good, model) for model in "mn" for task, good in (("a", 1), ("b", 0), ("c", 1))]
    for aggregator, name in ((PassHatK(), "pass_hat_k"), (PassAtK(), "pass_at_k")):
        out, one = tau.fold(aggregator, both), tau.fold(aggregator, both[:3])
        assert out[name] == one[name]
        assert out[f"{name}_interval"]["1"] == {**one[f"{name}_interval"]["1"], "n": 6}
        assert out["models"]["m"] == one


def test_a_model_without_trials_stands_beside_the_others(tau):
    """Its figure is null, with the reason."""
    out = tau.fold(PassHatK(), [entry("a", 0, 1, "m"), (Key(id="a", model="n"), Grade(outcome=Outcome.MISSING))])
    assert [each["pass_hat_k"] for each in out["models"].values()] == [{"1": 1.0}, None]
    assert "no task has a trial" in out["models"]["n"].values()


def test_max_k(tau):
    """``max_k`` limits k, a larger one than the trials does nothing, one below 1 is refused."""
    assert list(tau.fold(PassHatK(max_k=2), rows(a="1111"))["pass_hat_k"]) == ["1", "2"]
    assert list(tau.fold(PassAtK(max_k=9), rows(a="11"))["pass_at_k"]) == ["1", "2"]
    with pytest.raises(ValueError, match="max_k must be at least 1"):
        PassHatK(max_k=0)
    with pytest.raises(ValueError, match="tolerance"):
        PassAtK(tolerance=-1.0)


def test_k_is_limited_by_default(tau):
    """Without ``max_k`` at most a hundred figures are given."""
    entries = [entry("a", run, 1) for run in range(130)]
    assert len(tau.fold(PassHatK(), entries)["pass_hat_k"]) == 100
    assert len(tau.fold(PassHatK(max_k=120), entries)["pass_hat_k"]) == 120


def test_nothing_is_undefined_not_zero(tau):
    """Without trials there is no figure, and a reason."""
    for aggregator, name in ((PassHatK(), "pass_hat_k"), (PassAtK(), "pass_at_k")):
        out = tau.fold(aggregator, [])
        assert (out[name], out[f"{name}_reason"]) == (None, "no task has a trial")


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=5))
def test_bounds_and_order(tau, tasks):
    """With equal trials pass^k falls with k, pass@k rises, both are fractions and equal for k = 1."""
    entries = [entry(str(task), run, success) for task, found in enumerate(tasks) for run, success in enumerate(found)]
    hat = list(tau.fold(PassHatK(), entries)["pass_hat_k"].values())
    at = list(tau.fold(PassAtK(), entries)["pass_at_k"].values())
    assert hat == sorted(hat, reverse=True)
    assert at == sorted(at)
    assert hat[0] == at[0]
    assert 0.0 <= hat[-1] <= at[-1] <= 1.0


def test_counts_do_not_bear_the_label_of_a_reliability(tmp_path):
    """In the page's list of figures only those of some k do."""
    results, place = Path(__file__).parents[3] / "examples/airline/results.json", tmp_path / "out"
    with pytest.raises(SystemExit, match="0"):
        main(["grade", str(results), "-o", str(place), "--set", "reports=[markdown]"])
    lines = (place / "report.md").read_text(encoding="utf-8").splitlines()
    paths = [line.split("`")[1] for line in lines if " of k trials " in line and "`" in line]
    assert sorted(paths) == [f"{name}.{name}.{k}" for name in ("pass_at_k", "pass_hat_k") for k in range(1, 5)]
