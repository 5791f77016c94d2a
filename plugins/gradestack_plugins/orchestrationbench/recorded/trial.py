"""What a scenario file holds for one trial, and the names of things in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from gradestack import JSON
from gradestack_plugins.orchestrationbench.recorded.verdicts import Verdict

Decision = Literal["FC", "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION", "GENERAL_REJECTION", "FAILED"]

CALL: Decision = "FC"
AWAITING: Decision = "AWAITING_USER_INPUT"
VIOLATION: Decision = "TOOL_CONSTRAINT_VIOLATION"
GENERAL: Decision = "GENERAL_REJECTION"
FAILED: Decision = "FAILED"

MARKERS: tuple[Decision, Decision] = (AWAITING, VIOLATION)
"""Texts that mark a rejection, in the order they are looked for."""
REJECTIONS: tuple[Decision, ...] = (AWAITING, VIOLATION, GENERAL)

PLAN_MARK = "workflow_"
"""Text without which nothing is a gold plan."""


@attrs.frozen(kw_only=True)
class Setting:
    """What the evaluation config says, as far as grading reads it."""

    agent_weight: float | None = None
    status_weight: float | None = None
    judge_section: bool = True
    """False when a config was given and lacks the judge's model or generation parameters."""


@attrs.frozen(kw_only=True)
class Trial:
    """One run of one scenario as recorded, or a file that holds none."""

    file: str
    """Path of the file, as shown to people; the key files are told apart by."""
    name: str = ""
    """Name of the run in the file's ``history``."""
    run: JSON = None
    """The run as recorded; an object in every sound file."""
    planned: bool = True
    """False for a run whose name leaves a gap: the original's plan part never reads it."""
    setting: Setting = attrs.field(factory=Setting)
    verdicts: Mapping[str, Mapping[str, Verdict]] | None = None
    """Recorded judge verdicts by step and argument; None when no judge was asked."""
    unreadable: str = ""
    """Why the file could not be read at all."""
    empty: str = ""
    """Why the file, though read, holds no run."""

    def part(self, name: str) -> Any:
        """Return a field of the run, None when the run is no object or lacks it."""
        return self.run.get(name) if isinstance(self.run, dict) else None


@attrs.frozen(kw_only=True)
class Bag:
    """All calls of one step taken together: the original does not pair single calls."""

    names: tuple[JSON, ...]
    """Function names in order; the empty call of the original has the empty text as its only name."""
    arguments: Mapping[str, JSON]
    """Argument -> list with one value per call that has it. ``error`` may hold a text instead (upstream)."""

    def shown(self) -> dict[str, JSON]:
        """Return the bag for people."""
        return {"names": list(self.names), "arguments": dict(self.arguments)}
