"""Figures of a comparison: directions, pairs, values under a null hypothesis."""

import itertools
import json
import math
import os
import random
import statistics
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import gradestack
from gradestack import ConfigError, DataError, Grade, Grader, compare, figures, load_report
from gradestack.comparison.paired import (
    detectable,
    difference,
    holm,
    mid_p,
    power,
    sign_flips,
    t_test,
    tasks_needed,
)
from tests.core.outcomes import data, read_json, some_of, write_records

DATA = data(__file__, "figures.yaml")


def ends_of(result):
    return result.interval(0.05, result.p)


T_39 = 2.0226909200367604
"""The 0.975 quantile of Student's t with 39 degrees of freedom."""


class Labels(Grader):
    """The label that was asked for."""

    needs = frozenset({"label", "expected"})

    def grade(self, sample):
        score = float(sample.label == sample.expected.label)
        return Grade(
            score=score,
            label=sample.label,
            gold=sample.expected.label,
        )


def labelled(seed, right, tasks=40):
    """Return samples of three classes, one of them in one task only."""
    rng = random.Random(seed)  # noqa: S311 - test data
    for task in range(tasks):
        if task == 7:
            gold = "c"
        else:
            gold = "ab"[task % 2]
        for run in range(1 + task % 3):
            if rng.random() < right:
                predicted = gold
            else:
                predicted = rng.choice("abc")
            yield {"id": f"t{task}", "run": run, "expected": gold, "predicted": predicted}


def graded_to(folder, samples, **options):
    """Grade samples with a grader of labels into a folder, and return that folder."""
    metrics = {"classification": {"of": "g"}, "pass_hat_k": {"of": "g"}}
    graders = {"g": Labels} | options.pop("graders", {})
    gradestack.grade(
        samples,
        graders=graders,
        metrics=metrics | options.pop("metrics", {}),
        output=folder,
        **options,
    )
    return folder


@pytest.fixture
def two(tmp_path):
    """Return two runs of the same tasks by two models, one better."""
    folder = tmp_path / "a"
    samples = labelled(1, 0.5)
    return graded_to(folder, samples), graded_to(tmp_path / "b", labelled(2, 0.7))


def of_rows(report, without=None):
    """Compute the figures of a run's rows, by path."""
    rows = [
        (
            row["sample"]["id"],
            row["run"],
            None,
            Grade(score=grade["score"], label=grade["label"], gold=grade["gold"]),
        )
        for row in report.rows()
        if (grade := row["grades"]["g"]) and row["sample"]["id"] != without
    ]
    computed = figures({"classification": {"labels": ["a", "b", "c"]}, "pass_hat_k": {}}, rows)
    classes = computed["classification"]
    pass_hat_k = computed["pass_hat_k"]["pass_hat_k"]
    g_pass_hat_k_1 = pass_hat_k["1"]
    macro_f1 = classes["macro_f1"]
    accuracy = classes["accuracy"]
    per_class = classes["per_class"]
    return {
        "g.classification.macro_f1": macro_f1,
        "g.classification.accuracy": accuracy,
        "g.classification.per_class.a.f1": per_class["a"]["f1"],
        "g.pass_hat_k.1": g_pass_hat_k_1,
    }


@pytest.mark.slow
def test_figures_are_compared_by_leaving_out_a_task_of_both(two):
    """Pseudo-values of the difference, each figure computed anew.

    One class occurs in a single task.
    """
    a, b = map(load_report, two)
    before = of_rows(a)
    after = of_rows(b)
    left = []
    for task in range(40):
        rows = of_rows(a, f"t{task}")
        left.append((rows, of_rows(b, f"t{task}")))
    comparison = compare(*two, figures=list(before))
    compared = comparison.data["figures"]
    for path, row in compared.items():
        difference_of_all = after[path] - before[path]
        pseudo = [40 * difference_of_all - 39 * (y[path] - x[path]) for x, y in left]
        stderr = statistics.stdev(pseudo) / math.sqrt(40)
        assert (row["a"], row["b"]) == pytest.approx((before[path], after[path]), rel=1e-12)
        assert (row["difference"], row["stderr"]) == pytest.approx(
            (difference_of_all, stderr), rel=1e-9
        )
        ci95 = row["ci95"]
        half = T_39 * stderr
        ends = [difference_of_all - half, min(1, difference_of_all + half)]
        assert ci95 == pytest.approx(ends, rel=1e-9)
        assert row["tasks"] == 40
        keys = row.keys()
        assert not {"better", "worse", "same"} & keys  # of means of scores only
    assert list(compared) == list(before)


