"""A grader: its options are its fields, its class variables are overridden, its grades are built in
every way.
"""

from typing import Literal, assert_type

import attrs

from gradestack import (
    Fault,
    Grade,
    Grader,
    Item,
    Outcome,
    Reason,
    Sample,
    Status,
    ToolCall,
    failed,
    skipped,
)


@attrs.frozen(kw_only=True)
class Overlap(Grader):
    """Share of the calls asked for that were made, by name."""

    version = "2"
    needs = frozenset({"calls"})
    compares = frozenset({"calls"})
    graded_statuses = frozenset({Status.OK, Status.FAILED})
    metrics = ("mean",)

    mode: Literal["plain", "loud"] = "plain"
    ignored: tuple[str, ...] = ()

    def grade(self, sample: Sample) -> Grade:
        """Return a grade in each of its states."""
        assert_type(sample.id, str)
        assert_type(sample.calls, tuple[ToolCall, ...] | None)
        if sample.status is not Status.OK:
            return failed(
                sample.error or Fault(category="target", code="broken", message="no word of why")
            )
        if not sample.expected.calls:
            return skipped("no_reference", "nothing says what was to be called")
        wanted = [call.name for call in sample.expected.calls if call.name not in self.ignored]
        made = {call.name for call in sample.calls or ()}
        absent = [name for name in wanted if name not in made]
        return Grade(
            outcome=Outcome.GRADED,
            score=1 - len(absent) / len(wanted),
            passed=not absent,
            counts={"wanted": len(wanted)},
            items=tuple(Item(id=name, score=float(name in made)) for name in wanted),
            reasons=tuple(Reason(code="not_called", expected=name) for name in absent),
        )


grader = Overlap(mode="loud", ignored=("think",))
assert_type(grader.grade(Sample(id="a")), Grade)
assert_type(grader.grade(Sample(id="a")).score, float | None)

Overlap(mode="newest")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Grader()  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]
Grade(scores=1.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
