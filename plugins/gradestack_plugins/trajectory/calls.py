"""Calls as these graders count them: how one ended, and which of a run's calls are judged."""

from __future__ import annotations

from typing import Final, Literal

from gradestack import Grade, Sample, ToolCall, skipped

State = Literal["ok", "error", "denied", "not_run", "unknown"]
STATES: Final[tuple[State, ...]] = ("ok", "error", "denied", "not_run", "unknown")
Count = Literal["attempted", "executed"]
ASSISTANT: Final = "assistant"
"""Whose calls are judged unless somebody else is named: tools and policies are the agent's."""


def state_of(call: ToolCall) -> State:
    """Return how a call ended; where its format has no word for it, a result or an error says that it was executed."""
    if call.status is not None:
        return call.status
    if call.error is not None:
        return "error"
    return "unknown" if call.result is None else "ok"


def judged(sample: Sample, count: Count = "attempted", requestor: str | None = ASSISTANT) -> list[ToolCall] | Grade:
    """Return the calls that count, or the grade of a sample of which they are not known.

    Args:
        sample: The run.
        count: All that were made, or those that were executed: the latter are not known where the recording leaves open
            of one whether it was.
        requestor: Whose; None for everybody's.
    """
    if sample.calls is None:
        return skipped("calls_not_recorded", "no answer is recorded, so it is not known which calls were made")
    made = [call for call in sample.calls if requestor is None or call.requestor == requestor]
    if count == "attempted":
        return made
    states = [state_of(call) for call in made]
    if "unknown" in states:
        return skipped("execution_not_recorded", "the recording does not say of every call whether it was executed")
    return [call for call, state in zip(made, states, strict=True) if state in {"ok", "error"}]
