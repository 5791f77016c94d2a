"""The run loop: what a run comes to, and where it is put."""

import pytest

import gradestack
from gradestack import DataError, is_run
from tests.core.outcomes import data, ids, read
from tests.core.toy_components import DO_RAISE, DO_SKIP, Count

HEADER = data(__file__, "runner.yaml")


def test_a_run_directory(run_lines, record, toys):
    report = run_lines([record("a", 1.0), record("b", 0.25)])
    assert sorted(toys.files_of(report.path)) == ["header.json", "results.jsonl", "summary.json"]
    assert [path.name for path in report.path.parent.iterdir() if path.name != "runs.jsonl"] == ["out"]
    assert is_run(report.path)
    assert ids(report) == ["a", "b"]
    assert dict(report.summary) == read(report)
    assert dict(report.header) == read(report, "header.json")


def test_the_summary_spells_out_every_figure(run_lines, record):
    """1, 0.5 and 0 graded, one skipped, one failed: 1.5/3 and 1.5/4, and two of three pass the gate's 0.5."""
    records = [record("a", 1.0), record("b", 0.5), record("c", 0.0), record("d", **DO_SKIP), record("e", **DO_RAISE)]
    report = run_lines(records, gate={"op": "gte", "value": 0.5})
    summary = read(report)
    figures = {"avg_score_attempted": 0.5, "avg_score_total": 0.375, "passed_attempts": 2, "failed_attempts": 1}
    rate = 100 * 2 / 3
    assert summary["metrics"] == {
        "total": 5,
        "total_attempted": 3,
        **figures,
        "per_model": None,
        "by_metric": {"quality": {**figures, "pass_rate": rate}},
        "metrics": {"quality": rate},
        "states": {"quality": {"graded": 3, "skipped": 1, "failed": 1, "missing": 0}},
        "aggregates": {
            "quality": {
                "toy_count": {"outcomes": {"failed": 1, "graded": 3, "skipped": 1}, "sum": 1.5, "ids": [*"abcde"]}
            }
        },
    }
    interval = summary["gates"][0]["interval"]
    assert summary["gates"] == [
        {
            "metric_key": "quality",
            "metric": "avg_score",
            "op": "gte",
            "value": 0.5,
            "text": "quality >= 0.5",
            "actual": 0.5,
            "over": "graded",
            "counted": 3,
            "of": 4,
            "passed": True,
            "interval": interval,
            "sure": False,
            "outcome": "passed",
        }
    ]
    assert [interval[name] for name in ("n", "clusters", "confidence", "method")] == [3, 3, 0.95, "logit_t"]
    assert summary["gates_passed"] is True
    assert (summary["suite"], summary["bad_records"]) == ("toys", {"count": 0, "listed": []})
    skipped = "1 of 5 samples are in no rate of 'quality', the first: nothing to compare with"
    assert summary["warnings"] == [skipped, "1 of 4 samples (25.0%) failed or missing for 'quality'"]
    assert summary["duplicates"] == {"policy": "keep", "count": 0, "listed": []}
    assert report.exit_code == 0


def test_states_are_never_zeros(run_lines, record):
    report = run_lines([record("a", **DO_SKIP), record("b", **DO_RAISE)], gate={"op": "lte", "value": 1})
    assert report.metrics["avg_score_attempted"] is None
    assert report.metrics["by_metric"]["quality"]["pass_rate"] is None
    assert (report.gates[0]["outcome"], report.gates[0]["actual"], report.passed, report.exit_code) == (
        "no_data",
        None,
        False,
        3,
    )


@pytest.mark.parametrize(("profile", "actual"), [("documented", 20.0), ("upstream", 25.0)])
def test_the_same_gate_says_the_same_wherever_it_stands(run_lines, record, profile, actual):
    """One passes, of three graded and two failed; upstream counts the four runs that did not fail, graded or not."""
    records = [record("a", 1.0), record("b", 0.5), record("c", **DO_SKIP), record("d", 0.5)]
    records += [record(name, 1.0, error="broken") for name in ("e", "f")]
    rule = {"metric": "accuracy", "op": "gte", "value": 10}
    report = run_lines(records, profile=profile, gates=[rule, rule, {**rule, "per": "model"}])
    assert [gate["actual"] for gate in report.gates] == pytest.approx([actual] * 3)
    assert len({gate["outcome"] for gate in report.gates}) == 1


