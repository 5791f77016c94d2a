"""Progress on the command line: samples, rate, remaining time, states so far."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gradestack.progress import Progress, ProgressCallback

_WIDTH = 40
_PLAIN_EVERY = 10.0
"""Seconds between progress lines when standard error is not a terminal."""
_LIVE_EVERY = 0.1


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {whole % 60:02} s" if minutes else f"{whole} s"


class Meter:
    """Turns what is told of a run into a line of text."""

    def __init__(self) -> None:
        self._begun = self._counted = time.monotonic()
        self._share: float | None = None
        self._before = 0.0
        """Share of the input earlier attempts had graded."""

    def note(self, progress: Progress) -> None:
        """Take note of the time at which a range was finished."""
        if progress.share != self._share:
            self._share, self._counted = progress.share, time.monotonic()
            if progress.resumed == progress.samples:
                self._before = progress.share or 0.0
                self._begun = self._counted

    def _remaining(self) -> str | None:
        done = (self._share or 0.0) - self._before
        if done <= 0 or self._share is None or self._share >= 1:
            return None
        left = (self._counted - self._begun) * (1 - self._share) / done - (time.monotonic() - self._counted)
        return f"about {_duration(left)} left"

    def line(self, progress: Progress) -> str:
        """Return how far the run is: ``12,800 samples graded, 6,400/s, about 20 s left; 3 failed; 1 bad record``."""
        if progress.phase != "grading":
            return f"{progress.samples:,} samples graded; writing {progress.phase}"
        seconds = time.monotonic() - self._begun
        fresh = progress.samples - progress.resumed
        parts = [f"{progress.samples:,} samples graded"]
        if fresh and seconds >= 1:
            parts.append(f"{fresh / seconds:,.0f}/s")
        if left := self._remaining():
            parts.append(left)
        others = [f"{number:,} {state}" for state, number in progress.states.items() if number and state != "graded"]
        found = [", ".join(parts)] + ([", ".join(others)] if others else [])
        if progress.bad:
            found.append(f"{progress.bad:,} bad record{'s' if progress.bad > 1 else ''}")
        return "; ".join(found)


@contextmanager
def shown() -> Iterator[ProgressCallback]:
    """Show that work goes on; yield the function to call with the run's progress.

    A live line on a terminal, a plain line every ten seconds elsewhere, both on standard error.
    """
    meter, state = Meter(), {"said": time.monotonic()}
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":

        def plain(progress: Progress) -> None:
            meter.note(progress)
            if sys.stderr is not None and time.monotonic() - state["said"] > _PLAIN_EVERY:
                state["said"] = time.monotonic()
                print(f"  {meter.line(progress)}", file=sys.stderr, flush=True)  # noqa: T201 - this is what is shown

        yield plain
        return
    from rich.console import Console  # noqa: PLC0415 - for a terminal alone
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (SpinnerColumn(), BarColumn(_WIDTH), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def live(progress: Progress) -> None:
            meter.note(progress)
            if progress.phase != "grading" or time.monotonic() - state["said"] > _LIVE_EVERY:
                state["said"] = time.monotonic()
                share = progress.share
                bar.update(task, total=share and 1.0, completed=share or 0.0, description=meter.line(progress))

        yield live
