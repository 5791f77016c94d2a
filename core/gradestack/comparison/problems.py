"""Why two sides cannot be compared, or only with care."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack.comparison.sides import Entry, Side
from gradestack.jsonio.values import as_map
from gradestack.output import counted

_UNMATCHED = {
    "id": "; try --match input or ordinal",
    "input": "; the files hold other tasks",
    "ordinal": "; try --match input",
}
"""How tasks were matched -> advice where no task is in both runs."""
_BY_INPUT = "; try --match input"
_SAME = ("name", "version", "options", "code", "extractor")
"""Parts of a component's entry that are the same where it gives the same on both sides."""
_ON_RECORD = frozenset({"judgements", "labels", "calibration"})
"""Options that say where replies and labels are, of which each run may have its own."""
# share of the tasks that were asked something else, above which they are taken for others
_OTHER = 0.5
_SHIFTED = 0.1
"""Share of the tasks whose input has another id on the other side, from which ids have shifted."""


class Problem(msgspec.Struct, frozen=True):
    """Why two sides cannot be compared, or only with care."""

    text: str
    fix: str = ""
    refuses: bool = True
    has_common_tasks: bool = True


def find_problems(a: Side, b: Side, only: str | None = None) -> Iterator[Problem]:
    """Yield the differences between two sides beside their grades.

    Args:
        a: The first side.
        b: The second side.
        only: Key of the one grader that matters. Default: all.
    """
    yield from _unfinished_runs(a, b)
    yield from _different_graders(a, b, only)
    for side in (a, b) if a.match == "ordinal" else ():
        yield from _mixed_places(side)
    common = [task for task in a.tasks if task in b.tasks]
    if not common:
        text = f"{a.name} and {b.name} have no task in common"
        yield Problem(text, _UNMATCHED[a.match], has_common_tasks=False)
    expected_a = _digests(a, "expected")
    expected_b = _digests(b, "expected")
    known = [task for task in common if expected_a[task] and expected_b[task]]
    changed = [task for task in known if expected_a[task] != expected_b[task]]
    if changed:
        verb = "has" if len(common) == 1 else "have"
        share = _share_of(changed, common)
        yield Problem(f"{share} {verb} other expectations {_where(a, b, changed[0])}")
    yield from _other_questions(a, b, expected_a)


def _share_of(some: Sequence[str], tasks: Sequence[str]) -> str:
    """Count some of all tasks: ``3 of 50 tasks``."""
    of_tasks = counted(len(tasks), "task")
    return f"{len(some):,} of {of_tasks}"


def _where(a: Side, b: Side, first: str) -> str:
    """Name both sides, and the first task in which they differ."""
    return f"in {a.name} than in {b.name}, the first: {first}"


def _unfinished_runs(a: Side, b: Side) -> Iterator[Problem]:
    """Yield a warning for each run that ended before all of it was graded."""
    sides = [a] if a.report is b.report else [a, b]
    for side in sides:
        reason = side.report.summary.get("incomplete")
        if reason:
            yield Problem(f"{side.name} is not complete: {reason}", refuses=False)


def _different_graders(a: Side, b: Side, only: str | None) -> Iterator[Problem]:
    """Yield a problem for each grader whose stamped parts differ between the two sides."""
    for key, entry in b.graders.items():
        if key not in a.graders or only not in (None, key):
            continue
        parts = differing_parts(a.graders[key], entry)
        if parts:
            is_plural = len(parts) > 1 or parts == ["options"]
            verb = "differ" if is_plural else "differs"
            names = ", ".join(parts)
            yield Problem(f"grader {key}: {names} {verb} between {a.name} and {b.name}")


def differing_parts(one: Entry, other: Entry) -> list[str]:
    """Return the parts in which two entries of a component differ.

    What only one of them records is not compared.
    """
    differing = []
    for name in _SAME:
        if name not in one or name not in other:
            continue
        part = _decisive(one[name])
        other_part = _decisive(other[name])
        if part != other_part:
            differing.append(name)
    return differing


def _decisive(part: Any) -> Any:
    """Return a part of a component's entry without the places of recorded replies."""
    if "judgements" not in as_map(part):
        return part
    return {name: option for name, option in part.items() if name not in _ON_RECORD}


def _mixed_places(side: Side) -> Iterator[Problem]:
    """Yield the places whose records were asked different things: they are not one task's trials.

    So it is with sessions that have a file each: every one is the first of its file.
    """
    questions = _digests(side, "question")
    mixed = [task for task, digests in questions.items() if len(digests) > 1]
    if mixed:
        first = mixed[0]
        number = len(side.tasks[first])
        place_in_file = int(first) + 1
        records = f"the {number:,} records of {side.name} in place {place_in_file} of their files"
        why = "were asked different things: they are no trials of one task"
        yield Problem(f"{records} {why}", _BY_INPUT)


def _digests(side: Side, name: str) -> dict[str, set[int]]:
    """Return the digests that the rows of each task have; none where none is recorded."""
    facts = side.samples.facts
    digests = {}
    for task, rows in side.tasks.items():
        of_task = {getattr(facts[row], name) for row in rows}
        digests[task] = of_task - {0}
    return digests


def _other_questions(a: Side, b: Side, expected: Mapping[str, set[int]]) -> Iterator[Problem]:
    """Yield the number of tasks with another input; if it differs by trial, it says nothing."""
    inputs = _questions(a, b)
    changed = [task for task, (input_a, input_b) in inputs.items() if input_a != input_b]
    if not changed:
        return
    shifted = _shifted(changed, inputs)
    first = (shifted or changed)[0]
    were = "was" if len(changed) == 1 else "were"
    share = _share_of(changed, [*inputs])
    text = f"{share} {were} asked something else {_where(a, b, first)}"
    if shifted:
        name = "ordinal" if a.match == "ordinal" else "id"
        number = len(shifted)
        moved = f"{number:,} of them what {a.name} has under another {name}"
        yield Problem(f"{text}; {moved}: {name}s may have shifted", _BY_INPUT)
        return
    # what is expected does not tell the tasks apart
    expected_first = expected[changed[0]]
    are_alike = all(expected[task] == expected_first for task in changed)
    if are_alike and len(changed) > _OTHER * len(inputs):
        yield Problem(f"{text}; they may be other tasks", _BY_INPUT)
    else:
        yield Problem(text, refuses=False)


def _questions(a: Side, b: Side) -> dict[str, tuple[int, int]]:
    """Return the digest of a task's input on both sides, where each has one."""
    questions_a = _digests(a, "question")
    questions_b = _digests(b, "question")
    inputs = {}
    for task, input_a in questions_a.items():
        input_b = questions_b.get(task, ())
        if len(input_a) == len(input_b) == 1:
            inputs[task] = (max(input_a), max(input_b))
    return inputs


def _shifted(changed: Sequence[str], inputs: Mapping[str, tuple[int, int]]) -> list[str]:
    """List the tasks whose input moved to another task id on the other side.

    The list is empty unless a tenth of all tasks moved: then the ids have shifted.

    Args:
        changed: Tasks with another input.
        inputs: Task -> digest of its input on this side, and on the other.
    """
    times_a = Counter(input_a for input_a, _ in inputs.values())
    times_b = Counter(input_b for _, input_b in inputs.values())
    moved = []
    for task in changed:
        _, input_b = inputs[task]
        if times_a[input_b] == times_b[input_b] == 1:
            moved.append(task)
    return moved if len(moved) >= _SHIFTED * len(inputs) else []
