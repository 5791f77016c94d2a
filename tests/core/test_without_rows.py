"""Metrics only: the figures of a run whose rows are not kept."""

import pytest

import gradestack
from tests.core.outcomes import read_json


@pytest.fixture
def suite(write_lines, record):
    path = write_lines([record(str(number), number / 3, model="m") for number in range(4)] + ["{"])
    graders = {"second": "toy", "first": {"kind": "toy", "factor": 0.5}}
    return {"name": "x", "target": {"paths": [str(path)]}, "graders": graders, "reader": "jsonl"}


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
    gradestack.run(suite, output=tmp_path / "with", registry=registry)
    report = gradestack.run(suite, output=tmp_path / "without", registry=registry, rows=False)
    assert (tmp_path / "with/summary.json").read_bytes() == (
        tmp_path / "without/summary.json"
    ).read_bytes()
    names = {path.name for path in (tmp_path / "without").iterdir()}
    assert names == {"header.json", "summary.json", "report.html", "report.md"}
    assert (
        report.has_rows,
        read_json(tmp_path / "without/header.json")["rows"],
    ) == (False, False)
