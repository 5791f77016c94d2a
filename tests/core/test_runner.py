"""The run loop: what a run comes to, and where it is put."""

import gradestack
from gradestack import is_run
from tests.core.outcomes import ids, read
from tests.core.toy_components import Count


def test_a_run_directory(run_lines, record, toys):
    report = run_lines([record("a", 1.0), record("b", 0.25)])
    assert sorted(toys.files_of(report.path)) == ["header.json", "results.jsonl", "summary.json"]
    assert [path.name for path in report.path.parent.iterdir() if path.name != "runs.jsonl"] == [
        "out"
    ]
    assert is_run(report.path)
    assert ids(report) == ["a", "b"]
    assert dict(report.summary) == read(report)
    assert dict(report.header) == read(report, "header.json")


def test_progress_is_reported(run_lines, write_lines, record, registry, tmp_path):
    path = write_lines([record(str(number), 1.0) for number in range(100)])
    states = []
    suite = {"target": {"paths": [str(path)]}, "graders": {"q": "toy"}, "reports": []}
    gradestack.run(suite, output=tmp_path / "out", registry=registry, progress=states.append)
    samples = [state.samples for state in states]
    assert samples == sorted(samples)
    assert samples[-1] == 100


def test_what_metrics_warn_of_is_a_warning_of_the_run(run_lines, record, monkeypatch):
    """Texts under `warnings` of an aggregator's metrics are said with the grader's key.

    Anything else is left alone.
    """
    monkeypatch.setattr(Count, "compute", lambda *_: {"warnings": ["look here", 5], "sum": 1})
    assert run_lines([record("a", 1.0)]).summary["warnings"] == ["grader 'quality': look here"]
    monkeypatch.setattr(Count, "compute", lambda *_: {"warnings": 3, "sum": 1})
    assert run_lines([record("a", 1.0)]).summary["warnings"] == []
