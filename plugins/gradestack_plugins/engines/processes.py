"""Shards on several processes of this machine; a process that dies costs only what it was at.

A worker knows the work and all shards from its start, so only places cross the line on the way
there, and only finished results on the way back. Which shard a dying worker was at is known: it
takes them in the order given. A range lost with a dying worker is done again; in one lost ``TRIES``
times the record that ends workers is looked for and left out (``lost``).
"""

from __future__ import annotations

import abc
import contextlib
import gc
import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.util import Finalize
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Engine, PluginError, ResultT, Shard, error_text
from gradestack_plugins.engines.lost import grade_lost
from gradestack_plugins.engines.machine import (
    allocated,
    be_expendable,
    die_with_forker,
    following,
    limit_memory,
    memory_share,
    same_directory,
    threads,
    usable_cores,
    valid_memory,
    valid_workers,
)
from gradestack_plugins.engines.time_limit import ENDED_FOR_TIME, limits_of, process_limit

TRIES = 2
"""How often a range may be lost before its killer is looked for."""


def out_of_memory(shard: Shard, memory: int | None) -> PluginError:
    """Return the error of a range whose figures take more memory than a worker has."""
    if memory is None:
        size = ""
    else:
        size = f" ({memory / 2**20:,.0f} MiB)"
    problem = f"the range from byte {shard.start} does not fit into a worker's memory{size}"
    command = "`gradestack plugins describe NAME` says whether one does"
    return PluginError(
        f"{shard.input.shown}: {problem}",
        "give workers more, `engine.memory`, or have fewer of them",
        f"metrics that keep every sample need most: {command}",
    )


OUT_OF_MEMORY = 77
"""Exit code of a worker that ran out of memory where it could not go on."""
RETIRED = 78
"""Exit code of a worker that has kept so much memory that a new one had better go on."""
_SECONDS_TO_END = 5.0
_SAFE_PATH = "PYTHONSAFEPATH"
AHEAD = 4
"""Shards per worker that may be given out or finished ahead of the one whose turn it is."""
SECONDS_BETWEEN_POLLS = 1.0
"""Seconds after which processes nothing is heard of are looked after."""


@attrs.frozen
class Raised:
    """An error instead of a result, and its traceback where it was raised in another process."""

    error: BaseException
    trace: str = ""

    def to_raise(self) -> BaseException:
        """Return the error, to be raised in this process."""
        if self.trace:
            self.error.add_note(self.trace)
        return self.error


class InOrder(abc.ABC):
    """A run of work over shards: some are given out ahead, results come in order."""

    def __init__(self, work: Any, shards: Sequence[Shard]) -> None:
        self.work, self.shards = work, shards
        self.done: dict[int, Any] = {}
        self.killers: list[str] = []

    def results(self) -> Iterator[Any]:
        """Yield the results of the shards, in order."""
        for turn in range(len(self.shards)):
            while turn not in self.done:
                self.give(turn)
                self.take()
            result = self.done.pop(turn)
            if isinstance(result, Raised):
                raise result.to_raise()
            yield result

    @abc.abstractmethod
    def give(self, turn: int) -> None:
        """Give shards out, that whose turn it is first."""

    @abc.abstractmethod
    def take(self) -> None:
        """Wait until some are done, or a second."""

    @abc.abstractmethod
    def attempt(self, work: Any, shard: Shard) -> tuple[bool, Any]:
        """Apply work to a shard on a worker of its own, as ``Attempt`` has it."""

    def waiting(self, turn: int, workers: int, handed_out: Collection[int]) -> list[int]:
        """Return the places of shards that may be given out, and are not."""
        shard_count = len(self.shards)
        window = range(turn, min(shard_count, turn + AHEAD * workers))
        return [index for index in window if index not in handed_out and index not in self.done]

    def grade_lost(self, index: int, why: PluginError | None = None) -> Any:
        """Return the result of a shard lost too often.

        The error of one that has none is told when it is its turn.
        """
        try:
            shard = self.shards[index]
            return grade_lost(self.work, shard, self.attempt, self.killers, why=why)
        except PluginError as error:
            return Raised(error)


