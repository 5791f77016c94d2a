"""Records of scenario output files, evaluation settings and verdicts, declared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from gradestack import DataError, Fault, ToolSpec
from gradestack.jsonio import JsonProblem, loads, read_regular
from gradestack_plugins.orchestrationbench.graphs import Weights
from gradestack_plugins.readers.declared import convert_record

PLAN_MARK = "workflow_"
"""Text without which nothing is a gold plan."""
RUN_PREFIX = "run #"
UNREADABLE, EMPTY = "unreadable_file", "no_runs"
"""Fault codes: the file cannot be read; it holds no run."""

StepId = int | str


class Turn(msgspec.Struct, frozen=True):
    """A turn of a label."""

    role: Any = msgspec.UNSET
    content: Any = msgspec.UNSET
    agent_id: Any = msgspec.UNSET
    """Set where a sub-agent speaks."""
    tool_calls: Any = msgspec.UNSET


Label = Mapping[str, Turn]
"""The gold conversation: "N" is step N, "N-1" its gold calls, "N-2" their result."""


class Answer(msgspec.Struct, frozen=True):
    """A predicted turn of a sub-agent, or a predicted plan."""

    step_id: StepId
    content: Any = None
    tool_calls: Any = None
    agent_id: Any = None


class Output(msgspec.Struct, frozen=True):
    """A scenario output file."""

    scenario_id: str | int | None = None
    history: dict[str, Any] | None = None
    """Runs by name."""
    usage: Any = None


class _Run(msgspec.Struct, frozen=True):
    label: dict[str, Any]
    sub_agent_history: list[Answer] | None = None
    main_agent_history: list[Answer] | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the evaluation config; without one the defaults of the original."""

    weights: Weights = Weights()
    judge_section: bool = True
    """False when a config was given and lacks the judge's model or generation parameters.

    Only the original's program asks.
    """


_Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)] | None


class Verdict(msgspec.Struct, frozen=True, rename=lambda name: f"{name}_count"):
    """A judge's counts for the leftover values of one argument.

    Without any of them the argument stays undecided.
    """

    tp: _Count = None
    fp: _Count = None
    fn: _Count = None

    @property
    def counts(self) -> tuple[int, int, int]:
        """True positives, false positives, false negatives."""
        return self.tp or 0, self.fp or 0, self.fn or 0


TrialVerdicts = Mapping[str, Mapping[str, Verdict]]
"""step -> argument -> verdict."""
Verdicts = dict[str, dict[str, dict[str, dict[str, Verdict]]]]
"""file -> trial -> step -> argument -> verdict."""


class SideFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files beside the recordings, which are read once."""

    tools: tuple[ToolSpec, ...] | None = None
    setting: Setting = Setting()
    verdicts: Verdicts | None = None
    """None when no judge was asked."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario as recorded."""

    label: Label
    answers: tuple[Answer, ...] = ()
    plans: tuple[Answer, ...] = ()
    setting: Setting = Setting()
    verdicts: TrialVerdicts | None = None
    """Recorded judge verdicts; None when no judge was asked."""


def read_trial(
    run: Any, setting: Setting, verdicts: TrialVerdicts | None
) -> tuple[Trial, dict[str, int]]:
    """Convert a recorded run to a trial; return it, and counts of its unreadable parts by kind.

    Raises:
        ValueError: The run is no object, or has no label.
    """
    declared, remarks = convert_record(run, _Run)
    label = {}
    for step, turn in declared.label.items():
        if isinstance(turn, dict):
            record = convert_record(turn, Turn)
            label[step] = record[0]
        else:
            remarks[f"label.{step}: expected an object"] = 1
    answers = tuple(declared.sub_agent_history or ())
    plans = tuple(declared.main_agent_history or ())
    trial = Trial(
        label=label,
        answers=answers,
        plans=plans,
        setting=setting,
        verdicts=verdicts,
    )
    return trial, remarks


def read_verdicts(path: Path) -> Verdicts:
    """Return the verdicts of a JSON file.

    ``{FILE: {TRIAL: {STEP: {ARGUMENT: {"tp_count": 1, ...}}}}}``.
    """
    try:
        document = loads(read_regular(path))
        return msgspec.convert(document, Verdicts)
    except (OSError, JsonProblem, ValueError) as error:  # msgspec's own, or a lone surrogate
        expected = "expected file -> trial -> step -> argument -> counts, none negative"
        raise DataError(f"verdicts {path}: {expected}", str(error)) from error


def verdicts_for(verdicts: Verdicts | None, relative: str, trial: str) -> TrialVerdicts | None:
    """Look up the recorded verdicts of one trial; None when no judge was asked.

    They stand under the file's relative path or bare name, then under the run's name or number.
    """
    if verdicts is None:
        return None
    trials = verdicts.get(relative) or verdicts.get(relative.rpartition("/")[2]) or {}
    return trials.get(trial) or trials.get(trial.removeprefix(RUN_PREFIX)) or {}


def data_fault(code: str, message: str) -> Fault:
    """Return a fault of the recording."""
    return Fault(category="data", code=code, message=message)
