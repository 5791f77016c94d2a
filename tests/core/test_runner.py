"""The run loop: what a run comes to, and where it is put."""

import gradestack
from gradestack import is_run
from tests.core.outcomes import ids, read
from tests.core.toy_components import Count


def test_a_run_directory(run_lines, record, toys):
    report = run_lines([record("a", 1.0), record("b", 0.25)])
    files = sorted(toys.files_of(report.path))
    assert files == ["header.json", "results.jsonl", "summary.json"]
    paths = report.path.parent.iterdir()
    names = [path.name for path in paths if path.name != "runs.jsonl"]
    assert names == ["out"]
    assert is_run(report.path)
    assert ids(report) == ["a", "b"]
    summary = dict(report.summary)
    assert summary == read(report)
    header = dict(report.header)
    assert header == read(report, "header.json")


def test_progress_is_reported(run_lines, write_lines, record, registry, tmp_path):
    records = []
    for number in range(100):
        records.append(record(str(number), 1.0))
    path = write_lines(records)
    states = []
    paths = [str(path)]
    suite = {"target": {"paths": paths}, "graders": {"q": "toy"}, "reports": []}
    output = tmp_path / "out"
    gradestack.run(suite, output=output, registry=registry, progress=states.append)
    samples = [state.samples for state in states]
    assert samples == sorted(samples)
    last_sample = samples[-1]
    assert last_sample == 100


def test_what_metrics_warn_of_is_a_warning_of_the_run(run_lines, record, monkeypatch):
    """Texts under `warnings` of an aggregator's metrics are said with the grader's key.

    Anything else is left alone.
    """
    monkeypatch.setattr(Count, "compute", lambda *_: {"warnings": ["look here", 5], "sum": 1})
    lines = run_lines([record("a", 1.0)])
    assert lines.summary["warnings"] == ["grader 'quality': look here"]
    monkeypatch.setattr(Count, "compute", lambda *_: {"warnings": 3, "sum": 1})
    warnings = run_lines([record("a", 1.0)]).summary["warnings"]
    assert warnings == []