def context() -> Any:
    """Return the way in which processes are started.

    By forking where that is safe: while there is one thread, the main one.

    Forking takes a few milliseconds and needs no ``if __name__ == "__main__"`` in the caller's
    script.
    """
    ways = multiprocessing.get_all_start_methods()
    main = threading.current_thread() is threading.main_thread()
    if "fork" in ways and sys.platform == "linux" and main and threads() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")


_ENDING = {
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
}
_BLOCK, _SET = getattr(signal, "SIG_BLOCK", 0), getattr(signal, "SIG_SETMASK", 0)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and its like back while a process starts or is ended.

    Until a new one ignores the signal, it would die of it, and say so; one that is half known would
    be left behind. Blocked is a signal for this thread only: where there are others the system
    hands it to one, so it is noted, too.
    """
    deferred: list[int] = []
    handlers: dict[int, Any] = {}
    mask = getattr(signal, "pthread_sigmask", lambda *_: ())  # not on every system
    before = mask(_BLOCK, ())
    try:
        mask(_BLOCK, _ENDING)
        if threading.current_thread() is threading.main_thread():
            current = {number: signal.getsignal(number) for number in _ENDING}
            handlers = {number: handler for number, handler in current.items() if callable(handler)}
            for number in handlers:
                signal.signal(number, lambda number, _: deferred.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        mask(_SET, before)
        for number in deferred[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def _unwarned() -> Iterator[None]:
    """Hear nothing of other threads while forking.

    There are none but our own, see ``machine.threads``.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
        yield


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Have interpreters that are started meanwhile leave the working directory out of ``sys.path``.

    A server of workers is one, and a worker that is neither forked nor the server's:
    multiprocessing starts them by ``python -c``, which imports even the standard library from
    there.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        _set_safe_path(before)


def _set_safe_path(value: str | None) -> None:
    if value is None:
        os.environ.pop(_SAFE_PATH, None)
    else:
        os.environ[_SAFE_PATH] = value


def _to_streams(do: Callable[[io.TextIOWrapper], object]) -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if isinstance(stream, io.TextIOWrapper):
            # nobody reads it any more, or it is closed
            with contextlib.suppress(OSError, ValueError):
                do(stream)


def _print_lines(stream: io.TextIOWrapper) -> None:
    """Write whole lines, each at once and in one piece.

    What a worker has not written when it is ended is lost, and between two pieces of a line (which
    Python writes under PYTHONUNBUFFERED) there may be another worker's.
    """
    stream.reconfigure(line_buffering=True, write_through=False)


def _gone(forker: int | None) -> Callable[[], bool]:
    """Return a function that says whether the run is gone.

    Where it forked this process, that ends with it at once.
    """
    if forker is not None:
        die_with_forker(forker)
        return lambda: os.getppid() != forker
    run = multiprocessing.parent_process()
    return lambda: run is not None and not run.is_alive()


def _serve(
    line: Connection,
    work: Any,
    shards: Sequence[Shard],
    memory: int | None,
    forker: int | None,
    safe_path: str | None,
) -> None:
    """Serve a worker process: receive numbers of shards, and send their pickled results back.

    It ends with the run, or with exit code ``RETIRED`` once it uses more than half of its memory.
    """
    _set_safe_path(safe_path)  # what a grader starts finds its modules as under any other engine
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as with SIGINT: the whole group gets it
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    gc.freeze()  # what was there before is there to stay
    _to_streams(_print_lines)
    be_expendable()
    if getattr(work, "progress", None) is not None:
        work = attrs.evolve(work, progress=None)  # the parent counts
    most = None
    if memory is not None:
        limit_memory(memory)
        most = allocated() + memory // 2
    with (
        contextlib.suppress(EOFError, OSError),  # the run is gone
        following(_gone(forker)),
        process_limit(limits_of(work).seconds_per_grade),
    ):
        line.send(None)
        while (index := line.recv()) is not None:
            pickled_result = _pickled_result(work, shards[index])
            line.send_bytes(pickled_result)
            if most is not None and allocated() > most:
                sys.exit(RETIRED)


