"""Metrics only: the figures of a run whose rows are not kept."""

import json

import pytest

import gradestack
from gradestack import ConfigError, DataError


@pytest.fixture
def suite(write_lines, record):
    path = write_lines([record(str(number), number / 3, model="m") for number in range(4)] + ["{"])
    graders = {"second": "toy", "first": {"kind": "toy", "factor": 0.5}}
    return {"name": "x", "target": {"paths": [str(path)]}, "graders": graders, "reader": "jsonl"}


def test_the_figures_are_the_same(suite, tmp_path, registry):
    accuracy, simple = {"metric": "accuracy", "op": "gte", "value": 5}, {"kind": "simple", "aggregation": "p95"}
    suite["gates"] = [
        {"op": "gte", "value": 0.1, "per": "model"},
        accuracy | {"metric_key": "first"},
        simple | {"metric_key": "first", "op": "gte", "value": 0.1},
    ]
    gradestack.run(suite, output=tmp_path / "with", registry=registry)
    report = gradestack.run(suite, output=tmp_path / "without", registry=registry, rows=False)
    assert (tmp_path / "with/summary.json").read_bytes() == (tmp_path / "without/summary.json").read_bytes()
    names = {path.name for path in (tmp_path / "without").iterdir()}
    assert names == {"header.json", "summary.json", "report.html", "report.md"}
    assert (report.has_rows, json.loads((tmp_path / "without/header.json").read_text())["rows"]) == (False, False)


def test_pages_show_the_figures_and_say_why_there_are_no_samples(suite, tmp_path, registry):
    gradestack.run(suite, output=tmp_path / "out", registry=registry, rows=False)
    markdown, html = ((tmp_path / "out" / name).read_text() for name in ("report.md", "report.html"))
    assert "No rows were kept" in markdown
    assert "No rows were kept" in html
    assert "This run has no samples" not in markdown + html
    assert "4 samples: 4 graded" in markdown
    assert html.index("<code>second</code>") < html.index("<code>first</code>")  # the headline, not the alphabet
    from gradestack.outcome.pages import rewrite_pages

    rewrite_pages(gradestack.load_report(tmp_path / "out"), registry, (), tmp_path / "again")
    assert (tmp_path / "again/report.html").read_text() == html


def test_rows_that_were_not_kept_cannot_be_read(suite, tmp_path, registry):
    report = gradestack.run(suite | {"reports": ["dump"]}, output=tmp_path / "out", registry=registry, rows=False)
    with pytest.raises(DataError, match=r"out: the run kept no rows \(rows: none\)"):
        report.rows()
    with pytest.raises(DataError, match="kept no rows"):
        gradestack.load_report(str(tmp_path / "out")).rows()
    assert report.summary["broken"] == {
        "reporter dump": f"DataError: {report.path}: the run kept no rows (rows: none)"
    } or ("kept no rows" in report.summary["broken"]["reporter dump"])


@pytest.mark.parametrize("runs", [1, 2])
def test_runs_are_told_apart_by_their_rows(suite, tmp_path, registry, runs):
    with pytest.raises(ConfigError) as caught:
        gradestack.run(suite | {"num_runs": runs}, output=tmp_path / "out", registry=registry, rows=False)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["num_runs"]
    assert not (tmp_path / "out").exists()
