"""The tool, or the argument of one, that most lost samples have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import attrs

from gradestack import RowIndex

_ENOUGH = 10
"""Lost samples from which on they are looked at."""
_MOST, _RARER = 0.5, 0.5
"""More than this share of them, and among successes at most this share of that: then it goes with the losses."""

_Place = tuple[str, str, str | None]
"""Grader key, tool and argument, None for all of the tool."""


@attrs.frozen
class Loss:
    """What most lost samples have among their reasons.

    Attributes:
        grader: Key of the grader that gives these reasons.
        tool: The tool.
        argument: Its argument, "" where it is the tool as a whole.
        lost: Lost samples that have such a reason.
        of_lost: All lost samples.
        passed: Successes that have one.
        of_passed: All successes.
        kinds: Numbers of the kinds of these reasons in the list of samples.
    """

    grader: str
    tool: str
    argument: str
    lost: int
    of_lost: int
    passed: int
    of_passed: int
    kinds: tuple[int, ...]


def loss_of(index: RowIndex, aside: Collection[str] = ()) -> Loss | None:
    """Return what most lost samples have in common; an argument goes before a whole tool, then the more frequent.

    None where there are fewer than ten lost samples, nothing is among the reasons of more than half of them, or it is
    among those of successes more than half as often.

    Args:
        index: The index of a run's rows.
        aside: Keys of graders whose reasons do not count.
    """
    sets: Counter[tuple[bool, tuple[int, ...]]] = Counter()
    for entry, numbers in zip(index.entries, index.given.given, strict=True):
        if entry.passed is not None:
            sets[entry.passed, numbers] += 1
    of = {side: sum(times for (passed, _), times in sets.items() if passed is side) for side in (False, True)}
    if of[False] < _ENOUGH:
        return None
    places = {number: tuple(_places(kind, aside)) for kind, number in index.given.kinds.items()}
    counts: dict[bool, Counter[_Place]] = {False: Counter(), True: Counter()}
    for (passed, numbers), times in sets.items():
        for place in {place for number in numbers for place in places[number]}:
            counts[passed][place] += times
    holding = [
        place
        for place, lost in counts[False].items()
        if lost > _MOST * of[False] and counts[True][place] * of[False] <= _RARER * lost * of[True]
    ]
    if not holding:
        return None
    found = min(holding, key=lambda place: (place[2] is None, -counts[False][place], place[:2], place[2] or ""))
    return Loss(
        grader=found[0],
        tool=found[1],
        argument=found[2] or "",
        lost=counts[False][found],
        of_lost=of[False],
        passed=counts[True][found],
        of_passed=of[True],
        kinds=tuple(number for number, own in sorted(places.items()) if found in own),
    )


def _places(kind: tuple[str, str, str, str], aside: Collection[str]) -> Iterator[_Place]:
    """Yield what a kind of reason is about: its tool, and the argument if it names one."""
    grader, _, tool, argument = kind
    if tool and grader not in aside:
        yield grader, tool, None
        if argument:
            yield grader, tool, argument
