"""Aggregators ``pass_hat_k`` and ``pass_at_k``."""

import itertools
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Grade, Key
from gradestack.cli import main
from gradestack_plugins.tau_bench.reliability import PassAtK, PassHatK


def entry(task, run, success, model=None):
    return Key(id=task, run=run, model=model), Grade(score=float(success), passed=bool(success))


def rows(**tasks):
    """Return entries from strings of 0 and 1, one per trial; "." is a trial that is not there."""
    return [
        entry(task, run, mark == "1")
        for task, marks in tasks.items()
        for run, mark in enumerate(marks)
        if mark != "."
    ]


def test_the_drawing_of_trials_is_what_is_counted(tau):
    """Both figures equal the share of all k-subsets of trials, enumerated."""
    marks = {"a": [1, 0, 1, 1, 0], "b": [0, 0, 0, 1, 0], "c": [1, 1, 1, 1, 1]}
    entries = rows(**{task: "".join(map(str, found)) for task, found in marks.items()})
    hat, at = tau.fold(PassHatK(), entries)["pass_hat_k"], tau.fold(PassAtK(), entries)["pass_at_k"]
    for k in range(1, 6):
        draws = [list(itertools.combinations(found, k)) for found in marks.values()]
        assert hat[str(k)] == float(
            sum(Fraction(sum(map(all, drawn)), len(drawn)) for drawn in draws) / 3
        )
        assert at[str(k)] == float(
            sum(Fraction(sum(map(any, drawn)), len(drawn)) for drawn in draws) / 3
        )


def test_figures_beyond_any_number_are_undefined(tau):
    """Masses of records of the same trials give null rather than an error."""
    key, grade = entry("a", 0, 1)
    others = [entry("b", run, 0) for run in range(200)]
    out = tau.fold(PassHatK(max_k=200, trials="file"), [*others, *[(key, grade)] * 20_000])
    assert out["pass_hat_k"]["1"] == 20_000 / 200 / 2
    assert out["pass_hat_k"]["200"] is None


def test_tasks_of_several_models_are_clustered(tau):
    """The figure is the mean over models and tasks.

    Its interval leaves out a task under all models at once.
    """
    both = [
        entry(task, 0, good, model)
        for model in "mn"
        for task, good in (("a", 1), ("b", 0), ("c", 1))
    ]
    for aggregator, name in ((PassHatK(), "pass_hat_k"), (PassAtK(), "pass_at_k")):
        out, one = tau.fold(aggregator, both), tau.fold(aggregator, both[:3])
        assert out[name] == one[name]
        assert out[f"{name}_interval"]["1"] == {**one[f"{name}_interval"]["1"], "n": 6}
        assert out["models"]["m"] == one


def test_k_is_limited_by_default(tau):
    """Without ``max_k`` at most a hundred figures are given."""
    entries = [entry("a", run, 1) for run in range(130)]
    assert len(tau.fold(PassHatK(), entries)["pass_hat_k"]) == 100
    assert len(tau.fold(PassHatK(max_k=120), entries)["pass_hat_k"]) == 120


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=5))
def test_bounds_and_order(tau, tasks):
    """With equal trials pass^k falls with k, pass@k rises, both are fractions and equal
    for k = 1.
    """
    entries = [
        entry(str(task), run, success)
        for task, found in enumerate(tasks)
        for run, success in enumerate(found)
    ]
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
    assert sorted(paths) == [
        f"{name}.{name}.{k}" for name in ("pass_at_k", "pass_hat_k") for k in range(1, 5)
    ]
