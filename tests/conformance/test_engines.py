"""However the input is cut, whatever the engine and its workers' fate, every family's example gives
the same bytes.
"""

from functools import cache
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.engines import dask_cluster
from tests.core.outcomes import some_of
from tests.core.tables import recomputed

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITES = sorted(EXAMPLES.glob("*/suite.yaml"), key=lambda path: path.parent.name != "airline")
LIVES = 30.0
"""Seconds a killed process may take to be seen dead."""
SIZE = "gradestack.jsonio.records.SHARD_BYTES"


def _name(path):
    return path.parent.name


def _shards(suite):
    resolved = gradestack.load_suite(suite)
    reader = resolved.reader.component
    index = reader.index(resolved.inputs)
    shards = reader.plan(resolved.inputs, index)
    return len(list(shards))


def _results(suite, engine, out):
    """Return all files of a run but header.json: rows, figures, native files and pages."""
    overrides = [f"engine={engine}"]
    gradestack.run(suite, output=out, overrides=overrides)
    contents = {}
    paths = out.rglob("*")
    for path in sorted(paths):
        if path.is_file():
            contents[path.relative_to(out)] = path.read_bytes()
    return {path: content for path, content in contents.items() if path.name != "header.json"}


@pytest.fixture(scope="module")
def serial_run(tmp_path_factory):
    """Return a function that gives what a suite comes to on one process, its files read whole."""
    return cache(lambda suite: _results(suite, "serial", tmp_path_factory.mktemp("whole") / "out"))


@pytest.mark.parametrize(("workers", "size"), some_of([(3, 300), (1, 1), (2, 1500), (5, 300)], 4))
@pytest.mark.parametrize("suite", SUITES, ids=_name)
def test_processes_give_what_one_gives(suite, workers, size, tmp_path, monkeypatch, serial_run):
    """On any number of processes, wherever the input is cut into shards."""
    expected = serial_run(suite)
    shards = _shards(suite)
    monkeypatch.setattr(SIZE, size)
    one_shard = "orchestration", "sessions", "stability"  # files, and a dataset of few bytes
    assert _shards(suite) > shards or _name(suite) in one_shard
    many_folder = tmp_path / "many"
    engine = f"{{kind: processes, workers: {workers}}}"
    results = _results(suite, engine, many_folder)
    assert results == expected


@pytest.mark.parametrize("suite", some_of(SUITES, len(SUITES)), ids=_name)
def test_a_cluster_that_loses_a_worker_gives_the_same(suite, tmp_path, serial_run, monkeypatch):
    """On two dask workers, one of them killed at the first result."""
    expected = serial_run(suite)
    monkeypatch.setattr(SIZE, 300)
    answer_of_cluster = dask_cluster.Cluster.result_of
    killed = []

    def answer_and_kill(self, future):
        received = answer_of_cluster(self, future)
        if not killed:
            killed.append(self._local.processes[0])
            killed[0].kill()
            killed[0].wait(LIVES)
        return received

    monkeypatch.setattr(dask_cluster.Cluster, "result_of", answer_and_kill)
    cluster_folder = tmp_path / "cluster"
    results = _results(suite, "{kind: dask, workers: 2}", cluster_folder)
    assert results == expected
    assert killed


@pytest.mark.parametrize("suite", SUITES, ids=_name)
def test_metrics_are_recomputed_from_the_rows_alone(suite, tmp_path):
    """A report directory holds all that its metrics are made of."""
    output = tmp_path / "out"
    report = gradestack.run(suite, output=output, overrides=["reports=[]"])
    metrics = gradestack.load_suite(suite).metrics
    assert recomputed(report, metrics) == report.aggregates
