"""An aggregator with figures of sums, and one that computes its own."""

from collections.abc import Mapping
from typing import assert_type

import attrs

from gradestack import JSON, Aggregator, Figure, Grade, Grades, Key, Numbers, ratio


@attrs.frozen(kw_only=True)
class Passed(Aggregator):
    """Share of the samples that passed."""

    figures = (Figure("share", "Passed", better="higher", unit="share", about="passed / graded"),)

    threshold: float = 1.0

    def contribution(self, grade: Grade) -> Numbers | None:
        """Return what one grade adds."""
        return (
            None
            if grade.score is None
            else {"graded": 1, "passed": int(grade.score >= self.threshold)}
        )

    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        """Return the share."""
        graded = totals["graded"]
        passed = totals["passed"]
        return {"share": ratio(passed, graded)}


class Longest(Aggregator):
    """The id of the sample with most calls."""

    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        """Return it."""
        calls = {key.id: grade.counts.get("calls", 0) for key, grade in grades}
        return {"id": max(calls, key=lambda name: calls[name], default=None)}


aggregator = Passed(threshold=0.5)
assert_type(aggregator.contribution(Grade(score=1.0)), Numbers | None)
assert_type(aggregator.figures_of({"graded": 2, "passed": 1}), Mapping[str, float | None])

Passed(threshold="high")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Figure("share", "Passed", better="more")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class OfKeys(Aggregator):
    """Takes a key for a grade."""

    def contribution(self, key: Key) -> Numbers | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Forget the grade."""
        return {"samples": 1}
