"""Similarity of expected and actual arguments, where they differ, and the points a sample lost for
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gradestack import ABSENT, Reason
from gradestack.jsonio import compact, pointer_to

MAX_DEPTH = 200
"""Arguments that differ at a deeper nesting are not graded, so that no result depends on the
interpreter's stack.
"""
MAX_COMPARISONS = 10_000_000
"""Comparisons spent on one record at most.

Every field of an object and every pair of list items is one.
"""
MAX_REASONS = 50
"""Reasons of a sample at most; one more says how many were left out."""
_SHOWN_REASONS = 3
_SHOWN_CHARACTERS = 80


class TooMuchWork(Exception):
    """Arguments nested too deeply or too large to be compared."""


class Budget(msgspec.Struct, gc=False):
    """Comparisons left for one record."""

    left: int = MAX_COMPARISONS

    def spend(self, comparisons: int, depth: int) -> None:
        """Subtract comparisons.

        Raise ``TooMuchWork`` where nothing is left or values are nested too deeply.
        """
        self.left -= comparisons
        if self.left < 0:
            raise TooMuchWork(f"arguments too large: more than {MAX_COMPARISONS} comparisons")
        if depth > MAX_DEPTH:
            raise TooMuchWork(f"arguments differ below {MAX_DEPTH} levels of nesting")


def with_one_nan(value: Any) -> Any:
    """Return a JSON value in which all NaNs are one object, as in all that JSON's decoder returns.

    So equality depends on values alone, whoever made them.
    """
    if not has_nan(value):
        return value
    try:
        return json.loads(json.dumps(value))
    except RecursionError:  # too deep to be compared, too
        return value


def has_nan(value: Any) -> bool:
    """Return whether a JSON value is, or holds, a number that is none."""
    values = [value]
    for each in values:  # which grows
        kind = type(each)
        if kind is str:
            continue
        if kind is dict:
            values += each.values()
        elif kind is list:
            values += each
        elif kind is float and each != each:  # noqa: PLR0124 - what NaN is
            return True
    return False


def similarity(expected: Any, actual: Any, budget: Budget, depth: int = 0) -> float:
    """Return the share of ``expected`` that is in ``actual``, in [0, 1].

    - Equal (``==``, so True = 1 = 1.0): 1. This is tried first, at every level. NaN equals nothing,
      but Python takes two objects or lists for equal that hold the same NaN, of which JSON's
      decoder has one; ``with_one_nan`` makes other values so.
    - Two objects: 0 if only the actual one is empty, 1 if only the expected one is; otherwise the
      mean over the expected keys of the similarity of their values, an absent key counting 0. Extra
      keys cost nothing.
    - Two lists: the same with items: each expected item takes its best partner among the actual
      items, which may serve several; order and surplus cost nothing.
    - Anything else: 0.

    Sums run from left to right and are divided once, as in the original, so that the result is the
    same to the last bit.
    """
    if expected == actual:
        return 1.0
    if isinstance(expected, dict) and isinstance(actual, dict):
        if not actual or not expected:
            return 0.0 if expected else 1.0
        budget.spend(len(expected), depth)
        total = 0.0
        for key, value in expected.items():
            if key in actual:
                other = actual[key]
                total += 1.0 if value == other else similarity(value, other, budget, depth + 1)
        return total / len(expected)
    if isinstance(expected, list) and isinstance(actual, list):
        if not actual or not expected:
            return 0.0 if expected else 1.0
        comparisons = len(expected) * len(actual)
        budget.spend(comparisons, depth)
        total = 0.0
        for value in expected:
            total += best_partner(value, actual, budget, depth + 1)[0]
        return total / len(expected)
    return 0.0


def best_partner(
    expected: Any, candidates: list[Any], budget: Budget, depth: int = 0
) -> tuple[float, int]:
    """Return the highest similarity of ``expected`` to a candidate, and that one's index.

    The index is that of the first candidate that reaches it.
    """
    best, best_index = 0.0, 0
    for index, candidate in enumerate(candidates):
        close = similarity(expected, candidate, budget, depth)
        if close > best:
            best, best_index = close, index
            if best == 1.0:
                break
    return best, best_index


def differences(
    expected: Any, actual: Any, subject: str, budget: Budget, pointer: str = "", depth: int = 0
) -> Iterator[Reason]:
    """Yield a reason for every place where ``similarity`` gives less than 1.

    Codes: ``missing_argument`` (an expected key is absent), ``missing_item`` (a list item has no
    partner), ``wrong_item`` (nor has it one, but the list is of the same length and an unexpected
    item stands in its place), ``wrong_type`` and ``wrong_argument`` (another value). Pointers lead
    into the expected arguments.
    """
    if expected == actual:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        budget.spend(len(expected), depth)
        for key, value in expected.items():
            if key not in actual:
                yield Reason(
                    code="missing_argument",
                    pointer=pointer + pointer_to(key),
                    expected=value,
                    actual=ABSENT,
                    subject=subject,
                )
            elif value != actual[key]:
                inner = pointer + pointer_to(key)
                yield from differences(value, actual[key], subject, budget, inner, depth + 1)
    elif isinstance(expected, list) and isinstance(actual, list):
        comparisons = len(expected) * max(1, len(actual))
        budget.spend(comparisons, depth)
        for index in range(len(expected)):
            inner = f"{pointer}/{index}"
            yield from _item_differences(expected, actual, index, subject, budget, inner, depth + 1)
    else:
        kinds = {type(expected), type(actual)}
        code = "wrong_type"
        if len(kinds) == 1 or kinds == {int, float}:
            code = "wrong_argument"
        yield Reason(code=code, pointer=pointer, expected=expected, actual=actual, subject=subject)


def _item_differences(
    expected: list[Any],
    actual: list[Any],
    index: int,
    subject: str,
    budget: Budget,
    pointer: str,
    depth: int,
) -> Iterator[Reason]:
    """Yield why the expected list item at ``index`` is not fully in the actual list."""
    value = expected[index]
    best, index_of_best = best_partner(value, actual, budget, depth)
    if best == 1.0:
        return
    if best > 0.0:
        yield from differences(value, actual[index_of_best], subject, budget, pointer, depth)
        return
    stray = None
    if len(expected) == len(actual):
        stray = actual[index]
    budget.spend(len(expected), depth)
    if len(expected) != len(actual) or stray in expected:
        yield Reason(
            code="missing_item", pointer=pointer, expected=value, actual=ABSENT, subject=subject
        )
    elif isinstance(value, dict) and isinstance(stray, dict) and value and stray:
        yield from differences(value, stray, subject, budget, pointer, depth)
    else:
        yield Reason(
            code="wrong_item", pointer=pointer, expected=value, actual=stray, subject=subject
        )


class Losses(msgspec.Struct):
    """The first reasons of a sample, and how many more there were."""

    first: list[Reason] = []
    more: int = 0

    def add(self, reasons: Iterable[Reason]) -> tuple[Reason, ...]:
        """Append reasons as long as there is room and return those appended."""
        start = len(self.first)
        for reason in reasons:
            if len(self.first) < MAX_REASONS:
                self.first.append(reason)
            else:
                self.more += 1
        return tuple(self.first[start:])

    def of_grade(self) -> tuple[tuple[Reason, ...], str]:
        """Return the reasons of the grade, and its rationale: the first three in one line."""
        if not self.first:
            return (), ""
        reasons = tuple(self.first)
        texts = [describe(reason) for reason in reasons[:_SHOWN_REASONS]]
        if self.more:
            message = f"{self.more} more reasons were left out"
            reasons += (Reason(code="more_reasons", message=message),)
        if hidden := len(self.first) - len(texts) + self.more:
            texts.append(f"{hidden} more")
        return reasons, "; ".join(texts)


def describe(reason: Reason) -> str:
    """Return a reason as one line, such as
    ``book wrong_argument /date expected "2024-05-20" got "2024-05-21"``.
    """
    words = [reason.subject, reason.code, reason.pointer]
    if reason.expected is not ABSENT:
        words.append(f"expected {_clipped(reason.expected)}")
    if reason.actual is not ABSENT:
        words.append(f"got {_clipped(reason.actual)}")
    words.append(reason.message)
    return " ".join(filter(None, words))


def _clipped(value: Any) -> str:
    try:
        text = compact(value)
    except RecursionError:
        return "…"
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[: _SHOWN_CHARACTERS - 1]}…"
