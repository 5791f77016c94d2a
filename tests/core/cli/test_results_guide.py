"""What people know from letta-evals' results guide: its console block, its files, and reading them with a few lines."""

import json
import math
import statistics
from collections import defaultdict

import pytest

import gradestack
from gradestack.cli.commands import main

SUITE = """\
name: my-eval-suite
target: {{kind: recorded, paths: [{paths}], reader: letta}}
graders:
  quality: {{kind: recorded, metric: quality}}
  accuracy: {{kind: recorded, metric: accuracy}}
gate: {{metric_key: quality, op: gte, value: 0.75}}
reports: []
{more}
"""


def _line(number, quality, accuracy, model=None):
    grades = {
        "quality": {"score": quality, "rationale": "", "metadata": {}},
        "accuracy": {"score": accuracy, "rationale": "", "metadata": {}},
    }
    return json.dumps(
        {
            "sample": {"id": number, "input": f"question {number}", "ground_truth": "4"},
            "submission": "4",
            "trajectory": [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}]],
            "agent_id": f"agent-{number}",
            "grade": grades["quality"],
            "grades": grades,
            "model_name": model,
        }
    )


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Return a function that writes recordings (folder -> lines) and a suite over them, in a new directory."""
    monkeypatch.chdir(tmp_path)

    def write(files, more=""):
        for name, lines in files.items():
            path = tmp_path / name / "results.jsonl"
            path.parent.mkdir(parents=True)
            path.write_text("\n".join(lines) + "\n")
        (tmp_path / "suite.yaml").write_text(SUITE.format(paths="recorded", more=more))
        return tmp_path

    return write


def _main(*arguments):
    with pytest.raises(SystemExit) as done:
        main(list(arguments))
    return done.value.code


def test_the_console_block(recorded, capsys):
    """Three samples, scores 1, 1 and 0.5, two passing: the guide's block, line by line."""
    recorded({"recorded": [_line(0, 1.0, 1.0), _line(1, 1.0, 0.0), _line(2, 0.5, 1.0)]})
    assert _main("run", "suite.yaml", "--output", "results") == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line]
    assert said[:7] == [
        "Running evaluation: my-eval-suite",
        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 3/3 100%",
        "Results:",
        "  Total samples: 3",
        "  Attempted: 3",
        "  Avg score: 0.83 (attempted: 0.83)",
        "  Passed: 2 (66.7%)",
    ]
    assert any(line.startswith("Gate (quality >= 0.75): PASSED (actual: 0.83, ") for line in said)


def test_summary_and_header_have_the_documented_keys(recorded):
    quality = [1.0, 1.0, 1.0, 0.8, 0.8, 0.8, 0.8, 0.7, 0.6, 0.5]
    lines = [_line(number, score, 0.0 if number == 3 else 1.0) for number, score in enumerate(quality)]
    place = recorded({"recorded": lines})
    gradestack.run(place / "suite.yaml", output="results")
    summary = json.loads((place / "results/summary.json").read_text())
    assert {"suite", "config", "metrics", "gates_passed"} <= set(summary)
    assert {"target", "graders", "gate"} <= set(summary["config"])
    metrics = summary["metrics"]
    assert (metrics["total"], metrics["total_attempted"]) == (10, 10)
    assert (metrics["avg_score_attempted"], metrics["avg_score_total"]) == (0.8, 0.8)
    assert (metrics["passed_attempts"], metrics["failed_attempts"]) == (7, 3)
    assert metrics["by_metric"]["quality"] == {
        "avg_score_attempted": 0.8,
        "avg_score_total": 0.8,
        "pass_rate": 70.0,
        "passed_attempts": 7,
        "failed_attempts": 3,
    }
    assert metrics["by_metric"]["accuracy"]["pass_rate"] == 90.0
    assert metrics["metrics"] == {"quality": 70.0, "accuracy": 90.0}
    assert (summary["gates_passed"], metrics["per_model"]) == (True, None)
    header = json.loads((place / "results/header.json").read_text())
    assert (header["suite_name"], header["version"]) == ("my-eval-suite", gradestack.__version__)
    assert header["timestamp"].startswith("20")


def test_per_model(recorded):
    lines = [_line(n, score, 1.0, model) for model in ("gpt-4o", "claude") for n, score in enumerate((1.0, 0.5))]
    lines[3] = _line(1, 0.9, 0.0, "claude")
    place = recorded({"recorded": lines})
    gradestack.run(place / "suite.yaml", output="results")
    first, second = json.loads((place / "results/summary.json").read_text())["metrics"]["per_model"]
    assert first == {
        "model_name": "gpt-4o",
        "total": 2,
        "total_attempted": 2,
        "avg_score_attempted": 0.75,
        "avg_score_total": 0.75,
        "passed_samples": 1,
        "failed_samples": 1,
        "metrics": {"quality": 50.0, "accuracy": 100.0},
    }
    assert (second["model_name"], second["passed_samples"], second["metrics"]["accuracy"]) == ("claude", 2, 50.0)


def test_failures_by_metric_are_found_with_a_few_lines(recorded):
    """Rows carry every metric's grade, so failures are grouped by metric without knowing gradestack."""
    place = recorded({"recorded": [_line(0, 1.0, 0.2), _line(1, 0.3, 1.0), _line(2, 0.4, 0.1)]})
    gradestack.run(place / "suite.yaml", output="results")
    failures = defaultdict(list)
    with (place / "results/results.jsonl").open() as file:
        for line in file:
            result = json.loads(line)
            for metric, grade in result["grades"].items():
                if grade["score"] < 0.5:
                    failures[metric].append(result["sample"]["id"])
    assert failures == {"accuracy": [0, 2], "quality": [1, 2]}


def test_aggregate_statistics_over_runs(recorded):
    scores = {1: (1.0, 0.8), 2: (0.9, 0.9), 3: (0.6, 0.7)}
    files = {
        f"recorded/run_{run}": [_line(number, score, 1.0) for number, score in enumerate(pair)]
        for run, pair in scores.items()
    }
    place = recorded(files, more="num_runs: 3\nruns_must_pass: majority")
    report = gradestack.run(place / "suite.yaml", output="results")
    with (place / "results/aggregate_stats.json").open() as file:
        stats = json.load(file)
    means = [statistics.mean(pair) for pair in scores.values()]
    block = stats["avg_score_attempted"]
    assert (stats["num_runs"], stats["runs_passed"], stats["runs_failed"]) == (3, 2, 1)
    assert stats["pass_rate"] == pytest.approx(100 * 2 / 3)
    assert block["mean"] == pytest.approx(statistics.mean(means), abs=1e-15)
    assert block["std"] == pytest.approx(statistics.stdev(means), abs=1e-15)
    assert (block["min"], block["max"]) == (min(means), max(means))
    assert stats["per_metric"]["accuracy"]["avg_score_attempted"] == {"mean": 1.0, "std": 0.0, "min": 1.0, "max": 1.0}
    assert (stats["mean_avg_score_attempted"], stats["std_avg_score_attempted"]) == (block["mean"], block["std"])
    assert [each["avg_score_attempted"] for each in stats["individual_run_metrics"]] == means
    margin = 1.96 * (stats["avg_score_attempted"]["std"] / math.sqrt(stats["num_runs"]))
    assert 0 < margin < 0.2
    assert report.passed is True
    for run in scores:
        single = gradestack.load_report(place / f"results/run_{run}")
        assert single.metrics["avg_score_attempted"] == means[run - 1]
        assert sum(1 for _ in single.rows()) == 2
