"""The dask engine: a cluster that is there or one of its own, and what it says when something is
missing.
"""

import asyncio
import contextlib
import gc
import logging
import sys
from types import SimpleNamespace

import pytest
from distributed import Client

from gradestack import ConfigError, DataError, PluginError, __version__, replace
from gradestack_plugins.engines import dask_cluster, dask_task
from gradestack_plugins.engines.dask import Dask
from gradestack_plugins.engines.dask_cluster import _scheduler
from gradestack_plugins.engines.dask_local import LocalWorkers
from gradestack_plugins.engines.dask_task import work_on, written
from tests.core.outcomes import some_of


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with _scheduler() as address:
        workers = LocalWorkers(address, 1, None, tmp_path_factory.mktemp("workers"))
        workers.tend()
        yield address, workers
        workers.close()


def _twice():
    def work(shard):  # by value: the cluster's workers cannot import a test module
        return shard.ordinal * 2, shard.input.path.is_absolute()

    return work


def test_a_cluster_that_is_there(cluster, shards, capfd):
    address, workers = cluster
    for count in (0, 1, 30):
        expected = []
        for n in range(count):
            expected.append((2 * n, True))
        dask = Dask(address=address)
        assert list(dask.map(_twice(), shards(count))) == expected
    assert workers.processes[0].poll() is None
    assert capfd.readouterr() == ("", "")


def test_relative_paths_mean_the_same_everywhere(cluster, shards, monkeypatch, tmp_path):
    """Workers have working directories of their own."""
    monkeypatch.chdir(tmp_path)
    some = []
    for shard in shards(2):
        relative_path = shard.input.path.relative_to(tmp_path)
        some.append(replace(shard, input=replace(shard.input, path=relative_path)))
    dask = Dask(address=cluster[0])
    assert list(dask.map(_twice(), some)) == [(0, True), (2, True)]


def test_errors_cross(cluster, shards):
    def ours(shard):
        from gradestack import DataError

        if shard.ordinal == 2:
            raise DataError("two", "and more")
        return shard.ordinal

    def theirs(shard):
        return 1 // shard.ordinal

    dask = Dask(address=cluster[0])
    results = dask.map(ours, shards(5))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(DataError, match="two\n  - and more"):
        next(results)
    with pytest.raises(
        PluginError,
        match=r"a dask worker raised ZeroDivisionError: .*\n  - the scheduler and all workers need",
    ):
        list(Dask(address=cluster[0]).map(theirs, shards(2)))


def test_a_scheduler_that_is_not_there(shards, capfd):
    with pytest.raises(ConfigError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        list(Dask(address="tcp://127.0.0.1:9", patience=0.6).map(_twice(), shards(2)))
    assert (
        capfd.readouterr().err.count(
            "waiting up to 0.6 s for the dask scheduler at tcp://127.0.0.1:9 ("
        )
        == 1
    )
    with pytest.raises(ConfigError, match="no dask scheduler answers at nonsense:x"):
        list(Dask(address="nonsense:x", patience=0.3).map(_twice(), shards(2)))


def test_a_scheduler_without_workers(shards):
    expected = r"has had no worker for 0\.5 seconds\n  - start workers, or wait longer"
    with _scheduler() as address, pytest.raises(ConfigError, match=expected):
        list(Dask(address=address, patience=0.5).map(_twice(), shards(2)))


@pytest.mark.slow
def test_a_scheduler_that_goes_away(shards, tmp_path):
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(_scheduler())
        workers = LocalWorkers(address, 1, None, tmp_path)
        stack.callback(workers.close)
        workers.tend()
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1)
        dask = Dask(address=address, patience=2.0)
        results = dask.map(_twice(), shards(40))
        assert next(results) == (0, True)
        stack.close()
        with pytest.raises(ConfigError, match=r"does not answer any more|has had no worker for"):
            list(results)


def test_without_dask(shards, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ConfigError, match=r"distributed is not installed: pip install distributed \(extra 'dask'\)"
    ):
        list(Dask().map(_twice(), shards(1)))


