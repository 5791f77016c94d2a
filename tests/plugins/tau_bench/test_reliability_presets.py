"""Presets of pass^k: VitaBench, MCPMark and tau2-bench, by hand and by their formulas written once more."""

import math
import random
from fractions import Fraction

import pytest

import gradestack
from gradestack import Fault, Grade, Key, Outcome, failed, skipped, testing
from gradestack.suites.strict import Problems, structure
from gradestack_plugins.tau_bench.reliability import PassHatK

NAMES = {"tau2/pass": "a2c0247", "vitabench/pass": "14db9e3", "mcpmark/pass": "1b82b71"}
LOST = failed(Fault(category="data", code="x"))


def rows(model=None, **tasks):
    return [
        (Key(id=task, run=run, model=model), score if isinstance(score, Grade) else Grade(score=float(score)))
        for task, scores in tasks.items()
        for run, score in enumerate(scores)
    ]


def figures(name, entries, **options):
    metric = {"kind": "pass_hat_k", "preset": name, **options}
    return gradestack.figures({"k": metric}, [(key.id, key.run, key.model, grade) for key, grade in entries])["k"]


def test_tau2_counts_scores_within_a_millionth_by_task():
    """Whatever verdict the grader gives; skipped simulations are none, and k runs to the smallest number of a task."""
    near = Grade(score=1 - 9e-7, passed=False)
    found = figures("tau2/pass", rows(a=[1, near, 1 - 2e-6], b=[0, 1], c=[1, 1, skipped("left_out", "x")]))
    assert found["pass_hat_k"] == {"1": pytest.approx((2 / 3 + 0.5 + 1) / 3), "2": pytest.approx((1 / 3 + 0 + 1) / 3)}
    assert (found["preset"], found["rule"], found["trials"]) == ("tau2/pass@a2c0247", "task", 2)
    assert set(found["pass_hat_k_interval"]) == {"1", "2"}


def test_vitabench_asks_for_exactly_one_and_has_pass_at_k_and_averages():
    """pass@k and average@k are over the tasks with at least k records, pass^k over all, to the smallest number."""
    found = figures("vitabench/pass", rows(a=[1, 1 - 1e-9, 0.5], b=[1, 1]))
    assert found["pass_hat_k"] == {"1": (1 / 3 + 1) / 2, "2": 0.5}
    assert found["pass_at_k"] == {"1": (1 / 3 + 1) / 2, "2": float(Fraction(5, 6)), "3": 1.0}
    a = float((1 + Fraction(1 - 1e-9) + Fraction(1, 2)) / 3)
    assert found["average_at_k"] == {"1": pytest.approx((a + 1) / 2), "2": pytest.approx((a + 1) / 2), "3": a}
    assert found["preset"] == "vitabench/pass@14db9e3"
    assert set(found["pass_at_k_interval"]) == set(found["average_at_k_interval"]) == {"1", "2", "3"}


def test_mcpmark_looks_at_all_runs_of_all_tasks():
    """A task that a run lacks failed there; figures have four decimals, those of a run six before they are averaged."""
    found = figures(
        "mcpmark/pass", [*rows(a=[1, 1, 1], b=[0, 1, 0], c=[1, 1]), (Key(id="d"), Grade(outcome=Outcome.MISSING))]
    )
    rates = [0.5, 0.75, 0.25]
    assert (found["pass_at_1"], found["pass_at_1_std"]) == (
        0.5,
        round(math.sqrt(sum((x - 0.5) ** 2 for x in rates) / 3), 4),
    )
    assert (found["pass_hat_k"], found["pass_at_k"]) == ({"3": 0.25}, {"3": 0.75})
    assert found["preset"] == "mcpmark/pass@1b82b71"
    assert {"pass_at_1_interval", "pass_at_k_interval", "pass_hat_k_interval"} <= found.keys()
    thirds = figures("mcpmark/pass", rows(a=[1, LOST], b=[0, 0], c=[0, 1]))
    assert (thirds["pass_at_1"], thirds["pass_at_1_std"], thirds["pass_hat_k"]) == (0.3333, 0.0, {"2": 0.0})


def test_mcpmark_has_no_figure_where_runs_cannot_be_told():
    unnamed = figures("mcpmark/pass", [(Key(id="a"), Grade(score=1.0))])
    assert (unnamed["pass_hat_k"], unnamed["pass_hat_k_reason"]) == (None, "the runs are not named")
    assert "no task has a trial" in figures("mcpmark/pass", []).values()
    both = figures("mcpmark/pass", rows("m", a=[1, 1]) + rows("n", a=[1, 0]))
    assert (both["pass_hat_k"], "several models" in both["pass_hat_k_reason"]) == (None, True)
    assert {model: each["pass_hat_k"]["2"] for model, each in both["models"].items()} == {"m": 1.0, "n": 0.0}


