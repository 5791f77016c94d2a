"""Shards on several processes of this machine; a process that dies costs its shards a second try, not the run."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, ClassVar

import attrs

from gradestack.api import Engine, ResultT, Shard
from gradestack.errors import PluginError

TRIES = 2
"""How often a shard may be among those lost with a dying process before it is run alone."""
_work: Any = None


def _start(work: Any) -> None:
    """Keep the work in the new process, so that it is sent once and not with every shard."""
    global _work  # noqa: PLW0603 - one per process, set once before any shard
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    threading.Thread(target=_leave_with_parent, args=(os.getppid(),), daemon=True).start()
    silent = getattr(work, "tick", None) is not None  # progress is told by the parent
    _work = attrs.evolve(work, tick=None) if silent else work


def _leave_with_parent(parent: int) -> None:
    """End this process when its parent is gone: nobody would take its results."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _do(shard: Shard) -> Any:
    return _work(shard)


def _context() -> multiprocessing.context.BaseContext:
    """Return how processes are started.

    Forking needs no ``if __name__ == "__main__"`` in the caller's script, but is safe only while there is one thread.
    """
    ways = multiprocessing.get_all_start_methods()
    if "fork" in ways and sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


@attrs.frozen(kw_only=True)
class Processes(Engine):
    """Runs shards on several processes and yields their results in shard order.

    When a process dies (killed, out of memory, a crash in native code), the shards under way are done again; one that
    was lost twice is run alone, noting how far it gets, and the record that kills its process is reported as a failed
    sample. Results are the same as with any other engine.

    Attributes:
        workers: Number of processes; default: the cores this process may use.
    """

    remote: ClassVar[bool] = True

    workers: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            msg = f"workers must be at least 1, got {self.workers}"
            raise ValueError(msg)

    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` for every shard, in order.

        Raises:
            PluginError: A shard kills every process that works on it, and no single record is to blame.
        """
        run = _Run(work, list(shards), self.workers or usable_cores())
        try:
            yield from run.results()
        finally:
            run.close()


class _Run:
    """One call of the engine: a pool, replaced when it breaks, and what is known of every shard."""

    def __init__(self, work: Any, shards: list[Shard], workers: int) -> None:
        self.work, self.shards, self.workers = work, shards, max(1, min(workers, len(shards)))
        self.pool: ProcessPoolExecutor | None = None
        self.futures: dict[int, Future[Any]] = {}
        self.done: dict[int, Any] = {}
        self.lost = [0] * len(shards)
        self.next = 0

    def results(self) -> Iterator[Any]:
        for place in range(len(self.shards)):
            while place not in self.done:
                self._submit(place)
                self._wait(place)
            yield self.done.pop(place)

    def _new_pool(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(workers, mp_context=_context(), initializer=_start, initargs=(self.work,))

    def _submit(self, waiting_for: int) -> None:
        """Keep two shards per process under way, no further ahead than results can be held."""
        if self.pool is None:
            self.pool = self._new_pool(self.workers)
        wanted = list(range(waiting_for, min(len(self.shards), waiting_for + 4 * self.workers)))
        for place in wanted:
            if len(self.futures) >= 2 * self.workers:
                break
            if place not in self.done and place not in self.futures:
                try:
                    self.futures[place] = self.pool.submit(_do, self.shards[place])
                except BrokenProcessPool:
                    self._broken()
                    return

    def _wait(self, place: int) -> None:
        future = self.futures.get(place)
        if future is None:
            return
        try:
            self.done[place] = future.result()
            del self.futures[place]
        except BrokenProcessPool:
            self._broken()

    def _broken(self) -> None:
        """Keep what is finished, count the others as lost, and run alone those lost too often."""
        for place, future in list(self.futures.items()):
            finished = future.done() and not future.cancelled() and future.exception() is None
            if finished:
                self.done[place] = future.result()
            else:
                self.lost[place] += 1
        self.futures.clear()
        self.close()
        for place, times in enumerate(self.lost):
            if times >= TRIES and place not in self.done:
                self.lost[place] = 0
                self.done[place] = self._alone(self.shards[place])

    def _attempt(self, work: Any, shard: Shard) -> tuple[bool, Any]:
        """Return (True, result) of a shard on a process of its own, (False, None) when that process died."""
        with ProcessPoolExecutor(1, mp_context=_context(), initializer=_start, initargs=(work,)) as pool:
            try:
                return True, pool.submit(_do, shard).result()
            except BrokenProcessPool:
                return False, None

    def _alone(self, shard: Shard) -> Any:
        """Run a shard that was lost too often; find the records that kill a process, one after the other."""
        work = self.work.watched() if hasattr(self.work, "watched") else None
        while True:
            survived, result = self._attempt(work or self.work, shard)
            if survived:
                return result
            at = None if work is None else work.last_position(shard)
            if work is None or (shard.ordinal, at) in work.poison:  # reading it is what kills
                msg = f"{shard.input.path}: reading the range from byte {shard.start} ends every process (record {at})"
                raise PluginError(msg)
            work = work.isolated(shard.ordinal, at)

    def close(self) -> None:
        """End the pool; processes still at work are stopped, what they were at is not wanted any more."""
        if self.pool is None:
            return
        pool, self.pool = self.pool, None
        if any(not future.done() for future in self.futures.values()):
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
