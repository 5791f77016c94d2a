"""The sentence a page begins with, made of what was counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from gradestack.jsonio import as_count, as_map
from gradestack_plugins.reporters.estimate_rows import EstimateRow
from gradestack_plugins.reporters.headline import Success
from gradestack_plugins.reporters.phrases import behind, counted, one, those, verb
from gradestack_plugins.reporters.reliability import Reliability
from gradestack_plugins.reporters.text import brief, capital, number

_NAMES = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_FEW = 30
"""Up to so many samples are counted, more are put per hundred."""
_STATES = ("graded", "skipped", "failed", "missing")


@attrs.frozen
class Part:
    """A part of a sentence: ``ok`` and ``no`` stand out, "" does not."""

    text: str
    tone: str = ""


def sentence(
    success: Success | None, words: Mapping[str, str], reliable: Reliability, rows: Sequence[EstimateRow], total: int
) -> tuple[Part, ...]:
    """Return the sentence in its parts.

    Args:
        success: The run's successes, if it has an outcome.
        words: The run's words for them.
        reliable: How reliable its tasks are.
        rows: The figures it is summed up by.
        total: Its samples.
    """
    if not total:
        return (Part("This run has no samples."),)
    if success is not None and success.many:
        return _models(success, words)
    if success is None or not success.of:
        first = next((row for row in rows if row.at is not None), None)
        if success is not None or first is None:
            none = ", which is not graded" if total == 1 else ", none of them graded"
            return (Part(f"{counted(total, 'samples')}{'' if rows else none}."),)
        return (Part(f"{first.title} comes to "), Part(f"{first.value}{first.unit}", "ok"), Part("."))
    share = success.passed / success.of
    single = success.of == 1 or _leading(success.passed, success.of) == 1
    said = verb(words["passed"], single=single, no=success.of == 1 and not success.passed)
    head = (Part(capital(_share(success.passed, success.of, reliable.noun)), "ok"), Part(f" {said}"))
    if not reliable.passes or (reliable.trials or 1) < 2 or success.passed in (0, success.of):
        return (*head, Part("."))
    every = reliable.always / reliable.tasks
    joined = ", yet only " if every and share - every > share / 5 else ", but " if not every else ", and "
    return (*head, Part(joined), Part(_tasks(reliable.always, reliable.tasks), "no"), Part(" every time."))


def _in_hundred(part: int, whole: int) -> int | None:
    """Return how many in 100 a share comes to; None where it is better counted."""
    in_hundred = round(100 * part / whole)
    return in_hundred if whole > _FEW and 0 < in_hundred < 100 else None


def _leading(part: int, whole: int) -> int:
    """Return the number a share in words begins with."""
    return _in_hundred(part, whole) or part


def _share(part: int, whole: int, noun: str) -> str:
    """Return a share in words: ``42 runs in 100``, ``5 of 8 samples``, ``all 12 samples``, ``the only sample``."""
    if whole == 1:
        return f"the only {one(noun)}"
    if part == whole:
        return f"all {number(whole)} {noun}"
    if part == 0:
        return f"none of the {number(whole)} {noun}"
    in_hundred = _in_hundred(part, whole)
    return f"{number(part)} of {number(whole)} {noun}" if in_hundred is None else f"{counted(in_hundred, noun)} in 100"


def _tasks(part: int, whole: int) -> str:
    """Return a share of tasks in words: ``one task in five`` where it is that, else counted."""
    if part == 0:
        return "no task"
    times = round(whole / part)
    if times in range(2, len(_NAMES)) and abs(part * times - whole) <= whole / 25:
        return f"one task in {_NAMES[times]}"
    return f"{number(part)} of {counted(whole, 'tasks')}"


def _models(success: Success, words: Mapping[str, str]) -> tuple[Part, ...]:
    shares = {name: passed / (passed + lost) for name, (passed, lost) in success.models.items() if passed + lost}
    if len(shares) < 2:
        return (Part(f"{len(success.models)} models."),)
    best, worst = max(shares, key=lambda name: shares[name]), min(shares, key=lambda name: shares[name])
    if shares[best] == shares[worst]:
        return (Part(f"{len(shares)} models, all with the same share of {those(words['passed'], 'samples')}."),)
    return (
        Part(brief(best, 60) or "(no name)", "ok"),
        Part(f" has most {behind(words['passed'])}, {_of_model(success, best)}; "),
        Part(brief(worst, 60) or "(no name)", "no"),
        Part(f" fewest, {_of_model(success, worst)}."),
    )


def _of_model(success: Success, model: str) -> str:
    passed, lost = success.models[model]
    return "0 of 1 sample" if (passed, lost) == (0, 1) else _share(passed, passed + lost, "samples")


def made_of(summary: Mapping[str, Any], reliable: Reliability) -> str:
    """Return what a run is made of, as a phrase: ``50 tasks × 4 trials = 200 runs``."""
    total = as_count(as_map(summary.get("metrics")).get("total"))
    if reliable.trials is not None and reliable.trials > 1 and reliable.tasks * reliable.trials == total:
        each, left = divmod(reliable.tasks, reliable.models)
        models = f" × {reliable.models} models" if reliable.models > 1 and not left else ""
        tasks = each if models else reliable.tasks
        return f"{counted(tasks, 'tasks')}{models} × {reliable.trials} trials = {number(total)} runs"
    return counted(total, "samples")


def states_of(states: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return how many samples are in which state, those of nobody too."""
    return tuple((name, as_count(states.get(name))) for name in _STATES)
