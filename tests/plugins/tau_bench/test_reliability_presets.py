"""Presets of pass^k.

VitaBench, MCPMark and tau2-bench, by hand and by their formulas written once more.
"""

import math
import random

import pytest

import gradestack
from gradestack import Grade, Key, testing
from gradestack_plugins.tau_bench.aggregators import PassHatK

NAMES = {"tau2/pass": "a2c0247", "vitabench/pass": "14db9e3", "mcpmark/pass": "1b82b71"}


def rows(model=None, **tasks):
    return [
        (
            Key(id=task, run=run, model=model),
            score if isinstance(score, Grade) else Grade(score=float(score)),
        )
        for task, scores in tasks.items()
        for run, score in enumerate(scores)
    ]


def figures(name, entries, **options):
    metric = {"kind": "pass_hat_k", "preset": name, **options}
    return gradestack.figures(
        {"k": metric}, [(key.id, key.run, key.model, grade) for key, grade in entries]
    )["k"]


@pytest.mark.parametrize("name", NAMES)
def test_presets_equal_their_formulas(name):
    """Thirty random recordings, by direct enumeration in floats."""
    rng = random.Random(name)  # noqa: S311 - test data
    for _ in range(30):
        runs = rng.randrange(1, 5)
        tasks = {
            f"t{n}": [rng.choice([0.0, 0.5, 1.0, 1 - 1e-7]) for _ in range(runs)]
            for n in range(rng.randrange(1, 6))
        }
        found = figures(name, rows(**tasks))
        good = {
            task: sum(_success(name, each) for each in scores) for task, scores in tasks.items()
        }
        if name == "mcpmark/pass":
            assert found["pass_hat_k"] == {
                str(runs): round(sum(c == runs for c in good.values()) / len(tasks), 4)
            }
            assert found["pass_at_k"] == {
                str(runs): round(sum(c > 0 for c in good.values()) / len(tasks), 4)
            }
            continue
        for k in range(1, runs + 1):
            hat = sum(math.comb(c, k) / math.comb(runs, k) for c in good.values()) / len(tasks)
            assert found["pass_hat_k"][str(k)] == pytest.approx(hat, abs=1e-12)
            if name == "vitabench/pass":
                at = sum(
                    1 - math.comb(runs - c, k) / math.comb(runs, k) for c in good.values()
                ) / len(tasks)
                assert found["pass_at_k"][str(k)] == pytest.approx(at, abs=1e-12)
                mean = sum(sum(scores) / runs for scores in tasks.values()) / len(tasks)
                assert found["average_at_k"][str(k)] == pytest.approx(mean, abs=1e-12)


def _success(name, score):
    return score == 1.0 if name == "vitabench/pass" else abs(score - 1) <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_presets_keep_the_laws_of_aggregators(name):
    """Any split, blocks, JSON round trips."""
    testing.check_aggregator(PassHatK(preset=name))


def test_a_suite_keeps_a_preset_with_its_version(tmp_path):
    """So that header.json names it, however it was written."""
    (tmp_path / "runs.jsonl").write_text(
        '{"id": "a", "run": 0, "predicted": [], "recorded": {"reward": 1}}\n'
    )
    metric = "{kind: pass_hat_k, of: r, preset: mcpmark/pass}"
    suite = (
        "name: s\ntarget: {paths: [runs.jsonl]}\ngraders: {r: tau_reward}\nmetrics: "
        f"{{mark: {metric}}}\n"
    )
    (tmp_path / "suite.yaml").write_text(suite)
    found = gradestack.load_suite(tmp_path / "suite.yaml").metrics
    assert {"preset": "mcpmark/pass@1b82b71"} in [each.stage.options for each in found]
