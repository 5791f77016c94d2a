"""A law: a comparison of any two runs ends, with its pages, or with a sentence why it cannot be."""

import json
import math
import random
from typing import ClassVar

import pytest

import gradestack
from gradestack import DataError, Grade, Grader, compare
from gradestack_plugins.pages.comparison import console_lines
from tests.core.outcomes import write_records

HUGE = [1e308, -1e308, 1.7e308, 5e-324, 0.0, 1e-300]


class Amount(Grader):
    """A recorded amount of any size; fails where there is none."""

    bounds: ClassVar = (-math.inf, math.inf)

    def grade(self, sample):
        amount = sample.recorded["amount"]
        return Grade(score=amount)


def draw_run(rng):
    """Return samples of a run: few or many tasks, some broken, huge, or without a verdict."""
    draw_amount = rng.choice(
        [lambda: rng.choice(HUGE), rng.random, lambda: 0.5, lambda: rng.choice([0.0, 1.0])]
    )
    samples = []
    has_models = rng.random() < 0.2
    names = []
    for _ in range(rng.choice([1, 2, 5, 20])):
        names.append(f"t{rng.randrange(12)}")
    for run, name in enumerate(names):
        sample = {"id": name, "run": run, "expected": "x"}
        sample["predicted"] = rng.choice(["x", "y"])
        if rng.random() < 0.9:
            sample["recorded"] = {"amount": draw_amount()}
        if rng.random() < 0.1:
            sample["error"] = "timed out"
        if rng.random() < 0.5:
            usage = {"cost_usd": draw_amount(), "input_tokens": rng.choice([1, 10**18])}
            output_tokens = rng.randrange(9)
            sample["usage"] = {**usage, "output_tokens": output_tokens}
        if has_models:
            sample["model"] = rng.choice(["m", "n"])
        if rng.random() < 0.3:
            kind = rng.choice(["a", "b"])
            sample["facets"] = {"kind": kind}
        samples.append(sample)
    return samples


def check_comparison(seed, out):
    """Compare random runs, and check that every medium of the comparison can be written."""
    rng = random.Random(seed)  # noqa: S311 - test data
    graders = {"amount": Amount, "match": {"kind": "exact_match"}}
    if rng.random() < 0.3:
        graders = dict(reversed(graders.items()))
    reports = []
    for _ in range(rng.choice([2, 2, 3])):
        sample = draw_run(rng)
        reports.append(gradestack.grade(sample, graders))
    confidence = rng.choice([0.95, 0.5, 0.999999])
    try:
        comparison = compare(*reports, output=out, confidence=confidence, force=rng.random() < 0.8)
    except (DataError, gradestack.ConfigError):  # one sentence, exit code 3 or 2
        return
    assert console_lines(comparison.data)
    text = json.dumps(comparison.data, allow_nan=False)
    document = json.loads(text)
    assert document["sentence"] == comparison.sentence
    assert (out / "comparison.html").is_file()
    assert (out / "comparison.md").is_file()


@pytest.mark.parametrize("seed", range(25))
def test_a_comparison_of_random_runs_ends(seed, tmp_path):
    out_folder = tmp_path / "out"
    check_comparison(seed, out_folder)


@pytest.mark.proof
@pytest.mark.parametrize("first", range(100, 500, 50))
def test_many_comparisons_of_random_runs_end(first, tmp_path):
    for seed in range(first, first + 50):
        check_comparison(seed, tmp_path / str(seed))


def test_what_a_run_takes_is_compared_where_it_is_recorded(command, tmp_path):
    """By the means of a task's trials, a family of its own; nothing where nobody records it."""
    files = []
    for name, cost in (("a", 0.01), ("b", 0.03)):
        lines = []
        for task in range(12):
            sample = {"id": f"t{task}", "expected": "x", "predicted": "x"}
            cost_usd = cost + 0.001 * (task % 3 if cost > 0.02 else 0)
            sample["usage"] = {"cost_usd": cost_usd}
            lines.append(sample)
        path = tmp_path / f"{name}.jsonl"
        write_records(path, lines)
        files.append(str(path))
    data = compare(*files).data
    (name,) = data["usage"]
    row = data["usage"][name]
    assert name == "cost_usd"
    assert row["verdict"] == "worse"
    assert row["tests"] == 1
    ends = row["interval"]["ends"]
    first_end = ends[0]
    assert first_end > 0
    expected = command("compare", *files).out
    assert "What a run takes:\n  Cost of a run  $0.0100 -> $0.0310  +$0.0210 (" in expected
    assert "identical" not in data["sentence"]
    assert data["sentence"].endswith(
        "b.jsonl and a.jsonl are the same in every task (12 tasks, 1 trial each)"
    )
