"""Judge of argument values that only meaning can tell equal: what it is asked, and the recorded one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import attrs

from gradestack import JSON
from gradestack_plugins.orchestrationbench.recorded.verdicts import Verdict


@attrs.frozen(kw_only=True)
class Leftover:
    """Values of one argument that equal none on the other side, as texts, sorted."""

    argument: str
    predicted: tuple[str, ...]
    gold: tuple[str, ...]


@attrs.frozen(kw_only=True)
class JudgeRequest:
    """Everything a judge may want to know about one step; one request covers all undecided arguments of it."""

    step: str
    leftovers: tuple[Leftover, ...]
    schema: Mapping[str, JSON]
    """Parameters (JSON Schema) of the tools the prediction called, by tool name."""
    history: Callable[[], list[dict[str, JSON]]]
    """The gold conversation before the step, made on demand."""
    system: str = ""
    """The scenario's system message."""


class Judge(Protocol):
    """Decides leftover values."""

    def decide(self, request: JudgeRequest) -> Mapping[str, Verdict]:
        """Return verdicts by argument; an argument left out stays undecided."""
        ...


@attrs.frozen
class RecordedJudge:
    """Gives the verdicts recorded for one trial: step -> argument -> verdict."""

    verdicts: Mapping[str, Mapping[str, Verdict]]

    def decide(self, request: JudgeRequest) -> Mapping[str, Verdict]:
        """Return what was recorded for the step."""
        return self.verdicts.get(request.step, {})