def test_a_mean_over_tasks_has_the_differences_of_its_tasks(tmp_path):
    once = ((record for record in labelled(seed, 0.5) if not record["run"]) for seed in (3, 4))
    a_folder = tmp_path / "a"
    b_folder = tmp_path / "b"
    a, b = map(graded_to, (a_folder, b_folder), once)
    data = compare(a, b, figures=["g.classification.accuracy"]).data
    scores = data["metrics"]["g"]
    figure = data["figures"]["g.classification.accuracy"]
    for name in ("a", "b", "difference", "stderr", "ci95", "p"):
        score = scores[name]
        assert figure[name] == pytest.approx(score, rel=1e-9), name


@pytest.mark.slow
def test_the_figures_of_the_headline_are_compared_unasked(tmp_path, command):
    """Those that are no means, after the outcome's rate; one list to Holm's adjustment."""
    call = {"name": "f", "arguments": {}}
    for name, right in (("a", 3), ("b", 2)):
        lines = []
        for t in range(12):
            predicted = [call] if t % right else []
            lines.append({"id": t, "expected": [call], "predicted": predicted})
        path = tmp_path / f"{name}.jsonl"
        write_records(path, lines)
    files = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    data = compare(*files).data
    metrics = list(data["metrics"])
    assert metrics == ["calls"]
    names = ("f1", "precision", "recall", "argument_f1")
    _, precision, recall, _ = expected = [f"calls.call_figures.{name}" for name in names]
    assert list(data["figures"]) == expected
    figure = data["figures"][recall]
    assert figure["difference"] == pytest.approx(6 / 12 - 8 / 12)
    named = command("compare", *files, "--figure", recall)
    assert named.code == 0
    assert recall in named.out
    assert precision not in named.out


def test_what_is_undefined_on_one_side_says_so(tmp_path):
    """Nobody said "a" in one run, so that there is no precision of it.

    And none without the only task that says it.
    """
    rows = []
    for t in range(4):
        rows.append({"id": str(t), "expected": "a", "predicted": "b"})
    folder = tmp_path / "a"
    a = graded_to(folder, rows)
    first_row = rows[0]
    samples = [{**first_row, "predicted": "a"}, *rows[1:]]
    b_folder = tmp_path / "b"
    b = graded_to(b_folder, samples)
    path = "g.classification.per_class.a.precision"
    comparison = compare(a, b, figures=[path]).data["figures"][path]
    assert comparison["difference"] is None
    assert comparison["p"] is None
    reason = comparison["interval"]["reason"]
    assert reason == "undefined on one side"
    comparison = compare(b, b, figures=[path], force=True).data["figures"][path]
    assert comparison["p"] is None
    assert comparison["interval"]["reason"] == "undefined without some task"


def test_figures_that_are_none_or_were_computed_otherwise_are_refused(two, tmp_path):
    a, b = two
    with pytest.raises(
        ConfigError, match=r"a has no figure 'g.clasification.macro_f1'.*g.classification"
    ):
        compare(a, b, figures=["g.clasification.macro_f1"])
    with pytest.raises(ConfigError, match=r"no figure 'macro_f'.*did you mean 'macro_f1'"):
        compare(a, b, figures=["g.classification.macro_f"])
    folder = tmp_path / "c"
    samples = labelled(1, 0.5)
    other = graded_to(
        folder,
        samples,
        metrics={"classification": {"of": "g", "labels": ["a", "b", "c", "d"]}},
    )
    with pytest.raises(DataError, match="the aggregators of a and c differ in options"):
        compare(a, other, figures=["g.classification.macro_f1"])
    for run_name in ("a", "c"):
        path = tmp_path / run_name / "summary.json"
        summary = read_json(path)
        summary["headline"] = {
            "letta": False,
            "figures": [{"figure": "g.classification.macro_f1", "value": 0.5}],
        }
        text = json.dumps(summary)
        path.write_text(text)
    data = compare(a, other).data
    assert "figures" not in data
    not_compared = list(data["not_compared"])
    assert not_compared == ["g.classification.macro_f1"]


