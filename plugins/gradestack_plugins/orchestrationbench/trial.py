"""What a scenario file holds for one trial, and what a judge and the evaluation config say about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gradestack import JSON, DataError
from gradestack.jsonio import JsonProblem, loads, read_regular

Decision = Literal["FC", "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION", "GENERAL_REJECTION", "FAILED"]

CALL: Decision = "FC"
AWAITING: Decision = "AWAITING_USER_INPUT"
VIOLATION: Decision = "TOOL_CONSTRAINT_VIOLATION"
GENERAL: Decision = "GENERAL_REJECTION"
FAILED: Decision = "FAILED"

MARKERS: tuple[Decision, Decision] = (AWAITING, VIOLATION)
"""Texts that mark a rejection, in the order they are looked for."""

PLAN_MARK = "workflow_"
"""Text without which nothing is a gold plan."""

RUN_PREFIX = "run #"

Count = Annotated[int, msgspec.Meta(ge=0)] | None


class Verdict(msgspec.Struct, frozen=True, rename=lambda name: f"{name}_count"):
    """A judge's counts for the leftover values of one argument; without any of them the argument stays undecided."""

    tp: Count = None
    fp: Count = None
    fn: Count = None


Verdicts = dict[str, dict[str, dict[str, dict[str, Verdict]]]]
"""file -> trial -> step -> argument -> verdict."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the evaluation config says, as far as grading reads it."""

    agent_weight: float | None = None
    status_weight: float | None = None
    judge_section: bool = True
    """False when a config was given and lacks the judge's model or generation parameters."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario as recorded."""

    name: str
    """Name of the run in the file's ``history``."""
    run: JSON = None
    """An object in every sound file."""
    planned: bool = True
    """False for a run whose name leaves a gap: the original's plan part never reads it."""
    setting: Setting = msgspec.field(default_factory=Setting)
    verdicts: Mapping[str, Mapping[str, Verdict]] | None = None
    """Recorded judge verdicts by step and argument; None when no judge was asked."""

    def part(self, name: str) -> Any:
        """Return a field of the run, None when the run is no object or lacks it."""
        return self.run.get(name) if isinstance(self.run, dict) else None


def read_verdicts(path: Path) -> Verdicts:
    """Return the verdicts of a JSON file: ``{FILE: {TRIAL: {STEP: {ARGUMENT: {"tp_count": 1, ...}}}}}``."""
    try:
        return msgspec.convert(loads(read_regular(path)), Verdicts)
    except (OSError, JsonProblem) as error:
        raise DataError(f"verdicts {path}: {error}") from error
    except ValueError as error:  # of msgspec's own kind, or a lone surrogate
        expected = "expected file -> trial -> step -> argument -> counts, none negative"
        raise DataError(f"verdicts {path}: {expected}", str(error)) from error


def verdicts_for(verdicts: Verdicts, relative: str, trial: str) -> Mapping[str, Mapping[str, Verdict]]:
    """Return what was recorded for one trial, by relative path or bare file name, by run name or number."""
    trials = verdicts.get(relative) or verdicts.get(relative.rpartition("/")[2]) or {}
    return trials.get(trial) or trials.get(trial.removeprefix(RUN_PREFIX)) or {}
