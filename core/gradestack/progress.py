"""How far a run is, for those who show it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gradestack.api import Shard
from gradestack.errors import GradestackError
from gradestack.model import Outcome
from gradestack.registry import discover

if TYPE_CHECKING:
    from gradestack.grading.merging import Merged

Phase = Literal["grading", "native files", "pages"]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is."""

    phase: Phase = "grading"
    samples: int = 0
    """Samples graded so far, those of ranges under way included where the engine works in this process."""
    resumed: int = 0
    """Those of them an earlier attempt had graded."""
    states: dict[str, int] = msgspec.field(default_factory=dict)
    """State of the main grade -> samples, over finished ranges."""
    bad: int = 0
    """Records that could not be read, over finished ranges."""
    share: float | None = None
    """Share of the input in finished ranges, by bytes; None while nothing is known of it."""


ProgressCallback = Callable[[Progress], None]


def _in_notebook() -> ProgressCallback | None:
    """Return what shows progress below a notebook's cell, which the reporter ``html`` brings; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    with suppress(GradestackError, AttributeError):
        return discover().load("reporter", "html")().progress()  # type: ignore[no-any-return]
    return None


class ProgressCount:
    """Keeps count, and calls back with the whole."""

    def __init__(self, callback: ProgressCallback | None, main: str) -> None:
        self._callback, self._main = callback or _in_notebook(), main
        self._under_way = 0
        self._done, self._all = 0, 1
        self.state = Progress()

    @property
    def wanted(self) -> bool:
        """Whether anybody wants to know."""
        return self._callback is not None

    def plan(self, shards: Sequence[Shard]) -> None:
        """Take note of what there is to do."""
        self._all = sum(shard.size() for shard in shards) or 1

    def add(self, samples: int) -> None:
        """Count samples of the range under way."""
        self._under_way += samples
        self._change(samples=max(self.state.samples, self._under_way))

    def merged(self, shard: Shard, merged: Merged, *, resumed: bool = False) -> None:
        """Count a finished range; its samples count now if they did not while it was under way."""
        self._done += shard.size()
        self._under_way = max(self._under_way, merged.samples)
        states = {str(outcome): merged.states[str(outcome)] for outcome in Outcome}
        share = self._done / self._all
        before = merged.samples if resumed else self.state.resumed
        self._change(samples=self._under_way, states=states, bad=merged.bad, share=share, resumed=before)

    def phase(self, phase: Phase) -> None:
        """Say that the next phase begins."""
        self._change(phase=phase)

    def _change(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)
        if self._callback is not None:
            self._callback(self.state)