def test_what_is_no_share_is_not_cut_to_shares(tmp_path):
    """Steps, whose grader has other bounds, however few they are.

    A score beyond [0, 1] tells, too.
    """

    def run(name, steps):
        samples = []
        for task, number in enumerate(steps):
            messages = [{"role": "assistant", "content": "x"}] * number
            samples.append({"id": str(task), "messages": messages})
        output = tmp_path / name
        gradestack.grade(samples, graders={"steps": {"kind": "usage"}}, output=output)
        return tmp_path / name

    metrics = compare(run("a", [1, 1, 1]), run("b", [1, 1, 3])).data["metrics"]
    comparison = metrics["steps"]
    result = difference([0.0, 0.0, 2.0], limit=math.inf)
    ends = ends_of(result)
    assert comparison["ci95"] == ends
    assert comparison["ci95"][1] > 1
    assert comparison["mde80"] > 1


def test_flips_have_no_trial_that_was_skipped(tmp_path):
    """A sample a grader does not apply to has not failed.

    One that failed has, unless failed ones are left out.
    """

    def run(name, *samples):
        output = tmp_path / name
        gradestack.grade(samples, graders={"g": {"kind": "exact_match"}}, output=output)
        return tmp_path / name

    right = [{"id": task, "expected": "x", "predicted": "x"} for task in "abc"]
    a = run("a", *right)
    b = run(
        "b",
        right[0],
        {"id": "b", "predicted": "x"},
        {"id": "c", "expected": "x", "error": "timed out"},
    )
    flips = {}
    for failed in ("zero", "skip"):
        comparison = compare(a, b, failed=failed, force=True)
        flips[failed] = comparison.data["flips"]
    assert {failed: flip["broken"] for failed, flip in flips.items()} == {"zero": 1, "skip": 0}
    tasks = flips["zero"]["tasks"]
    assert tasks == [{"task": "c", "a": "1/1", "b": "0/1"}]


OWN = DATA["own"]


@pytest.fixture(
    params=some_of([[("own.py:Hits", "")], [("hits", "plugins: [own.py]")]], 2),
    ids=["named", "offered"],
)
def runs_of_own(request, tmp_path, command, monkeypatch):
    """Grade two runs with an aggregator of a file, and return the path of that file."""
    monkeypatch.chdir(tmp_path)
    own_path = tmp_path / "own.py"
    own_path.write_text(OWN)
    for name, right in (("a", 1), ("b", 2)):
        lines = []
        for t in range(30):
            predicted = "y"
            if t % 3 < right:
                predicted = "x"
            lines.append({"id": str(t), "expected": "x", "predicted": predicted})
        path = tmp_path / f"{name}.jsonl"
        write_records(path, lines)
        kind, offered = request.param
        suite = (
            f"name: s\ntarget: {{paths: [{name}.jsonl]}}\ngraders: {{g: "
            f"exact_match}}\nreports: []\n{offered}\n"
        )
        suite += (
            f"metrics: {{h: {{kind: '{kind}', of: g}}}}\nheadline: {{figures: {{Hits: "
            "g.h.rate}}\n"
        )
        suite_path = tmp_path / "suite.yaml"
        suite_path.write_text(suite)
        expected_text = f"run-{name}"
        assert command("run", "suite.yaml", "-o", expected_text, "--allow-code").code == 0
    return tmp_path / "own.py"


@pytest.mark.slow
def test_figures_of_an_aggregator_in_a_file_are_compared_where_that_is_allowed(
    runs_of_own, command
):
    runs = "run-a", "run-b"
    comparison = compare(*runs)
    refused = comparison.data["not_compared"]["g.h.rate"]
    assert refused.endswith("pass --allow-code if you trust own.py, which the run used")
    data = compare(*runs, allow_code=True).data
    figure = data["figures"]["g.h.rate"]
    assert figure["a"] == pytest.approx(1 / 3)
    assert figure["b"] == pytest.approx(2 / 3)
    assert figure["verdict"] == "worse"
    assert figure["label"] == "Hits"
    assert figure["better_is"] == "lower"
    result = command("compare", *runs, "--figure", "g.h.rate", "--allow-code")
    assert result.code == 0
    assert "g.h.rate" in result.out
    assert command("compare", *runs, "--figure", "g.h.rate").code == 2
    runs_of_own.write_text(OWN.replace("== 1", "== 0"))
    not_compared = compare(*runs, allow_code=True).data["not_compared"]
    g_h_rate = not_compared["g.h.rate"]
    assert "is no longer that of the run of" in g_h_rate
    runs_of_own.unlink()
    expected = compare(*runs, allow_code=True).data["not_compared"]["g.h.rate"]
    assert "own.py: no such Python file" in expected


