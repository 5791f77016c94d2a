"""The progress of a run, counted and called back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from gradestack.api import Shard
from gradestack.errors import GradestackError
from gradestack.grading.merging import Merged
from gradestack.model import Outcome

Phase = Literal["grading", "native files", "pages"]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a run."""

    phase: Phase = "grading"
    samples: int = 0
    """Samples graded so far, those of ranges under way included where the engine works in this
    process.
    """
    resumed: int = 0
    """Those of them an earlier attempt had graded."""
    states: dict[str, int] = msgspec.field(default_factory=dict)
    """State of the main grade -> samples, over finished ranges."""
    bad: int = 0
    """Records that could not be read, over finished ranges."""
    share: float | None = None
    """Share of the input in finished ranges, by bytes; None while nothing is known of it."""


ProgressCallback = Callable[[Progress], None]


def _notebook_callback() -> ProgressCallback | None:
    """Return the callback that shows progress below a notebook's cell, which the reporter ``html``
    brings.

    None elsewhere.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    from gradestack.registry import discover  # noqa: PLC0415 - here alone

    with suppress(GradestackError, AttributeError):
        return discover().load("reporter", "html")().progress()  # type: ignore[no-any-return]
    return None


class ProgressCount:
    """Keeps count, and calls back with all of it.

    Attributes:
        state: How far the run is.
    """

    def __init__(self, callback: ProgressCallback | None = None) -> None:
        self._callback = callback or _notebook_callback()
        self._in_progress = 0
        self._done_bytes, self._all_bytes = 0, 1
        self.state = Progress()

    @property
    def wanted(self) -> bool:
        """Whether anybody wants to know."""
        return self._callback is not None

    def plan(self, shards: Sequence[Shard]) -> None:
        """Take note of what there is to do."""
        self._done_bytes = self._in_progress = 0
        self._all_bytes = sum(shard.size() for shard in shards) or 1

    def add(self, samples: int) -> None:
        """Count samples of the range under way."""
        self._in_progress += samples
        self._change(samples=max(self.state.samples, self._in_progress))

    def add_shard(self, shard: Shard, merged: Merged, *, resumed: bool = False) -> None:
        """Count a finished range; its samples count now if they did not while it was under way."""
        self._done_bytes += shard.size()
        self._in_progress = max(self._in_progress, merged.samples)
        self._change(
            samples=self._in_progress,
            states={str(outcome): merged.states[outcome] for outcome in Outcome},
            bad=merged.bad,
            share=self._done_bytes / self._all_bytes,
            resumed=merged.samples if resumed else self.state.resumed,
        )

    def begin_phase(self, phase: Phase) -> None:
        """Tell that the next phase begins."""
        self._change(phase=phase)

    def _change(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)
        if self._callback is not None:
            self._callback(self.state)
