"""How far a run is, for those who show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs

from gradestack.api import Shard
from gradestack.grading.merging import Merged

Stage = Literal["grading", "native files", "pages"]


@attrs.frozen(kw_only=True)
class Progress:
    """How far a run is."""

    stage: Stage = "grading"
    samples: int = 0
    """Samples graded so far, those of ranges under way included where the engine works in this process."""
    resumed: int = 0
    """Those of them an earlier attempt had graded."""
    states: dict[str, int] = attrs.field(factory=dict)
    """State of the headline grade -> samples, over finished ranges."""
    bad: int = 0
    """Records that could not be read, over finished ranges."""
    share: float | None = None
    """Share of the input in finished ranges, by bytes; None while nothing is known of it."""


Watcher = Callable[[Progress], None]


class Told:
    """Keeps count, and tells ``progress``."""

    def __init__(self, progress: Watcher | None, headline: str) -> None:
        self._progress, self._headline = progress, headline
        self._ticked = 0
        self._done, self._all = 0, 1
        self.state = Progress()

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return self._progress is not None

    def plan(self, shards: Sequence[Shard]) -> None:
        """Take note of what there is to do."""
        self._all = sum(shard.size() for shard in shards) or 1

    def tick(self, samples: int) -> None:
        """Count samples of the range under way."""
        self._ticked += samples
        self._tell(samples=max(self.state.samples, self._ticked))

    def merged(self, shard: Shard, merged: Merged, *, resumed: bool = False) -> None:
        """Count a finished range; its samples are told now if they were not while it was under way."""
        self._done += shard.size()
        self._ticked = max(self._ticked, merged.samples)
        states: dict[str, int] = {}
        for counts in merged.tally.values():
            for state, number in counts[self._headline]["states"].items():
                states[str(state)] = states.get(str(state), 0) + number
        share = self._done / self._all
        before = merged.samples if resumed else self.state.resumed
        self._tell(samples=self._ticked, states=states, bad=merged.bad, share=share, resumed=before)

    def stage(self, stage: Stage) -> None:
        """Say that the next stage begins."""
        self._tell(stage=stage)

    def _tell(self, **changes: Any) -> None:
        self.state = attrs.evolve(self.state, **changes)
        if self._progress is not None:
            self._progress(self.state)
