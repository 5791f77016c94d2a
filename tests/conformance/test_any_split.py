"""However the input is cut into shards, every family's example comes to the same bytes, native files included."""

from pathlib import Path

import pytest

import gradestack
from tests.core.outcomes import some_of
from tests.core.tables import recomputed

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITES = sorted(EXAMPLES.glob("*/suite.yaml"))


def _bytes(out):
    found = {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    return {path: content for path, content in found.items() if path.name != "header.json"}


def _shards(suite):
    resolved = gradestack.load_suite(suite)
    reader = resolved.reader.component
    return len(list(reader.plan(resolved.inputs, reader.index(resolved.inputs))))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a function that gives what a suite comes to, worked out once."""
    known = {}

    def results(suite):
        if suite not in known:
            out = tmp_path_factory.mktemp("whole") / "out"
            gradestack.run(suite, output=out)
            known[suite] = _bytes(out)
        return known[suite]

    return results


@pytest.mark.parametrize("size", some_of([300, 1, 1500], 3))
@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_any_split_has_the_same_bytes(suite, size, tmp_path, monkeypatch, whole):
    """Two runs differ in header.json only: not in rows, figures, native files or pages, wherever the input is cut."""
    expected = whole(suite)
    shards = _shards(suite)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", size)
    assert _shards(suite) > shards or suite.parent.name == "orchestration"  # one file is one shard there
    gradestack.run(suite, output=tmp_path / "cut")
    assert _bytes(tmp_path / "cut") == expected


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_metrics_are_recomputed_from_the_rows_alone(suite, tmp_path):
    """A run directory holds all that its metrics are made of."""
    report = gradestack.run(suite, output=tmp_path / "out", overrides=["reports=[]"])
    assert recomputed(report, gradestack.load_suite(suite).metrics) == report.aggregates
