"""The console of a run: lines of text, output of plugins, and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from datetime import timedelta
from functools import partial

from gradestack.grading.progress import Progress, ProgressCallback
from gradestack.output import coloured, counted, terminal_line

_PLAIN_EVERY = 10.0
"""Seconds between progress lines when standard error is not a terminal."""
_LIVE_EVERY = 0.1
_BAR_WIDTH = 40


def print_lines(text: str) -> None:
    """Print lines to standard output; go on when nobody reads them any more."""
    safe = map(terminal_line, text.split("\n"))
    lines = [coloured(line, sys.stdout) for line in safe]
    try:
        print(*lines, sep="\n", flush=True)  # noqa: T201 - this module is the printer
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _print_progress(line: str) -> None:
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this module is the printer


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """Redirect what graders and their processes print to standard error.

    Standard output is for results.
    """
    stdout = sys.stdout
    descriptor = _redirect_descriptor()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if descriptor is not None:
            with suppress(OSError, ValueError):
                stdout.flush()  # what was written by way of an older name for it
            os.dup2(descriptor, 1)
            os.close(descriptor)


def _redirect_descriptor() -> int | None:
    """Redirect file descriptor 1 to standard error.

    Returns:
        A copy of the descriptor; None where standard output is another file.
    """
    try:
        if sys.stdout is None or sys.stdout.fileno() != 1:
            return None
        sys.stdout.flush()
        copy = os.dup(1)
    except (OSError, ValueError):
        return None
    with suppress(OSError):  # standard error may be closed
        os.dup2(2, 1)
    return copy


class Meter:
    """Progress of a run as a line of text."""

    def __init__(self) -> None:
        self._started = self._last_range = time.monotonic()
        self._share = self._resumed_share = 0.0  # shares of the input that are graded

    def line(self, progress: Progress) -> str:
        """Return a line of progress.

        ``12,800 runs graded, 6,400/s, about 0:00:20 left; 3 failed; 1 bad record``.
        """
        text = f"{progress.samples:,} runs graded"
        if progress.phase != "grading":
            return f"{text}; writing {progress.phase}"
        fresh = progress.samples - progress.resumed
        now = time.monotonic()
        share = progress.share or 0.0
        if share != self._share:  # a range is finished
            self._share, self._last_range = share, now
        if progress.resumed and not fresh:
            self._started, self._resumed_share = now, share
        seconds = now - self._started
        if fresh and seconds >= 1:
            text += f", {fresh / seconds:,.0f}/s"
        if self._resumed_share < share < 1:
            text += f", about {self._time_left(now)} left"
        states = [
            f"{n:,} {state}" for state, n in progress.states.items() if state != "graded" and n
        ]
        bad = ""
        if progress.bad:
            bad = counted(progress.bad, "bad record")
        return "; ".join(filter(None, (text, ", ".join(states), bad)))

    def _time_left(self, now: float) -> timedelta:
        graded_share = self._share - self._resumed_share
        seconds_per_share = (self._last_range - self._started) / graded_share
        seconds = seconds_per_share * (1 - self._share) - (now - self._last_range)
        return timedelta(seconds=max(1, round(seconds)))


class _ProgressDisplay:
    """Shows progress on standard error: live on a terminal, elsewhere a line every ten seconds."""

    def __init__(self, update: Callable[..., None] | None) -> None:
        self._update = update
        self._meter = Meter()
        self._shown_at = time.monotonic()
        self._has_named_resumed = False

    def show(self, progress: Progress) -> None:
        """Show progress, unless the last was shown a moment ago."""
        resumed = progress.resumed
        is_grading = progress.phase == "grading"
        is_resumed_known = not is_grading or progress.samples > resumed
        if resumed and is_resumed_known and not self._has_named_resumed:
            self._has_named_resumed = True
            _print_progress(f"{resumed:,} runs are kept from the unfinished evaluation")
        text = self._meter.line(progress)
        seconds = time.monotonic() - self._shown_at
        if self._update is None:
            if seconds <= _PLAIN_EVERY:
                return
            _print_progress(f"  {text}")
        else:
            if is_grading and seconds <= _LIVE_EVERY:
                return
            total = progress.share and 1.0
            completed = progress.share or 0.0
            self._update(total=total, completed=completed, description=text)
        self._shown_at = time.monotonic()


@contextmanager
def show_progress(name: str, *, quiet: bool) -> Iterator[ProgressCallback]:
    """Print what is run; yield the function to call with its progress."""
    if quiet:
        yield lambda _: None
        return
    print_lines(f"Running evaluation: {terminal_line(name)}")
    with _bar() as update:
        yield _ProgressDisplay(update).show


@contextmanager
def _bar() -> Iterator[Callable[..., None] | None]:
    """Yield the function that moves a bar on a terminal; None elsewhere."""
    term = os.environ.get("TERM")
    is_dumb = term == "dumb"
    if is_dumb or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    # for a terminal alone
    from rich import progress as rich  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    text = rich.TextColumn("{task.description}")
    columns = (rich.SpinnerColumn(), rich.BarColumn(_BAR_WIDTH), text, rich.TimeElapsedColumn())
    console = Console(stderr=True)
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield partial(bar.update, task)
