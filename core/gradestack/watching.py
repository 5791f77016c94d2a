"""A thread that looks after what another is at, and words for standard error at any moment."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_BETWEEN_POLLS = 0.25
"""Seconds between two polls of the thread that keeps an eye on grades."""
_polls: list[Callable[[], object]] = []
_threads: list[threading.Thread] = []
_lock = threading.RLock()


@contextmanager
def watchdog(poll: Callable[[], object]) -> Iterator[None]:
    """Let another thread call a function at each of its polls while the ``with`` block runs."""
    with _lock:
        _polls.append(poll)
        if not _threads:
            _threads.append(threading.Thread(target=_watch, name="gradestack-watch", daemon=True))
            _threads[0].start()
    try:
        yield
    finally:
        with _lock, contextlib.suppress(ValueError):  # in a process that was forked meanwhile
            _polls.remove(poll)


def _watch() -> None:
    while True:
        time.sleep(SECONDS_BETWEEN_POLLS)
        with _lock:
            for poll in [*_polls]:
                poll()


def _forget_threads() -> None:
    global _lock  # noqa: PLW0603 - the parent's may be held
    _polls.clear()
    _threads.clear()
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on every system
    os.register_at_fork(after_in_child=_forget_threads)


def write_stderr(text: str) -> None:
    """Write a line to standard error, from wherever the program is.

    Even in the middle of writing another.
    """
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="backslashreplace"))
