"""Grader ``json_equal``: two JSON texts that mean the same."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import ABSENT, JSON, Grade, Grader, Sample
from gradestack.jsonio import JsonProblem, loads
from gradestack_plugins.text_graders.verdicts import (
    NEEDS,
    against,
    broken_reference,
    right,
    shortened,
    wrong,
)

_FENCED = re.compile(r"```[^\n`]*\n(?P<inside>.*?)```", re.DOTALL)


@attrs.frozen(kw_only=True)
class JsonEqual(Grader):
    """1.0 when submission and reference are JSON texts of equal values, else 0.0 with the first difference's place.

    Objects are equal whatever the order of their keys; lists item by item, in order. Numbers are compared by value (1
    equals 1.0); true and 1 are different, so are "1" and 1; NaN equals nothing. Of a key written twice the last counts.

    A submission that is not JSON gives 0.0, so does an empty reference. A reference that is not JSON is a broken
    dataset row: a failed grade. A sample without reference is skipped. Profiles do not differ: letta-evals has no such
    grader.

    Attributes:
        allow_fence: Accept a submission whose JSON stands in a Markdown code block; the first one counts.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = NEEDS
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    submission: ClassVar[bool] = True

    allow_fence: bool = False

    @override
    def grade(self, sample: Sample) -> Grade:
        return against(sample, self.compare)

    def compare(self, text: str, truth: str) -> Grade:
        """Return the grade of a submission against a reference that is not empty."""
        try:
            wanted = loads(truth)
        except JsonProblem as problem:
            return broken_reference("truth_not_json", f"the ground truth is {problem}")
        shown = shortened(text)
        if self.allow_fence and (fenced := _FENCED.search(text)):
            text = fenced["inside"]
        try:
            found = loads(text)
        except JsonProblem as problem:
            return wrong("not_json", f"the submission is {problem}", actual=shown)
        different = first_difference(wanted, found)
        if different is None:
            return right("equal JSON")
        pointer, expected, actual = different
        where = f"at {pointer}" if pointer else "at the top"
        return wrong("different_value", f"differs {where}", expected=expected, actual=actual, pointer=pointer)


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _shown(value: JSON) -> JSON:
    """Return a value for a reason: scalars as they are, containers by their size."""
    if isinstance(value, dict):
        return f"an object with {len(value)} key(s)"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return shortened(value) if isinstance(value, str) else value


def _kind(value: JSON) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def first_difference(expected: JSON, actual: JSON) -> tuple[str, JSON, JSON] | None:
    """Return (JSON pointer, expected, actual) of the first difference in document order, None for equal values.

    The pointer is RFC 6901. A missing or unexpected part has ABSENT on the side that lacks it.
    """
    waiting: list[tuple[str, Any, Any]] = [("", expected, actual)]
    while waiting:
        pointer, left, right_side = waiting.pop()
        if left is ABSENT or right_side is ABSENT or _kind(left) is not _kind(right_side):
            return pointer, _side(left), _side(right_side)
        pairs: list[tuple[str, Any, Any]] = []
        if isinstance(left, dict):
            keys = [*left, *(key for key in right_side if key not in left)]
            pairs = [(f"{pointer}/{_token(key)}", left.get(key, ABSENT), right_side.get(key, ABSENT)) for key in keys]
        elif isinstance(left, list):
            for place in range(max(len(left), len(right_side))):
                one = left[place] if place < len(left) else ABSENT
                other = right_side[place] if place < len(right_side) else ABSENT
                pairs.append((f"{pointer}/{place}", one, other))
        elif left != right_side:
            return pointer, _side(left), _side(right_side)
        waiting += reversed(pairs)
    return None


def _side(value: Any) -> JSON:
    return ABSENT if value is ABSENT else _shown(value)
