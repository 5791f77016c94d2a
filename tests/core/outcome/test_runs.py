"""Outcomes of runs, and their headline."""

import json
import math
from types import SimpleNamespace

import pytest

import gradestack
from gradestack import DataError
from gradestack.cli.console import results
from gradestack.outcome.runs import enough, statistics
from gradestack.outcome.summary import headline_figures
from gradestack.suites.spec import Figure, Headline
from tests.core.outcomes import data

DATA = data(__file__, "runs.yaml")

TRIALS = {"1": [1.0, 0.0], "2": [1.0, 1.0], "10": [0.0, 0.5]}


@pytest.fixture
def run(run_lines, record):
    def call(trials=TRIALS, **suite):
        records = [
            record(f"t{task}", score, run=trial)
            for task in (0, 1)
            for trial, scores in trials.items()
            for score in [scores[task]]
        ]
        return run_lines(records, **{"num_runs": 3} | suite)

    return call


def read(report, name):
    return json.loads((report.path / name).read_text(encoding="utf-8"))


def test_every_run_has_its_own_folder(run):
    """Numbered from 1 in the order of the trials' numbers, each a run directory with the rows of that trial."""
    report = run(gate={"op": "gte", "value": 0.5})
    assert sorted(path.name for path in report.path.iterdir()) == [
        "aggregate_stats.json",
        "header.json",
        "results.jsonl",
        "run_1",
        "run_2",
        "run_3",
        "summary.json",
    ]
    averages = []
    for number, trial in enumerate(("1", "2", "10"), 1):
        part = gradestack.load_report(report.path / f"run_{number}")
        rows = list(part.rows())
        assert {row["run"] for row in rows} == {trial}
        assert [row["sample"]["id"] for row in rows] == ["t0", "t1"]
        averages.append((part.metrics["avg_score_attempted"], part.passed, part.summary["run"]))
        assert part.aggregates["quality"]["toy_count"]["ids"] == ["t0", "t1"]
    assert averages == [(0.5, True, "1"), (1.0, True, "2"), (0.25, False, "10")]
    whole = b"".join(path.read_bytes() for path in sorted(report.path.glob("run_*/results.jsonl")))
    assert sorted(whole.splitlines()) == sorted((report.path / "results.jsonl").read_bytes().splitlines())


def test_statistics_over_the_runs(run):
    """0.5, 1 and 0.25: mean 7/12, sample deviation sqrt(7/48)."""
    report = run(gate={"op": "gte", "value": 0.5})
    stats = read(report, "aggregate_stats.json")
    block = {"mean": pytest.approx(7 / 12), "std": pytest.approx(math.sqrt(7 / 48)), "min": 0.25, "max": 1.0}
    assert stats["avg_score_attempted"] == stats["per_metric"]["quality"]["avg_score_total"] == block
    assert (stats["mean_avg_score_attempted"], stats["std_avg_score_total"]) == (block["mean"], block["std"])
    assert (stats["mean_scores"], stats["std_scores"]) == ({"quality": block["mean"]}, {"quality": block["std"]})
    assert (stats["num_runs"], stats["runs_passed"], stats["runs_failed"]) == (3, 2, 1)
    assert stats["pass_rate"] == pytest.approx(200 / 3)
    assert [each["total"] for each in stats["individual_run_metrics"]] == [2, 2, 2]


@pytest.mark.parametrize(("profile", "rule", "passed"), DATA["how_many_runs_must_pass"])
def test_how_many_runs_must_pass(run, profile, rule, passed):
    """Two of three do: documented asks for all, upstream for one, unless told otherwise."""
    more = {} if rule is None else {"runs_must_pass": rule}
    report = run(gate={"op": "gte", "value": 0.5}, profile=profile, **more)
    assert (report.passed, report.exit_code) == (passed, 0 if passed else 1)


@pytest.mark.parametrize(
    ("rule", "passed", "runs", "expected"),
    [("majority", 2, 4, False), ("majority", 3, 4, True), ("any", 0, 4, False), ("all", 4, 4, True), (1, 1, 4, True)],
)
def test_the_rule(rule, passed, runs, expected):
    """A majority is more than half."""
    assert enough(rule, passed, runs) is expected


def test_runs_without_a_figure_are_left_out_of_the_mean():
    metrics = [{"avg_score_attempted": value, "avg_score_total": 0.1, "by_metric": {}} for value in (None, 0.1, 0.1)]
    stats = statistics(metrics, [None, None, None])
    assert stats["avg_score_attempted"] == {"mean": 0.1, "std": 0.0, "min": 0.1, "max": 0.1}
    nothing = statistics(metrics[:1], [None])
    assert nothing["avg_score_attempted"] == {"mean": None, "std": None, "min": None, "max": None}


