"""However the input is cut into shards, every family's example comes to the same bytes, native files included."""

from pathlib import Path

import pytest

import gradestack
from gradestack import grade_from_json, key_from_row
from gradestack.jsonio import dumps, loads

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITES = sorted(EXAMPLES.glob("*/suite.yaml"))


def _bytes(out):
    found = {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    return {path: content for path, content in found.items() if path.name != "header.json"}


def _shards(suite):
    """Return how many shards the input of a suite is cut into."""
    resolved = gradestack.load_suite(suite)
    reader = resolved.reader.component
    return len(list(reader.plan(resolved.inputs, reader.index(resolved.inputs))))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_a_rerun_has_the_same_bytes(suite, tmp_path):
    """Two runs of one suite differ in header.json only, pages included."""
    for name in ("one", "two"):
        gradestack.run(suite, output=tmp_path / name)
    first, second = _bytes(tmp_path / "one"), _bytes(tmp_path / "two")
    assert first
    assert first == second


@pytest.mark.parametrize("size", [1, 300, 1500])
@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_any_split_has_the_same_bytes(suite, size, tmp_path, monkeypatch):
    """Rows, figures, native files and pages do not depend on where lists and line-oriented files are cut."""
    gradestack.run(suite, output=tmp_path / "whole")
    shards = _shards(suite)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", size)
    assert _shards(suite) > shards or suite.parent.name == "orchestration"  # one file is one shard there
    gradestack.run(suite, output=tmp_path / "cut")
    assert _bytes(tmp_path / "whole") == _bytes(tmp_path / "cut")


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_metrics_are_recomputed_from_the_rows_alone(suite, tmp_path):
    """A run directory holds all that its metrics are made of."""
    resolved = gradestack.load_suite(suite)
    report = gradestack.run(suite, output=tmp_path / "out", overrides=["reports=[]"])
    for metric in resolved.metrics:
        aggregator = metric.stage.component
        state = aggregator.start()
        for ordinal, row in enumerate(report.rows()):
            grade = grade_from_json(row["grades"][metric.of])
            state = aggregator.add(state, key_from_row(row, ordinal), grade)
        again = loads(dumps(dict(aggregator.finish(state))))
        assert again == report.aggregates[metric.of][metric.stage.key], metric.stage.key
