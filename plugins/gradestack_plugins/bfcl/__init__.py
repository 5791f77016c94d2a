"""The BFCL family: questions, possible answers, results and scores of the leaderboard, joined by id."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.bfcl"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return (
        Component(
            kind="reader",
            name="bfcl",
            target=f"{_HERE}.reader:Bfcl",
            summary="BFCL results, joined with questions, possible answers and scores",
        ),
        Component(
            kind="grader",
            name="bfcl_valid",
            target=f"{_HERE}.grader:BfclValid",
            summary="The verdict BFCL recorded in its score files",
        ),
        Component(
            kind="stack",
            name="bfcl",
            target=f"{_HERE}.stacks:bfcl",
            summary="Recorded BFCL verdicts where there are score files, else BFCL's rules and F1 over calls",
        ),
    )
