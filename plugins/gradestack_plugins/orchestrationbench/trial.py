"""What a scenario file holds for one trial: gold conversation, predicted turns, and a judge's verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gradestack import JSON, DataError
from gradestack.jsonio import JsonProblem, loads, standard_loads

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


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the evaluation config says, as far as grading reads it."""

    agent_weight: float | None = None
    status_weight: float | None = None
    judge_section: bool = True
    """False when a config was given and lacks the judge's model or generation parameters."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario as recorded, or a file that holds none."""

    file: str
    """Path of the file, as shown to people; the key files are told apart by."""
    name: str = ""
    """Name of the run in the file's ``history``."""
    run: JSON = None
    """The run as recorded; an object in every sound file."""
    planned: bool = True
    """False for a run whose name leaves a gap: the original's plan part never reads it."""
    setting: Setting = msgspec.field(default_factory=Setting)
    verdicts: Mapping[str, Mapping[str, Verdict]] | None = None
    """Recorded judge verdicts by step and argument; None when no judge was asked."""
    unreadable: str = ""
    """Why the file could not be read at all."""
    empty: str = ""
    """Why the file, though read, holds no run."""

    def part(self, name: str) -> Any:
        """Return a field of the run, None when the run is no object or lacks it."""
        return self.run.get(name) if isinstance(self.run, dict) else None


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one step taken together: the original does not pair single calls."""

    names: tuple[JSON, ...]
    """Function names in order; the empty call of the original has the empty text as its only name."""
    arguments: Mapping[str, JSON]
    """Argument -> list with one value per call that has it. ``error`` may hold a text instead (upstream)."""

    def shown(self) -> dict[str, JSON]:
        """Return the bag for people."""
        return {"names": list(self.names), "arguments": dict(self.arguments)}


RUN_PREFIX = "run #"


Count = Annotated[int, msgspec.Meta(ge=0)]


class Verdict(msgspec.Struct, frozen=True, rename=lambda name: f"{name}_count"):
    """A judge's counts for the leftover values of one argument."""

    tp: Count = 0
    fp: Count = 0
    fn: Count = 0


Verdicts = dict[str, dict[str, dict[str, dict[str, Verdict]]]]
"""file -> trial -> step -> argument -> verdict."""


def read_verdicts(path: Path) -> Verdicts:
    """Return the verdicts of a JSON file.

    Form: ``{FILE: {TRIAL: {STEP: {ARGUMENT: {"tp_count": 1, "fp_count": 0, "fn_count": 0}}}}}``. FILE is the path
    relative to the input directory or the bare file name, TRIAL the run's name (``run #2``) or its number. A count
    left out is 0; without any count the argument stays undecided, as an answer of a judge that says nothing.
    """
    try:
        data = loads(path.read_bytes())
        verdicts = msgspec.convert(data, Verdicts)
    except (OSError, JsonProblem) as error:
        raise DataError(f"verdicts {path}: {error}") from error
    except msgspec.ValidationError as error:
        expected = "expected file -> trial -> step -> argument -> counts, none negative"
        raise DataError(f"verdicts {path}: {expected}", str(error)) from error
    for file, trials in verdicts.items():
        for trial, steps in trials.items():
            for step, found in steps.items():
                counts = data[file][trial][step]
                steps[step] = {argument: verdict for argument, verdict in found.items() if counts[argument]}
    return verdicts


def verdicts_for(verdicts: Verdicts, relative: str, trial: str) -> Mapping[str, Mapping[str, Verdict]]:
    """Return what was recorded for one trial, by relative path or bare file name, by run name or number."""
    trials = verdicts.get(relative) or verdicts.get(relative.rpartition("/")[2]) or {}
    return trials.get(trial) or trials.get(trial.removeprefix(RUN_PREFIX)) or {}


def history_before(label: Any, step: Any) -> list[dict[str, JSON]]:
    """Return the user and assistant turns of the label before ``step``, without empty ones.

    Keys are read as numbers joined by dashes and sorted. A turn with calls (``N-1``) takes the place of its text ``N``:
    it becomes a user turn holding the ``refinedQuery`` arguments of its calls. Tool results (``N-2``) are left out.
    """
    turns: list[dict[str, JSON]] = []
    for key in sorted(label, key=lambda name: [int(part) for part in name.split("-")]):
        if key == step:
            break
        entry = label[key]
        if "-1" in key:
            if turns and turns[-1]["key"] == key.split("-")[0]:
                turns.pop()
            if calls := entry.get("tool_calls"):
                decoded = [standard_loads(call["function"]["arguments"]) for call in calls]
                queries = [arguments["refinedQuery"] for arguments in decoded if "refinedQuery" in arguments]
                turns.append({"key": "", "role": "user", "content": " ".join(queries)})
        if "-2" in key:
            continue
        if isinstance(entry, dict) and "content" in entry and entry.get("role") in ["user", "assistant"]:
            turns.append({"key": key, "role": entry["role"], "content": entry["content"]})
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns if turn["content"] != ""]


def system_message(label: Any) -> Any:
    """Return the content of the label's first turn when it is the system message, else ""."""
    first = label["1"]
    return first["content"] if first["role"] == "system" else ""
