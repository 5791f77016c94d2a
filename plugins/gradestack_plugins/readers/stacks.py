"""Stacks of data of one's own.

Which graders compare what was expected, chosen by what the data expects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from gradestack import Sample
from gradestack.jsonio import is_number

VERDICTS: Final = (
    "success",
    "passed",
    "pass",
)  # names of recorded scores that say whether a run was a success
_STACKS: Final = {
    "calls": "tool_calls",
    "text": "exact_match",
    "label": "classification",
    "tool": "classification",
    "no_call": "tool_calls",
    "verdict": "recorded",
}
"""Stack by what is expected, the first that applies."""
_WITHOUT: Final = "graded without a reference. To compare with expected calls: --dataset FILE"
_FIRST: Final = 1000


def expectations(sample: Sample) -> set[str]:
    """Return what a sample expects: ``calls``, ``text``, ``label``.

    Or the ``verdict`` that was recorded.

    One expected call whose arguments are not compared, and at most one made without any, are names
    of a ``tool``.
    """
    expected, found = sample.expected, set[str]()
    if expected.calls is not None or expected.alternatives:
        made, due = sample.calls or (), expected.calls or ()
        named = [call.arguments is None and not call.rules for call in due] == [
            True
        ] and not expected.alternatives
        is_tool = named and len(made) <= 1 and not any(call.arguments for call in made)
        found.add("tool" if is_tool else "calls" if due or expected.alternatives else "no_call")
    of_label = expected.label is not None and sample.label is not None and sample.text is None
    if expected.text is not None and not of_label:
        found.add("text")
    elif expected.label is not None:
        found.add("label")
    return found or {"verdict" for name in VERDICTS if sample.recorded.get(name) is not None}


def auto(samples: Callable[[], Iterable[Sample]] = tuple) -> dict[str, Any]:
    """Return the stack for what samples expect.

    Calls, else texts, else labels, else a recorded verdict.

    Without any of them it is ``trajectory``, which needs no reference.
    """
    found = Counter(kind for sample in samples() for kind in (*expectations(sample), "samples"))
    kind = next((kind for kind in _STACKS if found[kind]), None)
    if kind is not None:
        return {"stack": _STACKS[kind]}
    where = "the data" if found["samples"] < _FIRST else f"the first {_FIRST:,} records"
    return {"stack": "trajectory", "notes": [f"No expectations in {where}: {_WITHOUT}"]}


def exact_match() -> dict[str, Any]:
    """Return the stack that compares answers with expected texts."""
    return {
        "graders": {"text": {"kind": "exact_match"}},
        "outcome": "text",
        "headline": {"figures": {"Exact matches": "text.mean"}},
    }


def classification() -> dict[str, Any]:
    """Return the stack that compares labels, or names of tools."""
    figures = {
        "Accuracy": "label.classification.accuracy",
        "Macro-F1": "label.classification.macro_f1",
    }
    return {
        "graders": {"label": {"kind": "label"}},
        "outcome": "label",
        "headline": {"figures": figures},
    }


def recorded(samples: Callable[[], Iterable[Sample]] = tuple) -> dict[str, Any]:
    """Return the stack that takes the verdict that was recorded with each run.

    Without one, every score by its name.
    """
    given = [sample.recorded for sample in samples()]
    verdict = next(
        (each for found in given for each in VERDICTS if found.get(each) is not None), None
    )
    names = (
        []
        if verdict
        else list(
            dict.fromkeys(name for found in given for name in found if is_number(found[name]))
        )
    )
    if len(names) < 2:
        names = [verdict] if verdict else names
        graders = {"recorded": {"kind": "recorded", **({"metric": names[0]} if names else {})}}
        figures = {"Passed as recorded" if verdict else "Score as recorded": "recorded.mean"}
        return {"graders": graders, "outcome": "recorded", "headline": {"figures": figures}}
    return {
        "graders": {name: {"kind": "recorded", "metric": name} for name in names},
        "outcome": names[0],
        "headline": {"figures": {name: f"{name}.mean" for name in names[:5]}},
    }


def scores(samples: Callable[[], Iterable[Sample]] = tuple) -> dict[str, Any]:
    """Return ``recorded`` where samples have recorded scores, else ``auto``."""
    return {"stack": "recorded" if any(map(is_number, _scores(samples()))) else "auto"}


def _scores(samples: Iterable[Sample]) -> Iterator[Any]:
    return (value for sample in samples for value in sample.recorded.values())
