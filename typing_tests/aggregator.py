"""An aggregator of a state of its own, which its methods pass on."""

from collections.abc import Mapping
from typing import TypedDict, assert_type

import attrs

from gradestack import JSON, Aggregator, Grade, Key


class State(TypedDict):
    """Samples seen, and those that passed."""

    seen: int
    passed: int


@attrs.frozen(kw_only=True)
class Passed(Aggregator[State]):
    """Share of the samples that passed."""

    memory = "constant"

    def start(self) -> State:
        """Return the state of nothing seen."""
        return {"seen": 0, "passed": 0}

    def add(self, state: State, key: Key, grade: Grade) -> State:
        """Count one sample more."""
        return {"seen": state["seen"] + 1, "passed": state["passed"] + bool(grade.passed)}

    def merge(self, left: State, right: State) -> State:
        """Add both up."""
        return {"seen": left["seen"] + right["seen"], "passed": left["passed"] + right["passed"]}

    def finish(self, state: State) -> Mapping[str, JSON]:
        """Return the share."""
        return {"share": state["passed"] / state["seen"] if state["seen"] else None}


aggregator = Passed()
keys, grades = [Key(id="a"), Key(id="b", model="m", run=0)], [Grade(score=1.0), Grade(score=0.0)]
assert_type(aggregator.start(), State)
assert_type(aggregator.add_many(aggregator.start(), keys, grades), State)
assert_type(aggregator.merge(aggregator.start(), aggregator.start()), State)

aggregator.finish([1.0])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class Forgetful(Aggregator[State]):
    """Adds a grade without its key."""

    def add(self, state: State, grade: Grade) -> State:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Forget whose grade it is."""
        return state
