"""Trials by model and file."""

from __future__ import annotations

from collections import Counter, defaultdict

import attrs

from gradestack import Grade, Grades, Key, Outcome
from gradestack_plugins.orchestrationbench.calls.arguments import EMPTY, UNREADABLE

SCORES = ("name", "key", "value", "value_upper_bound")
PLANS = ("scores", "structural", "component", "highest")


@attrs.define
class File:
    """The trials of one file in order, since the original adds floats from left to right before it rounds."""

    scenario: str
    trials: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    scores: dict[str, list[float | None]] = attrs.field(factory=lambda: {name: [] for name in SCORES})
    """Of each trial that has one."""
    plans: dict[str, list[float]] = attrs.field(factory=lambda: {name: [] for name in PLANS})
    """Of each gold plan of all trials."""
    judge_failed: list[str] = attrs.field(factory=list)
    faults: list[list[str]] = attrs.field(factory=list)
    unreadable: str | None = None
    empty: str | None = None

    def add(self, key: Key, grade: Grade) -> None:
        """Add a trial; of a failed one its fault, and what its grade still carries (its plans)."""
        fault = grade.fault
        if fault is not None and fault.code == UNREADABLE:
            self.unreadable = fault.message or self.unreadable
            return
        if fault is not None and fault.code == EMPTY:
            self.empty = fault.message or self.empty
            return
        self.trials += 1
        run = key.facets.get("trial")
        trial = run if isinstance(run, str) else str(key.run)
        if grade.outcome is Outcome.FAILED:
            message = fault.message or fault.code if fault is not None else "failed"
            self.faults.append([trial, f"{fault.type}: {message}" if fault is not None and fault.type else message])
        self.counts.update(grade.counts)
        for name, scores in self.scores.items():
            if name in grade.parts:
                scores.append(grade.parts[name])
        if grade.metadata.get("judge_failed") is True:
            self.judge_failed.append(trial)
        for name, plans in self.plans.items():
            found = grade.metadata.get(f"plan_{name}")
            plans.extend(found if isinstance(found, list | tuple) else ())


def files_of(grades: Grades) -> dict[str, dict[str, File]]:
    """Return model ("" without a name) -> file (facet ``file``, else the task's id) -> its trials.

    A dataset row without a run (``missing``) is no trial.
    """
    found: dict[str, dict[str, File]] = defaultdict(dict)
    for key, grade in grades:
        if grade.outcome is not Outcome.MISSING:
            file = key.facets.get("file")
            name = file if isinstance(file, str) else key.id
            found[key.model or ""].setdefault(name, File(key.id)).add(key, grade)
    return found
