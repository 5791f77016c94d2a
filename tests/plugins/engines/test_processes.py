"""The processes engine.

Order, errors, look-ahead, what a dying process costs, and workers whose run is gone.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

import gradestack
from gradestack import DataError, PluginError
from gradestack_plugins.engines import processes as pool
from gradestack_plugins.engines.local import Auto, Serial
from gradestack_plugins.engines.processes import AHEAD, Processes
from tests.core.outcomes import data

DATA = data(__file__, "processes.yaml")


def _ordinal(shard):
    return shard.ordinal


def _process(shard):
    return os.getpid()


@attrs.frozen
class Noted:
    """Leaves a file per call, and does something at some shards."""

    calls_folder: Path
    at: dict = attrs.field(factory=dict)

    def __call__(self, shard):
        path = f"{shard.ordinal}-*"
        paths = list(self.calls_folder.glob(path))
        number = len(paths)
        (self.calls_folder / f"{shard.ordinal}-{number}").touch()
        if number == 0:
            self.at.get(shard.ordinal, _ordinal)(shard)
        return shard.ordinal

    def calls(self, ordinal):
        path = f"{ordinal}-*"
        paths = self.calls_folder.glob(path)
        return len(list(paths))


def _die(shard):
    os.kill(os.getpid(), signal.SIGKILL)


@attrs.frozen
class Until:
    """Waits for work on another shard, and keeps what had been begun by then."""

    calls_folder: Path
    ordinal: int

    def __call__(self, shard):
        while not (self.calls_folder / f"{self.ordinal}-0").exists():
            time.sleep(0.01)
        paths = self.calls_folder.iterdir()
        names = [path.name for path in paths]
        text = json.dumps(names)
        seen_folder = self.calls_folder.parent / "seen"
        seen_folder.write_text(text)


def _for_ever(shard):
    time.sleep(3600)


class Unpicklable(Exception):
    """Can be written, but not read again."""

    def __init__(self, one, two):
        super().__init__(one)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40])
@pytest.mark.parametrize(
    "engine", [Serial(), Processes(workers=1), Processes(workers=2), Processes(), Auto()]
)
def test_results_come_in_shard_order(engine, count, shards):
    assert list(engine.map(_ordinal, shards(count))) == list(range(count))
    assert multiprocessing.active_children() == []


def test_the_serial_engine_does_nothing_ahead(shards):
    """So that an early end costs nothing."""
    shards_read = []
    results = Serial().map(lambda shard: shards_read.append(shard.ordinal), shards(3))
    assert shards_read == []
    next(results)
    assert shards_read == [0]


def test_a_slow_shard_holds_up_the_order_only(tmp_path, shards):
    """Results after it wait for it, no more of them than can be held.

    Each worker's share of shards.
    """
    calls_folder = tmp_path / "calls"
    most = 2 * AHEAD
    calls_folder.mkdir()
    work = Noted(calls_folder, {0: Until(calls_folder, most - 1)})
    processes = Processes(workers=2)
    assert list(processes.map(work, shards(60))) == list(range(60))
    begun = set()
    seen_folder = tmp_path / "seen"
    text = seen_folder.read_text()
    for name in json.loads(text):
        number = int(name.partition("-")[0])
        begun.add(number)
    assert max(begun) == most - 1


def test_several_processes_take_part(shards):
    processes = Processes(workers=2)
    process_ids = set(processes.map(_process, shards(40)))
    assert len(process_ids) == 2
    assert os.getpid() not in process_ids


def test_leaving_early_ends_the_processes(tmp_path, shards, monkeypatch):
    monkeypatch.setattr(pool, "_SECONDS_TO_END", 600.0)
    processes = Processes(workers=2)
    noted = Noted(tmp_path, dict.fromkeys(range(1, 40), _for_ever))
    results = processes.map(noted, shards(40))
    next(results)
    assert len(multiprocessing.active_children()) == 2
    begun = time.monotonic()
    results.close()
    assert multiprocessing.active_children() == []
    now = time.monotonic()
    assert now - begun < 300


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_a_dead_process_costs_only_the_shard_it_was_at(tmp_path, shards, workers):
    work = Noted(tmp_path, {3: _die, 10: _die})
    processes = Processes(workers=workers)
    assert list(processes.map(work, shards(20))) == list(range(20))
    assert [work.calls(n) for n in range(20)] == [2 if n in (3, 10) else 1 for n in range(20)]


def test_work_that_cannot_be_watched_ends_with_an_error(shards):
    """A function that is not a worker has no records to blame; what came before is yielded."""
    processes = Processes(workers=1)
    results = processes.map(_die_at_two, shards(4))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(
        PluginError, match="data: reading the range from byte 2 ends every worker process"
    ):
        next(results)


def _die_at_two(shard):
    if shard.ordinal == 2:
        _die(shard)
    return shard.ordinal


def _raise(shard):
    if shard.ordinal == 3:
        msg = "three"
        raise DataError(msg)
    if shard.ordinal == 4:
        raise Unpicklable("four", 4)
    return shard.ordinal


def test_an_error_comes_when_its_shard_is_due(shards):
    processes = Processes(workers=2)
    results = processes.map(_raise, shards(6))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(DataError, match=r"^three") as caught:
        next(results)
    first_note = caught.value.__notes__[0]
    assert "in _raise" in first_note
    assert multiprocessing.active_children() == []


def test_an_error_that_cannot_cross_is_told_in_words(shards):
    with pytest.raises(PluginError, match="data: Unpicklable: four"):
        list(Processes(workers=2).map(_raise, shards(6)[4:]))


class Unreadable:
    """A result that can be written, but not read again."""

    def __reduce__(self):
        return (int, ("nothing",))


def _unreadable(shard):
    return Unreadable()


def test_a_result_that_cannot_cross_is_an_error(shards):
    with pytest.raises(
        PluginError, match="the result of a worker process cannot be read: ValueError"
    ):
        list(Processes(workers=1).map(_unreadable, shards(1)))


def _no_memory(shard):
    raise MemoryError


@pytest.mark.slow
def test_memory_that_runs_out_around_the_graders(shards):
    """In this process it is an error with its place.

    In a worker it is a death that is told as such.
    """
    with pytest.raises(PluginError, match="data: not enough memory for the range from byte 0"):
        list(Serial().map(_no_memory, shards(1)))
    with pytest.raises(
        PluginError, match=r"the range from byte 0 does not fit into a worker's memory \(512 MiB\)"
    ):
        list(Processes(workers=1, memory="512MiB").map(_no_memory, shards(1)))


@pytest.fixture
def served(monkeypatch):
    """Processes are started from a server, as they are where the interpreter has
    several threads.
    """
    monkeypatch.setattr(pool, "context", lambda: multiprocessing.get_context("forkserver"))


@pytest.mark.slow
def test_processes_need_not_be_forked(served, shards):
    processes = Processes(workers=2)
    assert list(processes.map(_ordinal, shards(20))) == list(range(20))
    map_count = len(set(Processes(workers=2).map(_process, shards(40))))
    assert map_count == 2


class Unloadable:
    """Work that cannot be read in another process."""

    def __call__(self, shard):
        return shard.ordinal

    def __reduce__(self):
        return (int, ("nothing",))


@pytest.mark.slow
def test_processes_that_never_get_ready(served, shards):
    with pytest.raises(PluginError, match="worker processes end before they are ready"):
        list(Processes(workers=2).map(Unloadable(), shards(4)))
    assert multiprocessing.active_children() == []


UNGUARDED = DATA["unguarded"]


@pytest.mark.skipif(sys.platform != "linux", reason="others start processes from a server anyway")
def test_a_thread_of_our_own_does_not_hinder_forking(tmp_path):
    """A script without a guard is not imported again because the journal is being written at that
    moment.
    """
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, check=False
    )
    expected_text = f"run\n{list(range(9))}\n"
    assert done.stdout == expected_text
    assert done.stderr == ""


STUCK = DATA["stuck"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends with what it is at")
def test_a_worker_stuck_in_native_code_ends_with_the_run(tmp_path, until):
    """A pattern that takes for ever keeps the interpreter's lock.

    The run is killed, and so is the worker.
    """
    script = tmp_path / "script.py"
    workers_folder = tmp_path / "workers"
    script.write_text(STUCK)
    workers_folder.mkdir()
    run = subprocess.Popen([sys.executable, script, workers_folder])
    try:
        until(lambda: any(workers_folder.iterdir()))
        paths = workers_folder.iterdir()
        path = next(paths)
        worker = int(path.name)
        begun = _ticks(worker)
        until(lambda: _ticks(worker) > begun + 10)  # it is at the pattern by now
    finally:
        run.kill()
        run.wait()
    try:
        until(lambda: not _runs(worker))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def _stat(process):
    """Return the fields of a process behind its name: its state first."""
    text = Path(f"/proc/{process}/stat").read_text()
    return text.rpartition(")")[2].split()


def _ticks(process):
    stat = _stat(process)
    shards = stat[11:13]
    return sum(map(int, shards))


def _runs(process):
    try:
        stat = _stat(process)
        return stat[0] != "Z"
    except OSError:
        return False


def test_progress_is_reported_by_the_run_alone(tmp_path):
    """Forked workers inherit the callback and never call it.

    Their samples count when their range is finished.
    """
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f'{{"id": "{number}", "predicted": "x"}}\n' for number in range(300)))
    calls = tmp_path / "calls"
    paths = [str(path)]
    suite = {
        "target": {"paths": paths},
        "graders": {"q": {"kind": "contains"}},
        "reports": [],
    }

    def progress(_):
        with calls.open("a") as file:
            file.write(f"{os.getpid()}\n")

    output = tmp_path / "out"
    gradestack.run(suite, output=output, engine="processes", workers=2, progress=progress)
    expected = {str(os.getpid())}
    text = calls.read_text()
    assert set(text.split()) == expected


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts workers by a server")
SCRIPT = DATA["script"]


def test_a_worker_whose_line_is_cut_ends_in_silence():
    """As it is when the run is interrupted twice in a moment, and forgets the worker before it has
    ended it.
    """
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
    assert done.stderr == ""