def _pickled_result(work: Any, shard: Shard) -> bytes:
    """Return the result of the work on a shard, or the error it raised, as bytes."""
    try:
        with same_directory():
            result = work(shard)
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    # not in a grader, which would have been guarded: what is left of this process is unknown
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException as error:  # noqa: BLE001 - raised again in the parent
        return pickle.dumps(caught(error, shard), pickle.HIGHEST_PROTOCOL)
    finally:
        _to_streams(io.TextIOWrapper.flush)  # a worker may be ended at any moment from here on


def caught(error: BaseException, shard: Shard) -> Raised:
    """Return an error that is being handled, fit to cross to another process."""
    trace = traceback.format_exc()
    try:
        # our own; many an exception can be written but not read
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001 - then it is told in words
        plugin_error = PluginError(f"{shard.input.shown}: {error_text(error)}")
        return Raised(plugin_error, trace)
    return Raised(error, trace)


class Member:
    """A worker process and the places of the shards it was given."""

    def __init__(self, work: Any, shards: Sequence[Shard], memory: int | None) -> None:
        """Start a worker process, with a line of messages to it."""
        self.indexes: deque[int] = deque()
        self.ready = False
        way = context()
        self.line, theirs = way.Pipe()
        # Not a daemon: a grader may start processes of its own, as it may with any other engine.
        forker = None
        if way.get_start_method() == "fork":
            forker = os.getpid()
        self._process = way.Process(
            target=_serve, args=(theirs, work, shards, memory, forker, os.environ.get(_SAFE_PATH))
        )
        _to_streams(io.TextIOWrapper.flush)  # a forked process would print it, too
        try:
            with uninterrupted(), _unwarned(), _safe_path():
                self._process.start()
        finally:
            theirs.close()
        self._at_exit = Finalize(None, self._process.kill, exitpriority=10)

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None while it lives."""
        return self._process.exitcode  # type: ignore[no-any-return]

    def give(self, index: int) -> None:
        """Ask for the result of the shard at a place.

        A dead one takes it too, and is found dead later.
        """
        self.indexes.append(index)
        with contextlib.suppress(OSError):
            self.line.send(index)

    def take(self) -> tuple[int, Any] | None:
        """Return the next (place, result or ``Raised``).

        None when all it had to say was that it is there.
        """
        try:
            self._wait()
            data = self.line.recv_bytes()
        except (OSError, EOFError) as error:
            self._process.join(_SECONDS_TO_END)
            raise EOFError from error
        if not self.ready:
            self.ready = True
            return None
        index = self.indexes.popleft()
        try:
            return index, pickle.loads(data)  # noqa: S301 - from a process of ours
        # a result of somebody's class that is not to be had here
        except Exception as error:  # noqa: BLE001
            problem = f"the result of a worker process cannot be read: {error_text(error)}"
            return index, Raised(PluginError(problem))

    def _wait(self) -> None:
        """Wait until it has something to say, or is dead.

        Its end of the line does not tell: a process that its grader has forked holds it, too.
        """
        while not self.line.poll(SECONDS_BETWEEN_POLLS):
            if self.exit_code is not None and not self.line.poll():
                raise EOFError

    def close(self, *, at_once: bool) -> None:
        """End the process; at once, or when it has done what it was given."""
        with uninterrupted():
            if not at_once:
                with contextlib.suppress(OSError):
                    self.line.send(None)
                self._process.join(_SECONDS_TO_END)
            self._process.kill()
            self._process.join()
            self._at_exit.cancel()
            self.line.close()
            self._process.close()


_STILLBORN = 3
"""Processes that may end before they are ready, in a row."""


@attrs.frozen(kw_only=True)
class Processes(Engine):
    """Runs shards on several processes and yields their results in shard order.

    When a process dies (killed, out of memory, a crash in native code), a new one does its shard
    again. In a shard that was lost twice, halving finds the record that ends its process. It is
    reported as a failed sample. Results are the same as with any other engine.

    Attributes:
        workers: Number of processes; default: the cores this process may use, and no more than
            there are shards.
        memory: What each may allocate beyond what it starts with, such as ``2GiB``, and at least 64
            MiB; ``none`` for no limit. Default: an equal share of 80 % of the free memory. A grader
            that needs more meets MemoryError. Linux only.
    """

    workers: int | None = attrs.field(default=None, validator=valid_workers)
    memory: str | None = attrs.field(default=None, validator=valid_memory)

    @override
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        shards = list(shards)
        if not shards:
            return
        workers = min(self.workers or usable_cores(), len(shards))
        run = _Run(work, shards, workers, memory_share(self.memory, workers))
        try:
            yield from run.results()
        finally:
            run.close()


class _Run(InOrder):
    def __init__(self, work: Any, shards: list[Shard], workers: int, memory: int | None) -> None:
        super().__init__(work, shards)
        self.workers, self.memory = workers, memory
        self.members: list[Member] = []
        self.losses: dict[int, int] = {}
        self.stillborn = 0

    @override
    def give(self, turn: int) -> None:
        handed_out = {index for member in self.members for index in member.indexes}
        waiting = self.waiting(turn, self.workers, handed_out)
        member_count = len(self.members)
        for _ in range(min(len(waiting), self.workers - member_count)):
            with uninterrupted():
                self.members.append(Member(self.work, self.shards, self.memory))
        for queue, least in ((1, 1), (2, self.workers)):
            for member in self.members:
                if len(waiting) >= least and len(member.indexes) < queue:
                    member.give(waiting.pop(0))

    @override
    def take(self) -> None:
        members = {member.line: member for member in self.members}
        lines = wait(list(members), SECONDS_BETWEEN_POLLS)
        ready = [members[line] for line in lines]
        for member in ready or [member for member in self.members if member.exit_code is not None]:
            try:
                finished = member.take()
            except EOFError:
                self._bury(member)
                continue
            self.stillborn = 0
            if finished is not None:
                index, result = finished
                self.done[index] = result

    def _bury(self, member: Member) -> None:
        """Count what a dead process was at as lost, and have it done again.

        Alone, if it was lost too often.
        """
        self.members.remove(member)
        indexes = list(member.indexes)
        ready = member.ready
        code = member.exit_code
        member.close(at_once=True)
        if not ready:
            self._miscarried(code)
        elif indexes and code != RETIRED:
            first = indexes[0]
            self.losses[first] = self.losses.get(first, 0) + (
                TRIES if code in ENDED_FOR_TIME else 1
            )
            if self.losses[first] >= TRIES:
                shard = self.shards[first]
                why = self._why(shard, code)
                self.done[first] = self.grade_lost(first, why)

    def _why(self, shard: Shard, code: int | None) -> PluginError | None:
        if code == OUT_OF_MEMORY:
            return out_of_memory(shard, self.memory)
        return None

    def _miscarried(self, code: int | None) -> None:
        self.stillborn += 1
        if self.stillborn >= _STILLBORN:
            msg = f"worker processes end before they are ready (exit code {code})"
            hint = (
                'a script that uses threads needs `if __name__ == "__main__":` around what it runs'
            )
            raise PluginError(msg, hint, "or use the engine `serial`")

    @override
    def attempt(self, work: Any, shard: Shard) -> tuple[bool, Any]:
        while True:
            member = Member(work, [shard], self.memory)
            member.give(0)
            try:
                finished = member.take()
                while finished is None:
                    finished = member.take()
                return True, finished[1]
            except EOFError:
                if member.ready:
                    return False, self._why(shard, member.exit_code)
                self._miscarried(member.exit_code)
            finally:
                member.close(at_once=True)

    def close(self) -> None:
        with uninterrupted():
            while self.members:
                member = self.members.pop()
                member.close(at_once=bool(member.indexes))
