"""One worker process of this machine, and the line to it.

A worker knows the work and all shards from its start, so only places cross the line on the way there, and only
finished results on the way back. Which shard a dying worker was at is known: it takes them in the order given.
"""

from __future__ import annotations

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
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from typing import Any

import attrs

from gradestack import PluginError, Shard, error_text
from gradestack_plugins.engines.machine import (
    allocated,
    be_expendable,
    die_with_forker,
    die_with_pipe,
    leave_when,
    limit_memory,
    same_directory,
    threads,
)
from gradestack_plugins.engines.time_limit import process_limit, seconds_of, time_limit

OUT_OF_MEMORY = 77
"""Exit code of a worker that ran out of memory where it could not go on."""
RETIRED = 78
"""Exit code of a worker that has kept so much memory that a new one had better go on."""
_SECONDS_TO_END = 5.0
_SAFE_PATH = "PYTHONSAFEPATH"
LOOK = 1.0
"""Seconds after which processes nothing is heard of are looked after."""


class _Elsewhere(Exception):
    """The traceback of an error raised in another process, as its cause."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@attrs.frozen
class Raised:
    """An error instead of a result."""

    error: BaseException
    trace: str

    def again(self) -> BaseException:
        """Return the error, to be raised in this process."""
        if self.trace:
            self.error.__cause__ = _Elsewhere(self.trace)
        return self.error


def context() -> Any:
    """Return how processes are started: by forking where that is safe: while there is one thread, the main one.

    Forking takes a few milliseconds and needs no ``if __name__ == "__main__"`` in the caller's script.
    """
    ways = multiprocessing.get_all_start_methods()
    main = threading.current_thread() is threading.main_thread()
    if "fork" in ways and sys.platform == "linux" and main and threads() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")


_ENDING = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and its like back while a process starts or is ended.

    Until a new one ignores the signal, it would die of it, and say so; one that is half known would be left behind.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _unwarned() -> Iterator[None]:
    """Hear nothing of other threads while forking: there are none but our own, see :func:`.machine.threads`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
        yield


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Have interpreters that are started meanwhile leave the working directory out of ``sys.path``.

    A server of workers is one, and a worker that is neither forked nor the server's: multiprocessing starts them by
    ``python -c``, which imports even the standard library from there.
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


def _streams() -> list[io.TextIOWrapper]:
    """Return what this process prints to: standard output and error, also where the program replaced them."""
    every = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return [each for each in every if isinstance(each, io.TextIOWrapper) and not each.closed]


def _flush() -> None:
    """Write out what was printed, by way of whichever name."""
    for stream in _streams():
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()


@contextlib.contextmanager
def _printed() -> Iterator[None]:
    """Have what is printed inside written out at the end: a worker may be ended at any moment after it."""
    try:
        yield
    finally:
        _flush()


def _print_lines() -> None:
    """Write whole lines, each at once and in one piece.

    What a worker has not written when it is ended is lost, and between two pieces of a line (which Python writes under
    PYTHONUNBUFFERED) there may be another worker's.
    """
    for stream in _streams():
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(line_buffering=True, write_through=False)


def _follow(forker: int | None) -> None:
    """Have this process end with the run, whatever it is at by then."""
    run = multiprocessing.parent_process()
    if forker is not None:
        die_with_forker(forker)
    elif run is not None:
        die_with_pipe(run.sentinel)

    def gone() -> bool:
        return os.getppid() != forker if forker is not None else run is not None and not run.is_alive()

    threading.Thread(target=leave_when, args=(gone,), daemon=True).start()


def _serve(
    line: Connection, work: Any, shards: Sequence[Shard], memory: int | None, forker: int | None, safe_path: str | None
) -> None:
    """Be a worker process until told to end."""
    _set_safe_path(safe_path)  # what a grader starts finds its modules as under any other engine
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as with SIGINT: the whole group gets it
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    gc.freeze()  # what was there before is there to stay
    _print_lines()
    _follow(forker)
    be_expendable()
    if getattr(work, "progress", None) is not None:
        work = attrs.evolve(work, progress=None)  # the parent counts
    most = None
    if memory is not None:
        limit_memory(memory)
        most = allocated() + memory // 2
    with contextlib.suppress(EOFError, OSError), process_limit(seconds_of(work)):  # the run is gone
        line.send(None)
        while (place := line.recv()) is not None:
            line.send_bytes(_answer(work, shards[place]))
            if most is not None and allocated() > most:
                sys.exit(RETIRED)


def _answer(work: Any, shard: Shard) -> bytes:
    try:
        with _printed(), same_directory(), time_limit(seconds_of(work)):
            result = work(shard)
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except MemoryError:  # not in a grader, which would have been guarded: what is left of this process is unknown
        os._exit(OUT_OF_MEMORY)
    except BaseException as error:  # noqa: BLE001 - raised again in the parent
        return pickle.dumps(caught(error, shard), pickle.HIGHEST_PROTOCOL)


def caught(error: BaseException, shard: Shard) -> Raised:
    """Return an error that is being handled, fit to cross to another process."""
    trace = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own; many an exception can be written but not read
    except Exception:  # noqa: BLE001 - then it is told in words
        return Raised(PluginError(f"{shard.input.shown}: {error_text(error)}"), trace)
    return Raised(error, trace)


class Member:
    """A worker process and the places of the shards it was given.

    Attributes:
        places: What it has not answered yet; it works on the first.
        ready: True once it has said that it is there.
    """

    def __init__(self, work: Any, shards: Sequence[Shard], memory: int | None) -> None:
        self.places: deque[int] = deque()
        self.ready = False
        way = context()
        self.line, theirs = way.Pipe()
        # Not a daemon: a grader may start processes of its own, as it may with any other engine.
        forker = os.getpid() if way.get_start_method() == "fork" else None
        self._process = way.Process(
            target=_serve, args=(theirs, work, shards, memory, forker, os.environ.get(_SAFE_PATH))
        )
        _flush()  # a forked process would print it, too
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

    def give(self, place: int) -> None:
        """Ask for the result of the shard at a place; a dead one takes it too, and is found dead later."""
        self.places.append(place)
        with contextlib.suppress(OSError):
            self.line.send(place)

    def take(self) -> tuple[int, Any] | None:
        """Return the next (place, result or :class:`Raised`); None when all it had to say was that it is there."""
        try:
            self._wait()
            answer = self.line.recv_bytes()
        except (OSError, EOFError) as error:
            self._process.join(_SECONDS_TO_END)
            raise EOFError from error
        if not self.ready:
            self.ready = True
            return None
        place = self.places.popleft()
        try:
            return place, pickle.loads(answer)  # noqa: S301 - from a process of ours
        except Exception as error:  # noqa: BLE001 - a result of somebody's class that is not to be had here
            return place, Raised(PluginError(f"the result of a worker process cannot be read: {error_text(error)}"), "")

    def _wait(self) -> None:
        """Wait until it has something to say, or is dead.

        Its end of the line does not tell: a process that its grader has forked holds it, too.
        """
        while not self.line.poll(LOOK):
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
