"""The tau2-bench family: its results in one file or in a directory, and the rewards it recorded."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.tau2_bench"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return (
        Component(
            kind="reader",
            name="tau2",
            target=f"{_HERE}.reader:Tau2",
            summary="tau2-bench results: one file, or a directory of results.json and simulations/",
        ),
        Component(
            kind="grader",
            name="tau2_reward",
            target=f"{_HERE}.grader:Tau2Reward",
            summary="The reward tau2-bench recorded, with its parts and what its checks found",
        ),
        Component(
            kind="stack",
            name="tau2",
            target=f"{_HERE}.stacks:tau2",
            summary="Recorded rewards of tau2-bench runs, with pass^k over the trials of each task",
        ),
    )
