"""What this machine offers its worker processes, and what they must not take from it."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gradestack.memory import available

_GROUP_CPUS = Path("/sys/fs/cgroup/cpu.max")
_SHARE = 0.8
"""Of the free memory, what workers may take together: the rest is for the process that merges their results."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?)B?", re.IGNORECASE)
_EXPENDABLE = 500
"""Added to a worker's badness (0 to 1000), so that the kernel short of memory ends a worker and not the run."""


def usable_cores() -> int:
    """Return the number of cores this process may use: by its affinity and by the limit of its container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    try:
        quota, period = _GROUP_CPUS.read_text(encoding="ascii").split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no control groups, or "max"
        return cores


def check_workers(workers: int | None) -> None:
    """Refuse a number of workers that makes no sense.

    Raises:
        ValueError: It is less than one.
    """
    if workers is not None and workers < 1:
        msg = f"workers must be at least 1, got {workers}"
        raise ValueError(msg)


def parse_size(text: str) -> int | None:
    """Return the bytes of a size such as ``2 GiB`` or ``500MB``; None for ``none``.

    Raises:
        ValueError: Not a size.
    """
    if text.strip().lower() == "none":
        return None
    match = _SIZE.fullmatch(text.strip())
    if not match or not float(match[1]):
        msg = f"expected a size such as 2GiB or 500MB, or none; got {text!r}"
        raise ValueError(msg)
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " "))


def memory_share(given: str | None, workers: int) -> int | None:
    """Return the bytes each of ``workers`` may allocate; None for no limit.

    Args:
        given: The option ``memory``; None for an equal share of what is free.
        workers: How many there are.
    """
    if given is not None:
        return parse_size(given)
    free = available()
    return None if free is None else int(_SHARE * free / workers)


def limit_memory(size: int) -> None:
    """Let this process allocate ``size`` bytes beyond what it has; then it meets MemoryError. Linux only.

    What counts is private writable memory (``RLIMIT_DATA``): mapped files and reserved address space do not.
    """
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - not on every system

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = allocated() + size
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def allocated() -> int:
    """Return the bytes that count against :func:`limit_memory`; 0 where the system does not say."""
    try:  # the sixth figure, in pages
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def be_expendable() -> None:
    """Be ended before the process that waits for the results, when the kernel is short of memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_EXPENDABLE), encoding="ascii")


def leave_with_parent(parent: int, tidy: Callable[[], None] | None = None) -> None:
    """End this process when its parent is gone, as nobody would take its results. Never returns; run it in a thread.

    Args:
        parent: The parent's process id.
        tidy: Called before the end.
    """
    while os.getppid() == parent:
        time.sleep(1)
    if tidy is not None:
        tidy()
    os._exit(1)


def threads() -> int:
    """Return the number of threads of this process, those of libraries included."""
    import threading  # noqa: PLC0415 - only where the system does not say

    try:
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - names are not wanted
    except OSError:
        return threading.active_count()
