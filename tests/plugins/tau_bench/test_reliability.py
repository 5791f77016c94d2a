"""Aggregators ``pass_hat_k`` and ``pass_at_k``."""

from pathlib import Path

import pytest

from gradestack import Grade, Key
from gradestack.cli import main
from gradestack_plugins.statistics.reliability import PassAtK, PassHatK


def entry(task, run, success, model=None):
    key = Key(id=task, run=run, model=model)
    return key, Grade(score=float(success), passed=bool(success))


def test_tasks_of_several_models_are_clustered(tau):
    """The figure is the mean over models and tasks.

    Its interval leaves out a task under all models at once.
    """
    both = []
    for model in "mn":
        for task, good in (("a", 1), ("b", 0), ("c", 1)):
            both.append(entry(task, 0, good, model))
    for aggregator, name in ((PassHatK(), "pass_hat_k"), (PassAtK(), "pass_at_k")):
        out = tau.fold(aggregator, both)
        grades = both[:3]
        one = tau.fold(aggregator, grades)
        assert out[name] == one[name]
        expected = {**one[f"{name}_interval"]["1"], "n": 6}
        expected_text = f"{name}_interval"
        assert out[expected_text]["1"] == expected
        assert out["models"]["m"] == one


def test_k_is_limited_by_default(tau):
    """Without ``max_k`` at most a hundred figures are given."""
    entries = [entry("a", run, 1) for run in range(130)]
    pass_hat_k_count = len(tau.fold(PassHatK(), entries)["pass_hat_k"])
    assert pass_hat_k_count == 100
    pass_hat_k = PassHatK(max_k=120)
    assert len(tau.fold(pass_hat_k, entries)["pass_hat_k"]) == 120


def test_counts_do_not_bear_the_label_of_a_reliability(tmp_path):
    """In the page's list of figures only those of some k do."""
    file_path = Path(__file__)
    results = file_path.parents[3] / "examples/airline/results.json"
    output = tmp_path / "out"
    with pytest.raises(SystemExit, match="0"):
        main(["grade", str(results), "-o", str(output), "--set", "reports=[markdown]"])
    report_path = output / "report.md"
    text = report_path.read_text(encoding="utf-8")
    lines = text.splitlines()
    rows = []
    for line in lines:
        if " of k trials " in line:
            rows.append(line.replace("\\", ""))
    paths = []
    for row in rows:
        if row.startswith("| reward."):
            paths.append(row.split(" | ")[0].removeprefix("| "))
    expected = []
    for name in ("pass_at_k", "pass_hat_k"):
        for k in range(1, 5):
            expected.append(f"reward.{name}.{name}.{k}")
    assert sorted(paths) == expected
