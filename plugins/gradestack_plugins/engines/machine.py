"""Cores and memory that this machine offers its worker processes, and their limits."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gradestack import compile_later, watchdog
from gradestack_plugins.engines.memory import free_memory

_GROUP_CPUS = Path("/sys/fs/cgroup/cpu.max")
_SHARE = 0.8
"""Of the free memory, what workers may take together.

The rest is for the process that merges their results.
"""
_SIZE = compile_later(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?)B?", re.IGNORECASE)
_LEAST = 64 * 2**20
"""Bytes a worker needs for threads, connections and its reader.

With less it is up and gets nowhere.
"""
_EXPENDABLE = 500
"""Added to a worker's badness (0 to 1000), so that the kernel short of memory ends a worker and not
the run.
"""
_PR_SET_PDEATHSIG = 1
_OWN_THREADS = "gradestack-"
_SECONDS_TO_FADE = 0.3
_lasting: set[int] = set()
"""Threads of libraries, known to the system alone."""


@contextlib.contextmanager
def same_directory() -> Iterator[None]:
    """Be in the same working directory afterwards.

    Graders may change it, and relative paths still mean what they did.

    Only what they write meanwhile goes elsewhere.
    """
    try:
        before = os.getcwd()  # noqa: PTH109 - a text is wanted
    except OSError:  # it is gone
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.chdir(before)


def usable_cores() -> int:
    """Return the number of cores this process may use.

    By its affinity and by the limit of its container.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    try:
        quota, period = _GROUP_CPUS.read_text(encoding="ascii").split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no control groups, or "max"
        return cores


def valid_workers(_engine: object, _field: object, workers: int | None) -> None:
    """Refuse a number of workers that makes no sense."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")


def valid_memory(_engine: object, _field: object, memory: str | None) -> None:
    """Refuse a text that is no size, and one too small for a worker."""
    if memory is not None and (parse_size(memory) or _LEAST) < _LEAST:
        raise ValueError(
            f"memory must be at least 64MiB, what a worker itself takes while at work, got {memory}"
        )


def parse_size(text: str) -> int | None:
    """Return the bytes of a size such as ``2 GiB`` or ``500MB``; None for ``none``."""
    if text.strip().lower() == "none":
        return None
    match = _SIZE.fullmatch(text.strip())
    if not match or not float(match[1]):
        raise ValueError(f"expected a size such as 2GiB or 500MB, or none; got {text!r}")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index(match[2].upper() or " "))


def memory_share(size: str | None, workers: int) -> int | None:
    """Return the bytes each of ``workers`` may allocate; None for no limit."""
    if size is not None:
        return parse_size(size)
    free = free_memory()
    if free is None:
        return None
    return int(_SHARE * free / workers)


def limit_memory(size: int) -> None:
    """Let this process allocate ``size`` bytes beyond what it has; then it meets MemoryError.

    Linux only.

    What counts is private writable memory (``RLIMIT_DATA``): mapped files and reserved address
    space do not.
    """
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - not on every system

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = allocated() + size
    if hard == resource.RLIM_INFINITY:
        soft = wanted
    else:
        soft = min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def allocated() -> int:
    """Return the bytes that count against ``limit_memory``; 0 where the system does not say."""
    try:
        text = Path("/proc/self/statm").read_text(encoding="ascii")
        pages = text.split()[5]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def be_expendable() -> None:
    """Let the kernel, when short of memory, end this process before the one that awaits results."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_EXPENDABLE), encoding="ascii")


def die_with_forker(parent: int) -> None:
    """Have the system kill this process as soon as the one that forked it is gone. Linux only.

    A thread of our own would not do: native code that keeps the interpreter's lock keeps that
    thread waiting, too.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415 - not in every build of the interpreter

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # gone before the system was asked
        os._exit(1)


def following(gone: Callable[[], bool]) -> contextlib.AbstractContextManager[None]:
    """End this process when the run is gone meanwhile, as nobody would take its results."""
    return watchdog(lambda: gone() and os._exit(1))


def threads() -> int:
    """Return the number of threads of this process, without those that gradestack started.

    Those write to files and synchronise them by calls of the system, and take no lock that a
    process forked meanwhile could wait for: it lacks the thread, and misses nothing.
    """
    try:
        others = _other_threads()
    except OSError:  # not on every system
        return threading.active_count() - len(_own_threads())
    end = time.monotonic() + _SECONDS_TO_FADE
    # A thread that has just ended is known to the system a moment longer than to the interpreter.
    while others - _lasting and threading.active_count() - len(_own_threads()) <= 1:
        if time.monotonic() > end:  # of a library: not waited for again
            _lasting.update(others)
        time.sleep(0.001)
        others = _other_threads()
    return 1 + len(others)


def _own_threads() -> list[int | None]:
    threads = threading.enumerate()
    return [thread.native_id for thread in threads if thread.name.startswith(_OWN_THREADS)]


def _other_threads() -> set[int]:
    threads = set(map(int, os.listdir("/proc/self/task")))  # noqa: PTH208
    return threads.difference(_own_threads(), [threading.get_native_id()])
