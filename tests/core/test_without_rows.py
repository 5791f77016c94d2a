"""Metrics only: the figures of a run whose rows are not kept."""

import pytest

import gradestack
from tests.core.outcomes import read_json


@pytest.fixture
def suite(write_lines, record):
    records = []
    for number in range(4):
        records.append(record(str(number), number / 3, model="m"))
    path = write_lines([*records, "{"])
    graders = {"second": "toy", "first": {"kind": "toy", "factor": 0.5}}
    paths = [str(path)]
    return {"name": "x", "target": {"paths": paths}, "graders": graders, "reader": "jsonl"}


def test_the_figures_are_the_same(suite, tmp_path, registry):
    accuracy, simple = (
        {"metric": "accuracy", "op": "gte", "value": 5},
        {"kind": "simple", "aggregation": "p95"},
    )
    suite["gates"] = [
        {"op": "gte", "value": 0.1, "per": "model"},
        accuracy | {"metric_key": "first"},
        simple | {"metric_key": "first", "op": "gte", "value": 0.1},
    ]
    output = tmp_path / "with"
    gradestack.run(suite, output=output, registry=registry)
    without_folder = tmp_path / "without"
    report = gradestack.run(suite, output=without_folder, registry=registry, rows=False)
    summary_path = tmp_path / "with/summary.json"
    expected = (tmp_path / "without/summary.json").read_bytes()
    assert summary_path.read_bytes() == expected
    paths = (tmp_path / "without").iterdir()
    names = {path.name for path in paths}
    assert names == {"header.json", "summary.json", "report.html", "report.md"}
    assert report.has_rows is False
    header_path = tmp_path / "without/header.json"
    document = read_json(header_path)
    rows = document["rows"]
    assert rows is False
