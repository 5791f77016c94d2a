"""Whatever the engine, and whatever happens to its workers, every family's example comes to the same bytes."""

from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.engines import dask_cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITES = sorted(EXAMPLES.glob("*/suite.yaml"))
WORKERS = [3, *(pytest.param(workers, marks=pytest.mark.proof) for workers in (1, 2, 5))]
OFTEN = EXAMPLES / "airline/suite.yaml"
LOSING = [OFTEN, *(pytest.param(suite, marks=pytest.mark.proof) for suite in SUITES if suite != OFTEN)]
LIVES = 30.0
"""Seconds a killed process may take to be seen dead."""


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    """Let every reader cut files into shards of a few records."""
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 300)


@pytest.fixture(scope="module")
def alone():
    """Return a function that gives what the serial engine gives, worked out once per suite."""
    known = {}

    def results(suite, out):
        if suite not in known:
            known[suite] = _results(suite, "serial", out)
        return known[suite]

    return results


def _results(suite, engine, out):
    gradestack.run(suite, output=out, overrides=[f"engine={engine}"])
    found = {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    assert found
    return {path: content for path, content in found.items() if path.name != "header.json"}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_processes_give_what_one_gives(suite, workers, tmp_path, alone):
    """Rows, figures, native files and pages, on any number of processes."""
    engine = f"{{kind: processes, workers: {workers}}}"
    assert _results(suite, engine, tmp_path / "many") == alone(suite, tmp_path / "one")


@pytest.mark.parametrize("suite", LOSING, ids=lambda path: path.parent.name)
def test_a_cluster_that_loses_a_worker_gives_the_same(suite, tmp_path, alone, monkeypatch):
    """Rows, figures, native files and pages, on two dask workers, one of them killed at the first result."""
    expected = alone(suite, tmp_path / "one")
    answer, killed = dask_cluster.Cluster.answer, []

    def answer_and_kill(self, future):
        found = answer(self, future)
        if not killed:
            killed.append(self._local.processes[0])
            killed[0].kill()
            killed[0].wait(LIVES)
        return found

    monkeypatch.setattr(dask_cluster.Cluster, "answer", answer_and_kill)
    assert _results(suite, "{kind: dask, workers: 2}", tmp_path / "cluster") == expected
    assert killed
