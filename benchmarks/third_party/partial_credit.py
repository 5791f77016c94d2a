"""Partial credit for expected calls.

A metric in one file, as docs/tutorials/write-a-grader.md shows one.

It does what ``tau_partial`` does for samples of any format, with nothing done for speed;
``authors.py`` measures both.
"""

from collections.abc import Iterator
from typing import Any

from gradestack import ABSENT, Grade, Grader, Item, Reason, Sample, ToolCall, skipped


class PartialCredit(Grader):
    """Credit of 0.4 for an expected tool that was called and of 0.6 for its arguments, averaged
    over expected calls.
    """

    metrics = ("mean", "partial_statistics")

    def grade(self, sample: Sample) -> Grade:
        """Return the score, an item for every expected call, and a reason for every point lost."""
        if not sample.expected.calls or sample.calls is None:
            return skipped("no_calls", "no call is expected, or none was recorded")
        items, reasons, called = [], [], 0
        for index, wanted in enumerate(sample.expected.calls):
            place, found = closest(wanted.name, wanted.arguments or {}, sample.calls)
            if place is None:
                why = [Reason(code="missing_call", subject=wanted.name, expected=wanted.arguments)]
            else:
                why = list(
                    differences(
                        wanted.arguments or {}, sample.calls[place].arguments or {}, wanted.name
                    )
                )
                called += 1
            items.append(
                Item(
                    id=str(index),
                    score=0.0 if place is None else 0.4 + 0.6 * found,
                    gold=wanted.name,
                    label=None if place is None else wanted.name,
                    parts={} if place is None else {"argument_similarity": found},
                    reasons=tuple(why),
                    metadata={"call": place},
                )
            )
            reasons += why
        return Grade(
            score=sum(item.score or 0.0 for item in items) / len(items),
            counts={
                "expected_calls": len(items),
                "called": called,
                "made_calls": len(sample.calls),
            },
            items=tuple(items),
            reasons=tuple(reasons),
            rationale="; ".join(
                f"{each.subject} {each.code} {each.pointer}" for each in reasons[:3]
            ),
        )


def closest(name: str, arguments: Any, made: tuple[ToolCall, ...]) -> tuple[int | None, float]:
    """Return the place of the call of that name with the most similar arguments, and how similar
    they are.
    """
    best, place = 0.0, None
    for index, call in enumerate(made):
        if call.name == name:
            found = similarity(arguments, call.arguments or {})
            if place is None or found > best:
                best, place = found, index
    return place, best


def similarity(expected: Any, actual: Any) -> float:
    """Return how much of ``expected`` is in ``actual``, from 0 to 1."""
    if expected == actual:
        return 1.0
    if isinstance(expected, dict) and isinstance(actual, dict):
        if not expected or not actual:
            return 0.0 if expected else 1.0
        return sum(
            similarity(value, actual[key]) for key, value in expected.items() if key in actual
        ) / len(expected)
    if isinstance(expected, list) and isinstance(actual, list):
        if not expected or not actual:
            return 0.0 if expected else 1.0
        return sum(max(similarity(value, one) for one in actual) for value in expected) / len(
            expected
        )
    return 0.0


def differences(expected: Any, actual: Any, subject: str, pointer: str = "") -> Iterator[Reason]:
    """Yield a reason for every place where the similarity is less than 1."""
    if expected == actual:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key in actual:
                yield from differences(value, actual[key], subject, f"{pointer}/{key}")
            else:
                yield Reason(
                    code="missing_argument",
                    subject=subject,
                    pointer=f"{pointer}/{key}",
                    expected=value,
                )
    elif isinstance(expected, list) and isinstance(actual, list):
        for index, value in enumerate(expected):
            if value not in actual:
                other = actual[index] if index < len(actual) else ABSENT
                place = f"{pointer}/{index}"
                yield Reason(
                    code="wrong_item", subject=subject, pointer=place, expected=value, actual=other
                )
    else:
        code = "wrong_argument" if type(expected) is type(actual) else "wrong_type"
        yield Reason(code=code, subject=subject, pointer=pointer, expected=expected, actual=actual)