@pytest.mark.parametrize("options", [{"workers": 2}, {"memory": "1GB"}])
def test_options_that_make_no_sense_beside_an_address(options):
    with pytest.raises(ValueError, match="the one at an address has its own"):
        Dask(address="tcp://x:1", **options)


@pytest.fixture
def sent(tmp_path, shards, monkeypatch):
    """Work as it is sent to a process that has none yet, a shard, and the size of its file."""
    monkeypatch.setattr(dask_task, "_loaded", (b"", None))
    return written(_twice()), shards(1)[0], 100


def test_what_is_sent_is_read_once(sent, monkeypatch):
    assert work_on(*sent, __version__) == (0, True)
    monkeypatch.setattr(dask_task, "pickle", None)
    assert work_on(*sent, __version__) == (0, True)


def test_a_worker_that_cannot_see_the_data(sent):
    path = sent[1].input.path
    path.write_bytes(b"")
    with pytest.raises(
        DataError, match=r"/data: the dask worker on .* sees 0 bytes of it, there were 100"
    ):
        work_on(*sent, __version__)
    path.unlink()
    with pytest.raises(
        DataError, match=r"/data: the dask worker on .* cannot see it\n.*must be on a path that all"
    ):
        work_on(*sent, __version__)


def test_a_worker_that_cannot_see_the_run(sent, tmp_path):
    folder = tmp_path / "out"
    writers = SimpleNamespace(folder=folder)
    work = written(SimpleNamespace(writers=writers))
    match = f"{tmp_path}/out: the dask worker on .* cannot see it"
    with pytest.raises(DataError, match=match):
        work_on(work, *sent[1:], __version__)


def test_a_worker_of_another_version(sent):
    match = rf"has gradestack {__version__}, this is 9\.9"
    with pytest.raises(ConfigError, match=match):
        work_on(*sent, "9.9")


@pytest.mark.slow
def test_a_cluster_of_its_own_leaves_nothing(shards, tmp_path, monkeypatch, capfd):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.chdir(tmp_path)
    handlers = logging.getLogger("distributed").handlers
    dask = Dask(workers=2)
    assert list(dask.map(_twice(), shards(12))) == [(2 * n, True) for n in range(12)]
    paths = list(scratch.iterdir())
    assert paths == []
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["data", "scratch"]
    assert logging.getLogger("distributed").handlers is handlers
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("address", some_of(["foo://x:1", "foo", "tcp://x", "tcp://x:y"], 4))
def test_an_address_that_is_none(shards, address, capfd, monkeypatch):
    """It is refused before anything is connected, and nothing is left behind that would complain
    later.
    """
    monkeypatch.setattr(dask_cluster, "Client", None)
    match = f"no dask scheduler answers at {address}"
    with pytest.raises(ConfigError, match=match):
        list(Dask(address=address).map(_twice(), shards(2)))
    gc.collect()
    assert capfd.readouterr() == ("", "")


def test_errors_that_are_no_exceptions_cross(cluster, shards):
    def cancelled(shard):
        raise asyncio.CancelledError

    def odd(shard):
        raise GeneratorExit

    def interrupted(shard):
        raise KeyboardInterrupt

    for work, name in ((cancelled, "CancelledError"), (odd, "GeneratorExit")):
        match = f"a dask worker raised {name}"
        with pytest.raises(PluginError, match=match):
            list(Dask(address=cluster[0]).map(work, shards(1)))
    with pytest.raises(KeyboardInterrupt):
        list(Dask(address=cluster[0]).map(interrupted, shards(1)))


def test_errors_of_the_file_system_cross_as_they_are(cluster, shards):
    """With their numbers.

    The disk being full is told as such, whatever dask makes of such classes.
    """

    def full(shard):
        raise OSError(28, "No space left on device", "/shared/x")

    with pytest.raises(OSError, match="No space left") as caught:
        list(Dask(address=cluster[0]).map(full, shards(1)))
    assert caught.value.errno == 28


@pytest.mark.slow
def test_memory_that_runs_out_around_the_graders(cluster, shards):
    def large(shard):
        raise MemoryError

    with pytest.raises(PluginError, match="data: not enough memory for the range from byte 0"):
        list(Dask(address=cluster[0]).map(large, shards(1)))
