"""letta-evals: its recorded results, its datasets, and the grades it has given."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.letta"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return (
        Component(
            kind="reader",
            name="letta",
            target=f"{_HERE}.reader:Letta",
            summary="letta-evals output directories, and gradestack's own run directories",
        ),
        Component(
            kind="reader",
            name="letta_dataset",
            target=f"{_HERE}.dataset:LettaDataset",
            summary="letta-evals datasets: JSON Lines or CSV with input and ground_truth",
        ),
        Component(
            kind="grader",
            name="recorded",
            target=f"{_HERE}.grader:Recorded",
            summary="The grade the recording already holds, for aggregation, gates and comparison",
        ),
        Component(
            kind="stack",
            name="letta",
            target=f"{_HERE}.stacks:letta",
            summary="The recorded gate grades, with error bars",
        ),
    )
