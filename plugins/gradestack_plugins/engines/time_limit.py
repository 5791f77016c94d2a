"""The end of a process whose grade takes too long and takes no notice of
``gradestack.TimedOut``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from gradestack import (
    SECONDS_BETWEEN_POLLS,
    Fault,
    Limits,
    TimedOut,
    Watchdog,
    time_limit_text,
    watchdog,
)

GRACE = 10.0
"""Seconds after which a process is ended that a grade still keeps."""
_OVERDUE = 79
ENDED_FOR_TIME = (_OVERDUE, 1)
"""Exit codes of a process that was ended for its time.

1 is that of the timer outside the interpreter.
"""


def limits_of(work: Any) -> Limits:
    """Return the limits of records and graders; what is no worker has no limits."""
    return getattr(getattr(work, "plan", None), "limits", None) or Limits()


def folder_of(work: Any) -> Path | None:
    """Return the folder that work writes its files into; None where it writes none."""
    folder = getattr(getattr(work, "writers", None), "folder", None)
    return folder if isinstance(folder, Path) else None


def overdue(seconds: float) -> Fault:
    """Return the fault of a sample that was not graded within the time limit."""
    message = time_limit_text(seconds)
    return Fault(
        category="grading",
        code="timed_out",
        message=message,
        type=TimedOut.__name__,
    )


@contextlib.contextmanager
def process_limit(seconds: float | None) -> Iterator[None]:
    """End this process when a grade is overdue, whatever it is at.

    By a thread that looks. While nothing else in the process can run, neither can that: then a
    timer outside the interpreter, which is set anew at each look, is not set any more. The first
    time it is set by who begins, because the thread may never come to it.
    """
    if seconds is None:
        yield
        return
    most = seconds + GRACE
    dog = Watchdog(threading.get_ident())

    def poll() -> None:
        faulthandler.dump_traceback_later(most, exit=True, file=_nowhere())
        if dog.poll() * SECONDS_BETWEEN_POLLS >= most:
            os._exit(_OVERDUE)

    poll()
    try:
        with watchdog(poll):
            yield
    finally:
        # where another thread is at a grade, its next look sets it
        faulthandler.cancel_dump_traceback_later()


@cache
def _nowhere() -> int:
    return os.open(os.devnull, os.O_WRONLY)
