"""What is kept of each file while trials are added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from gradestack import Grade, Key, Outcome
from gradestack.exact import Partials, add_exact, count_into, merge_exact
from gradestack_plugins.orchestrationbench.calls.arguments import EMPTY, UNREADABLE


class PlanState(TypedDict):
    """Exact sums over the gold plans of a file."""

    score: Partials
    structural: Partials
    component: Partials
    highest: Partials


class FileState(TypedDict):
    """One file: trials in order, since the original adds floats from left to right before it rounds."""

    scenario: str
    trials: int
    counts: dict[str, int]
    name: list[float | None]
    key: list[float | None]
    value: list[float | None]
    value_upper_bound: list[float | None]
    judge_failed: list[str]
    faults: list[list[str]]
    unreadable: str | None
    empty: str | None
    plan: PlanState


State = dict[str, dict[str, FileState]]
"""Model ("" without a name) -> file -> its state, in the order they were first seen."""

_FIGURES = ("name", "key", "value", "value_upper_bound")


def new_file(scenario: str) -> FileState:
    """Return the state of a file nothing is known of."""
    return {
        "scenario": scenario,
        "trials": 0,
        "counts": {},
        "name": [],
        "key": [],
        "value": [],
        "value_upper_bound": [],
        "judge_failed": [],
        "faults": [],
        "unreadable": None,
        "empty": None,
        "plan": {"score": [], "structural": [], "component": [], "highest": []},
    }


def add_grade(state: State, key: Key, grade: Grade) -> State:
    """Add one trial, in place. A dataset row without a run (``missing``) is no trial.

    Failed trials are kept with their fault, and so is what a failed grade still carries (its plans).
    """
    if grade.outcome is Outcome.MISSING:
        return state
    file = key.facets.get("file")
    files = state.setdefault(key.model or "", {})
    held = files.setdefault(file if isinstance(file, str) else key.id, new_file(key.id))
    fault = grade.fault
    if fault is not None and fault.code == UNREADABLE:
        held["unreadable"] = fault.message
        return state
    if fault is not None and fault.code == EMPTY:
        held["empty"] = fault.message
        return state
    held["trials"] += 1
    run = key.facets.get("trial")
    trial = run if isinstance(run, str) else str(key.run)
    if grade.outcome is Outcome.FAILED:
        message = fault.message or fault.code if fault is not None else "failed"
        held["faults"].append([trial, f"{fault.type}: {message}" if fault is not None and fault.type else message])
    count_into(held["counts"], grade.counts)
    for name in _FIGURES:
        if name in grade.parts:
            held[name].append(grade.parts[name])  # type: ignore[literal-required] # one of four list fields
    if grade.metadata.get("judge_failed") is True:
        held["judge_failed"].append(trial)
    for name in ("scores", "structural", "component", "highest"):
        _sum_into(held["plan"], "score" if name == "scores" else name, grade.metadata.get(f"plan_{name}"))
    return state


def _sum_into(plan: PlanState, name: str, values: Any) -> None:
    for value in values if isinstance(values, list | tuple) else ():
        add_exact(plan[name], value)  # type: ignore[literal-required] # one of four fields


def merge_states(left: State, right: State) -> State:
    """Add all of ``right`` behind ``left``, in place."""
    for model, files in right.items():
        _merge_files(left.setdefault(model, {}), files)
    return left


def _merge_files(left: dict[str, FileState], right: dict[str, FileState]) -> None:
    for file, more in right.items():
        held = left.get(file)
        if held is None:
            left[file] = _copied(more)
            continue
        held["trials"] += more["trials"]
        count_into(held["counts"], more["counts"])
        for name in (*_FIGURES, "judge_failed", "faults"):
            held[name].extend(more[name])  # type: ignore[literal-required]
        held["unreadable"] = more["unreadable"] or held["unreadable"]
        held["empty"] = more["empty"] or held["empty"]
        for name, partials in _partials(more["plan"]).items():
            merge_exact(held["plan"][name], partials)  # type: ignore[literal-required]


def _copied(state: FileState) -> FileState:
    """Return a copy whose lists may grow; the pairs in ``faults`` are never changed and stay shared."""
    copied = state.copy()
    copied["counts"] = dict(state["counts"])
    for name in (*_FIGURES, "judge_failed", "faults"):
        copied[name] = list(state[name])  # type: ignore[literal-required]
    copied["plan"] = {
        "score": list(state["plan"]["score"]),
        "structural": list(state["plan"]["structural"]),
        "component": list(state["plan"]["component"]),
        "highest": list(state["plan"]["highest"]),
    }
    return copied


def _partials(plan: PlanState) -> Mapping[str, Partials]:
    return plan  # type: ignore[return-value] # a typed dict whose fields are all partials