MIDDLE = DATA["middle"]
"""The median of all scores: neither of sums over tasks nor a mean of tasks."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "reason"), [(20, None), (1050, "too many tasks to leave out each")]
)
def test_other_figures_are_compared_by_leaving_out_each_task_as_long_as_there_are_few(
    tmp_path, tasks, reason
):
    rng, medians = random.Random(3), []  # noqa: S311 - test data
    middle_path = tmp_path / "middle.py"
    middle_path.write_text(MIDDLE)
    kind = f"{tmp_path}/middle.py:Middle"
    metrics = {"m": {"kind": kind, "of": "g"}}
    for name in "ab":
        scores = {}
        for task in range(tasks):
            scores[str(task)] = rng.random()
        samples = [{"id": task, "recorded": {"r": score}} for task, score in scores.items()]
        graders = {"g": lambda sample: sample.recorded["r"]}
        output = tmp_path / name
        gradestack.grade(samples, graders, metrics=metrics, output=output, allow_code=True)
        medians.append(statistics.median(scores.values()))
    path = "g.m.median"
    a_folder = tmp_path / "a"
    b_folder = tmp_path / "b"
    data = compare(a_folder, b_folder, figures=[path], allow_code=True, force=True).data
    figure = data["figures"][path]
    first_median = medians[0]
    assert figure["difference"] == pytest.approx(medians[1] - first_median)
    assert (reason is None) == (figure["p"] is not None)
    assert reason is None or figure["interval"]["reason"].endswith(reason)


FEW = {str(task): [0.0, 0.0] for task in range(20)}
MANY = {str(task): [1.0, 1.0 if task < 15 else 0.0] for task in range(20)}


def grader(better, verdict=None):
    class Recorded(Grader):
        def grade(self, sample):
            score = sample.recorded["score"]
            if verdict is None:
                passed = None
            else:
                passed = verdict(score)
            return Grade(score=score, passed=passed)

    Recorded.better = better
    return Recorded


def graded(out, scores, of, *, gate=None, models=None):
    """Grade tasks by their recorded scores into a folder, and return that folder."""
    samples = [
        {
            "id": task,
            "run": run,
            "recorded": {"score": score},
            **({"model": model} if model else {}),
        }
        for model, tasks in (models or {None: scores}).items()
        for task, runs in tasks.items()
        for run, score in enumerate(runs)
    ]
    gradestack.grade(samples, {"g": of}, gate=gate, output=out)
    return out


@pytest.mark.parametrize(
    ("better", "word", "flips", "tasks", "outcome"),
    some_of(DATA["a_rise_is_judged_by_the_direction"], 3),
)
def test_a_rise_is_judged_by_the_direction(tmp_path, better, word, flips, tasks, outcome):
    a, b = (
        graded(tmp_path / name, scores, grader(better))
        for name, scores in (("a", FEW), ("b", MANY))
    )
    data = compare(a, b).data
    verdict = data["metrics"]["g"]["verdict"]
    assert verdict == word
    worse = data["metrics"]["g"]["worse"]
    assert [data["metrics"]["g"]["better"], worse] == tasks
    fixed = data["flips"]["fixed"]
    broken = data["flips"]["broken"]
    assert [fixed, broken] == flips
    assert data.get("outcome", {}).get("verdict") == outcome
    expected_text = f"b is {word} than a by 87.5 points"
    assert expected_text in data["sentence"]


def test_a_verdict_of_its_own_decides_whatever_the_direction(tmp_path):
    of = grader("lower", verdict=lambda score: score < 0.75)
    half = {task: [0.5, 0.5] for task in FEW}
    a, b, c = (
        graded(tmp_path / name, scores, of)
        for name, scores in (("a", FEW), ("b", half), ("c", MANY))
    )
    comparison = compare(a, b)
    flips = comparison.data["flips"]
    assert flips["broken"] == 0
    broken = compare(a, c).data["flips"]["broken"]
    assert broken == 35


@pytest.mark.parametrize(
    ("better", "flips", "margin"),
    some_of(
        [
            ["lower", "failed", "failed"],
            ["higher", "passed", "passed"],
        ],
        2,
    ),
)
def test_gates_go_by_the_direction(tmp_path, better, flips, margin):
    before_folder = tmp_path / "before"
    before = graded(before_folder, FEW, grader(better))
    for name, rule, outcome in (
        ("flips", {"max_flips": 0}, flips),
        ("margin", {"not_worse_than": 0.05}, margin),
    ):
        gate = {"metric_key": "g", "baseline": str(before), **rule}
        graded(tmp_path / name, MANY, grader(better), gate=gate)
        path = tmp_path / name
        report = load_report(path)
        first_gate = report.gates[0]
        assert first_gate["outcome"] == outcome


@pytest.mark.parametrize(
    ("better", "passed", "rule"),
    [("higher", 35, "g score >= 1"), ("lower", 5, "g score <= 0"), ("neither", 0, None)],
)
def test_a_run_counts_successes_by_the_direction(tmp_path, better, passed, rule):
    run_folder = tmp_path / "run"
    path = graded(run_folder, MANY, grader(better))
    report = load_report(path)
    outcome = report.summary["outcome"] or {"passed": 0, "rule": None}
    assert outcome["passed"] == passed
    assert outcome["rule"] == rule
    rows = report.rows()
    count = sum(row["passed"] is True for row in rows)
    assert count == passed


class Failing(Grader):
    """Fails of tasks whose score is negative."""

    better: ClassVar = "lower"

    def grade(self, sample):
        score = sample.recorded["score"]
        if score < 0:
            msg = "broken"
            raise ValueError(msg)
        return Grade(score=sample.recorded["score"])


def test_crashing_more_does_not_win_where_lower_is_better(tmp_path):
    """A failed trial counts as the worst share there is."""
    a_folder = tmp_path / "a"
    a = graded(a_folder, {"1": [0.5], "2": [0.5]}, Failing)
    scores = {"1": [-1.0], "2": [0.5]}
    b_folder = tmp_path / "b"
    b = graded(b_folder, scores, Failing)
    comparison = compare(a, b)
    metrics = comparison.data["metrics"]
    metric = metrics["g"]
    assert metric["difference"] == 0.25
    assert metric["worse"] == 1


@pytest.mark.parametrize("seed", range(4))
def test_the_t_test_is_that_of_scipy(seed):
    stats = pytest.importorskip("scipy.stats")
    rng = random.Random(seed)  # noqa: S311 - test data
    values = []
    for _ in range(rng.randrange(2, 60)):
        values.append(rng.gauss(0.1, 0.3))
    computed = difference(values, limit=math.inf)
    oracle = stats.ttest_1samp(values, 0)
    assert computed.p == pytest.approx(oracle.pvalue, rel=1e-9)
    ends = ends_of(computed)
    confidence_interval = oracle.confidence_interval(0.95)
    assert ends == pytest.approx([*confidence_interval], rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 5, 30, 199, 5000])
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 1.0, 2.5, 12.0, 60.0])
def test_tails_are_those_of_scipy(df, t):
    stats = pytest.importorskip("scipy.stats")
    assert t_test(t, df) == pytest.approx(max(2 * float(stats.t.sf(t, df)), 5e-324), rel=1e-9)
    assert t_test(1e200, df) > 0


@pytest.mark.parametrize(
    ("effect", "tasks"), [(0.05, 3), (0.2, 10), (0.5, 50), (1.0, 5), (0.1, 1000), (3.0, 2)]
)
def test_power_is_that_of_the_noncentral_t(effect, tasks):
    stats = pytest.importorskip("scipy.stats")
    critical = stats.t.ppf(0.975, tasks - 1)
    shift = effect * math.sqrt(tasks)
    oracle = stats.nct.sf(critical, tasks - 1, shift) + stats.nct.cdf(-critical, tasks - 1, shift)
    assert power(effect, tasks) == pytest.approx(float(oracle), abs=1e-8)


def test_what_could_be_seen_has_that_power():
    effect = detectable(2.0, 30) / 2.0
    assert power(effect, 30) == pytest.approx(0.8, abs=1e-7)
    needed = tasks_needed(1.0, 0.2)
    tasks = needed - 1
    assert power(0.2, tasks) < 0.8 <= power(0.2, needed)
    assert detectable(1.0, 1) is None
    assert tasks_needed(0.0, 0.2) is None
    assert tasks_needed(1.0, 0.0) is None
    assert tasks_needed(1.0, 1e-6) is None


def test_all_sign_patterns_are_tried():
    """Against every pattern written out.

    Zeros have no sign, and beyond twenty there is no such figure.
    """
    values = [0.5, -0.25, 1.0, 0.125, 0.0]
    combinations = itertools.product((1, -1), repeat=5)
    sums = [
        sum(sign * value for sign, value in zip(signs, values, strict=True))
        for signs in combinations
    ]
    observed = abs(sum(values))
    assert sign_flips(values) == sum(abs(pattern_sum) >= observed for pattern_sum in sums) / 32
    assert sign_flips([0.5] * 21) is None
    assert sign_flips([0.0, 0.0]) == 1.0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "no task in common"),
        ([0.5], "one task"),
        ([1e308, -math.inf], "the values are too large to be subtracted"),
    ],
)
def test_what_has_no_test_says_why(values, reason):
    """And has no p that would look like certainty."""
    computed = difference(values)
    assert computed.p is None
    ends = ends_of(computed)
    assert ends is None
    assert computed.reason == reason


def test_no_difference_at_all_has_no_interval():
    computed = difference([0.0] * 50)
    ends = ends_of(computed)
    known = (computed.difference, computed.p, ends, computed.reason)
    assert known == (0.0, 1.0, None, "same in every task")


def test_differences_of_one_size_have_the_mid_p_test():
    """min(1, 2 P(X > x) + P(X = x)): 9 tasks up and 2 down of 11; those that did not change count
    for the interval alone.
    """
    computed = difference([1.0] * 9 + [-1.0] * 2 + [0.0] * 26)
    expected = (2 * (11 + 1) + 55) / 2**11
    assert computed.p == expected
    assert computed.p_exact == 2 * (55 + 11 + 1) / 2**11
    assert difference([0.5] * 9 + [-0.5] * 2).p == computed.p
    assert mid_p(0, 0) == mid_p(3, 3) == 1.0
    assert mid_p(5, 0) == 1 / 32


@pytest.mark.parametrize(("fixed", "broken"), [(0, 1), (13, 15), (1, 9), (400, 650), (5000, 4800)])
def test_mid_p_is_that_of_the_binomial_distribution(fixed, broken):
    stats = pytest.importorskip("scipy.stats")
    most = max(fixed, broken)
    of = stats.binom(fixed + broken, 0.5)
    assert mid_p(fixed, broken) == pytest.approx(2 * of.sf(most) + of.pmf(most), rel=1e-9)


def test_differences_beyond_any_sum_are_still_differences():
    limit = sys.float_info.max
    computed = difference([1e308, 1.5e308, 1e308, -1e308], limit=limit)
    assert computed.difference == pytest.approx(0.625e308)
    ends = ends_of(computed)
    assert all(map(math.isfinite, (computed.p, *ends)))


def test_an_interval_of_bounded_scores_is_cut():
    ends = ends_of(difference([1.0, 0.0]))
    assert ends[1] == 1.0
    result = difference([1.0, 0.0], limit=2.0)
    assert ends_of(result)[1] == 2.0


def test_several_metrics_are_adjusted():
    """Holm: the smallest times their number, the next times one less, never falling, at most 1."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_tasks_mean_is_the_same_on_every_python():
    """The exact sum, rounded once: Python's own is rounded at each step until 3.11."""
    runs = [
        gradestack.grade([{"id": "1", "run": n} for n in range(10)], {"g": lambda _: 0.1})
        for _ in range(2)
    ]
    comparison = gradestack.compare(*runs)
    metrics = comparison.data["metrics"]
    assert metrics["g"]["a"] == 0.1


@pytest.mark.slow
@pytest.mark.skipif(
    "GRADESTACK_REFERENCE_DATA" not in os.environ, reason="GRADESTACK_REFERENCE_DATA is not set"
)
def test_the_same_model_against_itself_shows_no_difference(tmp_path):
    """Trials 0 and 1 against 2 and 3: the known figures, and no more is said."""
    file = Path(os.environ["GRADESTACK_REFERENCE_DATA"]) / "tau-bench/gpt-4o-airline.json"
    records = read_json(file)
    runs = []
    for name, trials in (("a", (0, 1)), ("b", (2, 3))):
        path = tmp_path / f"{name}.json"
        text = json.dumps([record for record in records if record["trial"] in trials])
        path.write_text(text)
        output = tmp_path / name
        report = gradestack.grade_files(path, output=output)
        runs.append(report)
    comparison = gradestack.compare(*runs)
    for key, known in DATA["the_same_model_against_itself_shows_no_difference"].items():
        metrics = comparison.data["metrics"]
        row = metrics[key]
        assert {name: row[name] for name in known} == pytest.approx(known, abs=0.0005)
    assert comparison.sentence.startswith(
        "Solved: b -2.0 points against a, which may be chance (95% interval: -11.1 to 7.1; "
    )