@pytest.mark.parametrize(
    ("trials", "asked", "words"),
    [
        (TRIALS, 2, ["num_runs asks for 2 run(s), the recording holds 3: 1, 2, 10"]),
        (TRIALS, 4, ["the recording holds 3: 1, 2, 10"]),
        ({None: [1.0, 1.0]}, 2, ["the recording holds 1: (unnamed)"]),
        ({"²": [1.0, 1.0], "9" * 5000: [1.0, 1.0]}, 1, ["the recording holds 2: "]),
    ],
)
def test_another_number_of_runs_is_refused(run, trials, asked, words):
    with pytest.raises(DataError) as caught:
        run(trials, num_runs=asked)
    for word in words:
        assert word in str(caught.value)


def test_a_model_that_lacks_a_run_is_named(run_lines, record):
    """Averages over different runs would not compare."""
    records = [
        record("a", 1.0, model="m", run=1),
        record("a", 1.0, model="m", run=2),
        record("a", 1.0, model="n", run=2),
    ]
    with pytest.raises(DataError, match="model n lacks run 1"):
        run_lines(records, num_runs=2)


def test_one_run_writes_no_folder(run_lines, record):
    report = run_lines([record("a", 1.0)], num_runs=1)
    assert not (report.path / "run_1").exists()
    assert report.exit_code == 0


def test_missing_rows_belong_to_every_run(run_lines, record, write_lines):
    gold = write_lines([{"id": "a", "expected": "x"}, {"id": "z", "expected": "x"}], "gold.jsonl")
    report = run_lines([record("a", 1.0, run=1), record("a", 0.0, run=2)], num_runs=2, dataset=str(gold))
    for number in (1, 2):
        states = read(report, f"run_{number}/summary.json")["metrics"]["states"]["quality"]
        assert (states["graded"], states["missing"]) == (1, 1)


def test_a_task_may_be_missing_from_one_run(run_lines, record, write_lines):
    """Every run has every task of the dataset, per model; so averages over all samples have one denominator."""
    gold = write_lines([{"id": name, "expected": "x"} for name in "ab"], "gold.jsonl")
    answered = [("a", 1, "m"), ("b", 1, "m"), ("a", 2, "m"), ("a", 1, "n"), ("b", 2, "n")]
    records = [record(task, 1.0, run=trial, model=model) for task, trial, model in answered]
    report = run_lines(records, num_runs=2, dataset=str(gold))
    for number, missing in ((1, [("n", "b")]), (2, [("m", "b"), ("n", "a")])):
        metrics = read(report, f"run_{number}/summary.json")["metrics"]
        assert metrics["states"]["quality"]["missing"] == len(missing)
        assert (metrics["total"], metrics["avg_score_total"]) == (4, (4 - len(missing)) / 4)
        rows = gradestack.load_report(report.path / f"run_{number}").rows()
        left = [(row["model_name"], row["sample"]["id"]) for row in rows if row["state"] == "missing"]
        assert left == missing
    assert report.metrics["total"] == 8


def test_rerunning_gives_the_same_bytes(run, toys):
    first = toys.files_of(run(gate={"op": "gte", "value": 0.5}).path)
    second = toys.files_of(run(gate={"op": "gte", "value": 0.5}).path)
    skip = {name for name in first if name.endswith("header.json")}
    assert {name: data for name, data in first.items() if name not in skip} == {
        name: data for name, data in second.items() if name not in skip
    }


def test_the_uncertainty_of_the_score_stands_beside_the_deviation_over_runs(run):
    """It is the interval of the average over all runs, clustered by task; and the console says which is which."""
    report = run(metrics={"mean": {"of": "quality"}})
    found = report.summary["runs"]["uncertainty"]
    assert found == report.aggregates["quality"]["mean"]["mean_interval"]
    assert found["clusters"] == 2
    words = f"95% interval of the score: {found['low']:.3f} to {found['high']:.3f}"
    assert f"  run to run 0.250 to 1.000 (sd 0.382), same tasks; {words}" in results(report).splitlines()
    without = results(run())
    assert "same tasks; 95% interval of the score: not computed" in without


HEADLINE = data(__file__, "headline.yaml")


@pytest.mark.parametrize(("metric", "name", "entry"), HEADLINE["figures"])
def test_a_figure_is_found_or_it_is_said_why_not(metric, name, entry):
    suite = SimpleNamespace(headline=Headline(figures=(Figure(label="It", grader="g", metric=metric, name=name),)))
    (found,) = headline_figures(suite, {"g": HEADLINE["metrics"]}, {"g": {"avg_score_attempted": 0.25}})
    assert found == {"label": "It", "figure": ".".join(filter(None, ("g", metric, name))), **entry}
