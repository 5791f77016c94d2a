"""Signals that ask a process to end, and how long it may take to."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from gradestack.errors import EXIT_INTERRUPTED
from gradestack.interpreter import ON_DEFERRED_SIGINT
from gradestack.watching import watchdog, write_stderr

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_NUDGE, _LAST = 2.0, 4.5
"""Seconds after the first SIGTERM: what is still at hand is interrupted once more.

The process ends.
"""
_FINISHING = (
    "interrupted: what is being graded is finished first; Ctrl-C once more ends the run now"
)
_ENDED = (
    "interrupted: the run did not come to its end within 5 s and was ended; --resume "
    "continues it where it can"
)


class _Deadline:
    """Ends this process in time after a signal handler has set ``begun``."""

    def __init__(self) -> None:
        self.begun: float | None = None
        self._nudged = False

    def look(self) -> None:
        """Interrupt again, then exit, when the time since the signal passes the two limits."""
        seconds = 0.0 if self.begun is None else time.monotonic() - self.begun
        if seconds >= _NUDGE and not self._nudged:
            self._nudged = True
            os.kill(os.getpid(), signal.SIGINT)
        if seconds >= _LAST:
            write_stderr(_ENDED)
            _remove_copies()
            os._exit(EXIT_INTERRUPTED)


def _remove_copies() -> None:
    if (
        module := sys.modules.get("gradestack.copies.files")
    ) is not None:  # else nothing was copied
        module.remove_copies()


@contextmanager
def forward_termination() -> Iterator[None]:
    """Let SIGHUP do what Ctrl-C does, SIGTERM what two do, so that what was graded is kept and
    nothing left half done.

    SIGTERM ends the grade at hand, too, and within five seconds the process: by then only what is
    on record is kept, as after SIGKILL. The first Ctrl-C says that a second one ends the run now,
    where a grader is waited for.

    Only where they would end the process: what ignores them (nohup) or handles them keeps doing so.
    Workers forked meanwhile end at once, as they would without this.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    process = os.getpid()
    replaced = []
    requests = []
    deadline = _Deadline()

    def forward(number: int, frame: FrameType | None) -> None:
        """Pass a signal on to the handler of SIGINT; in other processes, use its default action."""
        handler = signal.getsignal(signal.SIGINT)
        if os.getpid() != process or not callable(handler):
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        requests.append(number)
        if number == signal.SIGTERM:
            deadline.begun = deadline.begun or time.monotonic()
            handler(signal.SIGINT, frame)
        handler(signal.SIGINT, frame)  # the first one may have been held back

    def held_back(patient: bool) -> None:
        if os.getpid() == process and not requests and not patient:
            write_stderr(_FINISHING)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, forward)
            replaced.append(number)
    ON_DEFERRED_SIGINT.append(held_back)
    try:
        with watchdog(deadline.look):
            yield
    finally:
        ON_DEFERRED_SIGINT.remove(held_back)
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def install_excepthooks() -> None:
    """Install hooks so that Ctrl-C prints no traceback, even in a destructor or while exiting."""
    earlier_hook = sys.unraisablehook

    def unraisable(args: UnraisableHookArgs) -> None:
        """Send SIGINT again for a lost KeyboardInterrupt; pass other errors to the earlier hook."""
        if args.exc_type is not KeyboardInterrupt:
            earlier_hook(args)
            return
        retry = threading.Timer(
            0.05, os.kill, (os.getpid(), signal.SIGINT)
        )  # it was lost where it cannot be raised
        retry.daemon = True
        retry.start()

    def uncaught(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if kind is KeyboardInterrupt:
            _remove_copies()
            os._exit(EXIT_INTERRUPTED)
        sys.__excepthook__(kind, error, trace)

    sys.unraisablehook, sys.excepthook = unraisable, uncaught


def ignore_sigint_at_exit() -> None:
    """Ignore Ctrl-C from here on.

    One more would end the process by the signal, without its exit code.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