def test_models_are_told_apart(run_lines, record):
    """In the order of their first sample; overall figures are over all of them."""
    records = [record("a", 1.0, model="z"), record("a", 0.0, model="b"), record("b", 0.0, model="z")]
    report = run_lines(records)
    rows = report.metrics["per_model"]
    assert [(row["model_name"], row["total"], row["avg_score_attempted"], row["passed_samples"]) for row in rows] == [
        ("z", 2, 0.5, 1),
        ("b", 1, 0.0, 0),
    ]
    assert rows[0]["metrics"] == {"quality": 50.0}
    assert report.metrics["avg_score_attempted"] == pytest.approx(1 / 3, abs=0)


def test_several_graders(run_lines, record):
    """The first is the headline, or the one the gate names; a row has the grades of all."""
    graders = {"zeta": {"kind": "toy", "factor": 0.5}, "alpha": "toy"}
    report = run_lines([record("a", 1.0)], graders=graders)
    assert report.metrics["avg_score_attempted"] == 0.5
    assert {key: each["avg_score_attempted"] for key, each in report.metrics["by_metric"].items()} == {
        "zeta": 0.5,
        "alpha": 1.0,
    }
    (row,) = report.rows()
    assert (row["grade"]["score"], row["grades"]["alpha"]["score"]) == (0.5, 1.0)
    gated = run_lines([record("a", 1.0)], graders=graders, gate={"metric_key": "alpha", "op": "gte", "value": 1})
    assert gated.metrics["avg_score_attempted"] == 1.0


def test_the_header_says_what_ran(run_lines, record, write_lines, tmp_path):
    report = run_lines([record("a", 1.0)], graders={"q": {"kind": "toy", "factor": 2, "names": ["x"]}})
    header = report.header
    assert (header["generator"], header["suite_name"], header["version"]) == (
        "gradestack",
        "toys",
        gradestack.__version__,
    )
    assert header["timestamp"].endswith("+00:00")
    (grader,) = [each for each in header["components"] if each["kind"] == "grader"]
    assert grader == HEADER["grader"]
    (given,) = header["inputs"]
    import hashlib

    data = (tmp_path / "runs.jsonl").read_bytes()
    assert given == {
        "path": str(tmp_path / "runs.jsonl"),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def test_a_rerun_replaces_the_run_whole(run_lines, record, toys):
    first = run_lines([record("a", 1.0)], reports=["markdown"])
    assert (first.path / "report.md").is_file()
    second = run_lines([record("b", 1.0)])
    assert sorted(toys.files_of(second.path)) == ["header.json", "results.jsonl", "summary.json"]
    assert ids(second) == ["b"]


def test_a_failing_rerun_leaves_the_earlier_run(run_lines, record, toys):
    place = run_lines([record("a", 1.0)]).path
    first = toys.files_of(place)
    with pytest.raises(DataError):
        run_lines(["{"])
    assert toys.files_of(place) == first


def test_the_default_place_has_a_latest_link(tmp_path, monkeypatch, write_lines, record, registry):
    path = write_lines([record("a", 1.0)])
    monkeypatch.chdir(tmp_path)
    suite = {"name": "my suite", "target": {"paths": [str(path)]}, "graders": {"q": "toy"}, "reports": []}
    reports = [gradestack.run(suite, registry=registry) for _ in range(3)]
    assert len({report.path for report in reports}) == 3
    assert reports[0].path.parent.as_posix() == "gradestack-runs/my-suite"
    assert (tmp_path / "gradestack-runs/my-suite/latest").resolve() == reports[-1].path.resolve()


def test_progress_is_reported(run_lines, write_lines, record, registry, tmp_path):
    path = write_lines([record(str(number), 1.0) for number in range(100)])
    told = []
    suite = {"target": {"paths": [str(path)]}, "graders": {"q": "toy"}, "reports": []}
    gradestack.run(suite, output=tmp_path / "out", registry=registry, progress=told.append)
    samples = [each.samples for each in told]
    assert samples == sorted(samples)
    assert samples[-1] == 100


def test_what_metrics_warn_of_is_a_warning_of_the_run(run_lines, record, monkeypatch):
    """Texts under `warnings` of an aggregator's metrics are said with the grader's key; anything else is left alone."""
    monkeypatch.setattr(Count, "compute", lambda *_: {"warnings": ["look here", 5], "sum": 1})
    assert run_lines([record("a", 1.0)]).summary["warnings"] == ["grader 'quality': look here"]
    monkeypatch.setattr(Count, "compute", lambda *_: {"warnings": 3})
    assert run_lines([record("a", 1.0)]).summary["warnings"] == []