def test_models_have_their_own_rewards():
    """Over all models tasks are by model, as in pass^k itself."""
    found = figures("vitabench/pass", rows("m", a=[1, 1]) + rows("n", a=[0.5, 0]))
    assert found["average_at_k"] == {"1": 0.625, "2": 0.625}
    assert {model: each["average_at_k"]["2"] for model, each in found["models"].items()} == {"m": 1.0, "n": 0.25}
    more = figures(
        "vitabench/pass", rows("m", a=[1, 1], b=[0, 1], c=[0, 0]) + rows("n", a=[0.5, 0], b=[1, 1], c=[0, 1])
    )
    for name in ("pass_at_k", "average_at_k"):  # a task is one cluster, whatever the models
        assert (more[f"{name}_interval"]["1"]["clusters"], more[f"{name}_interval"]["1"]["n"]) == (3, 12)


@pytest.mark.parametrize("name", NAMES)
def test_presets_equal_their_formulas(name):
    """Thirty random recordings, by direct enumeration in floats."""
    rng = random.Random(name)  # noqa: S311 - test data
    for _ in range(30):
        runs = rng.randrange(1, 5)
        tasks = {
            f"t{n}": [rng.choice([0.0, 0.5, 1.0, 1 - 1e-7]) for _ in range(runs)] for n in range(rng.randrange(1, 6))
        }
        found = figures(name, rows(**tasks))
        good = {task: sum(_success(name, each) for each in scores) for task, scores in tasks.items()}
        if name == "mcpmark/pass":
            assert found["pass_hat_k"] == {str(runs): round(sum(c == runs for c in good.values()) / len(tasks), 4)}
            assert found["pass_at_k"] == {str(runs): round(sum(c > 0 for c in good.values()) / len(tasks), 4)}
            continue
        for k in range(1, runs + 1):
            hat = sum(math.comb(c, k) / math.comb(runs, k) for c in good.values()) / len(tasks)
            assert found["pass_hat_k"][str(k)] == pytest.approx(hat, abs=1e-12)
            if name == "vitabench/pass":
                at = sum(1 - math.comb(runs - c, k) / math.comb(runs, k) for c in good.values()) / len(tasks)
                assert found["pass_at_k"][str(k)] == pytest.approx(at, abs=1e-12)
                mean = sum(sum(scores) / runs for scores in tasks.values()) / len(tasks)
                assert found["average_at_k"][str(k)] == pytest.approx(mean, abs=1e-12)


def _success(name, score):
    return score == 1.0 if name == "vitabench/pass" else abs(score - 1) <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_presets_keep_the_laws_of_aggregators(name):
    """Any split, blocks, JSON round trips."""
    testing.check_aggregator(PassHatK(preset=name))


def test_a_preset_is_named_with_its_version_and_refuses_what_contradicts_it():
    """Also in the suite's options; an unknown one with what was meant."""
    for name, version in NAMES.items():
        assert PassHatK(preset=name).preset == PassHatK(preset=f"{name}@{version}").preset == f"{name}@{version}"
    for options, said in (
        ({"preset": "mcpmark/pas"}, "did you mean 'mcpmark/pass'"),
        ({"preset": "mcpmark/pass@2"}, "in version 1b82b71 only"),
        ({"preset": "tau2/pass", "trials": "file"}, "leaves no choice for trials"),
        ({"preset": "vitabench/pass", "tolerance": 0.1}, "leaves no choice for tolerance"),
        ({"preset": "mcpmark/pass", "max_k": 2}, "leaves no choice for max_k"),
    ):
        with pytest.raises(Problems, match=said):
            structure(options, PassHatK)
    assert list(figures("tau2/pass", rows(a=[1, 1, 1]), max_k=2)["pass_hat_k"]) == ["1", "2"]


def test_a_suite_keeps_a_preset_with_its_version(tmp_path):
    """So that header.json names it, however it was written."""
    (tmp_path / "runs.jsonl").write_text('{"id": "a", "run": 0, "predicted": [], "recorded": {"reward": 1}}\n')
    metric = "{kind: pass_hat_k, of: r, preset: mcpmark/pass}"
    suite = f"name: s\ntarget: {{paths: [runs.jsonl]}}\ngraders: {{r: tau_reward}}\nmetrics: {{mark: {metric}}}\n"
    (tmp_path / "suite.yaml").write_text(suite)
    found = gradestack.load_suite(tmp_path / "suite.yaml").metrics
    assert {"preset": "mcpmark/pass@1b82b71"} in [each.stage.options for each in found]
