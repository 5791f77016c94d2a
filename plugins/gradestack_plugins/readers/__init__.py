"""Readers of formats that belong to no metric family, and the stacks of data of one's own."""

from __future__ import annotations

from gradestack import Component, hookimpl

_STACKS = {
    "auto": "By what the data expects: calls, texts, labels, a recorded verdict; without any, trajectory",
    "exact_match": "Answers equal to the expected text",
    "classification": "Labels, or names of tools: accuracy, F1 by class, confusion matrix",
    "recorded": "The verdict that was recorded with each run, or every recorded score",
    "scores": "Recorded scores where there are any; without, as auto",
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the general readers and stacks."""
    return (
        Component(
            kind="reader",
            name="jsonl",
            target="gradestack_plugins.readers.jsonl:JsonLines",
            summary="gradestack's own JSON Lines form of samples",
        ),
        *(
            Component(kind="stack", name=name, target=f"gradestack_plugins.readers.stacks:{name}", summary=text)
            for name, text in _STACKS.items()
        ),
    )
