"""What several graders say of the same samples, side by side."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

from gradestack.jsonio.values import as_list, as_map, as_text
from gradestack.rows.grades import GRADED, MORE_REASONS, Grade, Item, Reason

Mark = tuple[str, str]
"""State and, of a failed or skipped grade, its code. ``passed``, ``part`` (passed with a score below 1) and ``lost``
stand for ``graded``."""
NONE: Mark = ("missing", "")
_PASSED, _PART, _LOST = ("passed", ""), ("part", ""), ("lost", "")
NOTHING_EXPECTED, OTHER_ORDER = "nothing_expected", "other_order"
"""Traits of samples beside codes of reasons: no call is expected; calls were made in another order than expected."""
_MOST_GRADERS = 8
_MOST_MARKS, _MOST_TRAITS, _LONGEST_CODE = 255, 100, 60


def compared(header: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of the graders whose verdicts are kept side by side.

    Those that declare a preset, where there are several; else all whose scores are shares, where these are two to
    eight.
    """
    graders = [as_map(each) for each in as_list(header.get("components")) if as_map(each).get("kind") == "grader"]
    presets = [as_text(each.get("key")) for each in graders if as_text(as_map(each.get("options")).get("preset"))]
    if len(presets) > 1:
        return tuple(presets)
    keys = [as_text(each.get("key")) for each in graders if "bounds" not in each]
    return tuple(keys) if 1 < len(keys) <= _MOST_GRADERS else ()


class Verdicts:
    """Marks of the same samples by several graders, and what the outcome grader found in them.

    Attributes:
        marks: The marks there are; their places in this list are what ``by_grader`` holds.
        by_grader: Grader key -> one byte per sample, in the order of the rows.
        traits: Code of a reason the outcome grader gave, or another trait -> positions of its samples.
        tasks: Number of each sample's task, which is its cluster, else its id; whatever its model.
    """

    def __init__(self, keys: Collection[str], outcome: str | None) -> None:
        self._outcome = outcome
        self.marks: list[Mark] = [NONE]
        self._places: dict[Mark, int] = {NONE: 0}
        keys = dict.fromkeys((*keys, outcome) if outcome and keys else keys)
        self.by_grader: dict[str, bytearray] = {key: bytearray() for key in keys}
        self.traits: dict[str, array[int]] = {}
        self.tasks = array("q")

    def add(
        self,
        first: int,
        rows: Sequence[Mapping[str, Grade]],
        reasons: Iterable[Sequence[Reason]],
        quiet: Iterable[bool],
    ) -> None:
        """Add samples, whose tasks are known."""
        columns, places = list(self.by_grader.items()), self._places
        for grades in rows:
            for key, marks in columns:
                grade = grades.get(key)
                mark = NONE if grade is None else mark_of(grade)
                place = places.get(mark)
                marks.append(self._place(mark) if place is None else place)
        for position, (grades, given, nothing) in enumerate(zip(rows, reasons, quiet, strict=True), first):
            own = grades.get(self._outcome) if self._outcome is not None else None
            turned = own is not None and len(own.items) > 1 and _turned(own.items)
            if given or nothing or turned:
                found = {each.code[:_LONGEST_CODE] for each in given if each.code and each.code != MORE_REASONS}
                found.update(compress((NOTHING_EXPECTED, OTHER_ORDER), (nothing, turned)))
                for trait in sorted(found):
                    if trait in self.traits or len(self.traits) < _MOST_TRAITS:
                        self.traits.setdefault(trait, array("q")).append(position)

    def _place(self, mark: Mark) -> int:
        place = self._places.get(mark)
        if place is None:
            if len(self.marks) >= _MOST_MARKS and mark[1]:
                return self._place((mark[0], ""))
            place = self._places[mark] = len(self.marks)
            self.marks.append(mark)
        return place


def mark_of(grade: Grade) -> Mark:
    """Return the mark of a grade. Its verdict is its own where it has one, else whether the score is 1."""
    score = grade.score
    if score is not None and grade.state in GRADED:
        if grade.passed if grade.passed is not None else score >= 1:
            return _PASSED if score >= 1 else _PART
        return _LOST
    fault = as_text(as_map(grade.fault).get("code"))
    code = fault or next((each.code for each in grade.reasons if each.code), "")
    return (grade.outcome()[:_LONGEST_CODE], code[:_LONGEST_CODE])


def _turned(items: Sequence[Item]) -> bool:
    """Return whether the calls that answer expected ones were made in another order than expected."""
    made = [each.metadata.call for each in items if each.gold is not None and type(each.metadata.call) is int]
    return made != sorted(made)
