"""The aggregator."""

from typing import Any

import attrs

from gradestack import Aggregator, Grade, Key

State = dict[str, Any]


@attrs.frozen(kw_only=True)
class Loudest(Aggregator[State]):
    """The first sample with the highest score."""

    def start(self) -> State:
        """Return the state of nothing seen."""
        return {"id": None, "score": None}

    def add(self, state: State, key: Key, grade: Grade) -> State:
        """Keep the higher of two."""
        if grade.score is None or (state["score"] is not None and grade.score <= state["score"]):
            return state
        return {"id": key.id, "score": grade.score}

    def merge(self, left: State, right: State) -> State:
        """Keep the higher of two; on a tie the left one, which came first."""
        louder = right["score"] is not None and (left["score"] is None or right["score"] > left["score"])
        return dict(right) if louder else left

    def finish(self, state: State) -> State:
        """Return the id and the score."""
        return dict(state)
