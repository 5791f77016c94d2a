"""What the stability aggregator remembers: the runs of every task, as JSON values that merge."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any, TypedDict

from gradestack import Key
from gradestack.exact import count_into


class Task(TypedDict):
    """One task of one model."""

    runs: list[list[Any]]
    """[ordinal, label]; a label that is not text stands as [its JSON text]."""
    gold: str | None
    k: int
    """Runs asked for, 0 when unknown."""
    rows: int | None
    """Dataset rows with this id; None when there is no dataset."""
    lost: dict[str, int]
    """Runs without a label, by outcome."""
    derived: dict[str, Any] | None
    """Derived fields of a record that are trusted; None when there is no record of that kind."""


class StabilityState(TypedDict):
    """JSON state: tasks by group (model, and facets that keep sweeps apart) and id."""

    labels: list[str]
    passes: int
    """Runs judged by pass or fail."""
    groups: dict[str, dict[str, Task]]


def new_task() -> Task:
    """Return a task nothing is known of."""
    return {"runs": [], "gold": None, "k": 0, "rows": None, "lost": {}, "derived": None}


def merge_task(left: Task, right: Task) -> None:
    """Add the later runs ``right`` of the same task to ``left``; ``right`` is not changed."""
    left["runs"] += [list(run) for run in right["runs"]]
    left["gold"] = right["gold"] if left["gold"] is None else left["gold"]
    left["k"] = max(left["k"], right["k"])
    left["rows"] = right["rows"] if left["rows"] is None else left["rows"]
    count_into(left["lost"], right["lost"])
    if left["derived"] is None and right["derived"] is not None:
        left["derived"] = dict(right["derived"])


def group_of(key: Key, facets: tuple[str, ...]) -> str:
    """Return the group of a run: its model and the named facets, as text."""
    if not facets or not any(name in key.facets for name in facets):
        return "" if key.model is None else f"model {key.model}"
    marks = [key.facets.get(name) for name in facets]
    return json.dumps([key.model, *marks], sort_keys=True, default=str)


def model_of(group: str) -> str:
    """Return the model of a group, empty where none is named."""
    if group.startswith("["):
        return str(json.loads(group)[0] or "")
    return group.removeprefix("model ")


def labels_in_order(task: Mapping[str, Any]) -> list[Hashable]:
    """Return a task's labels in recorded order, whatever order they were folded in."""
    ordered = sorted(task["runs"], key=lambda run: run[0])  # stable: equal ordinals keep the order of folding
    return [label if isinstance(label, str) else tuple(label) for _, label in ordered]
