"""Traits of runs by which rules for tool calls differ."""

from __future__ import annotations

from gradestack_plugins.pages.index import RowIndex

NOTHING_EXPECTED, OTHER_ORDER = "nothing_expected", "other_order"
"""Traits beside codes of reasons: no call is expected; calls were made in another order."""
_MOST_TRAITS, _LONGEST_CODE = 100, 60


def traits_of(index: RowIndex, grader: str) -> dict[str, list[int]]:
    """Return the samples of every code that a grader gave, and of the two traits beside these."""
    kinds_of_reasons = list(index.reasons.kinds)
    codes: dict[tuple[int, ...], set[str]] = {}
    for numbers in set(index.reasons.by_run):
        reasons_given = [kinds_of_reasons[number] for number in numbers]
        names_of_grader = [name for key, name, *_ in reasons_given if key == grader]
        codes[numbers] = {name.partition(": ")[0][:_LONGEST_CODE] for name in names_of_grader}
    without_expected_calls = set(index.without_calls)
    in_another_order = set(index.verdicts.reordered)
    traits: dict[str, list[int]] = {}
    for position, numbers in enumerate(index.reasons.by_run):
        names = set(codes[numbers])
        if position in without_expected_calls:
            names.add(NOTHING_EXPECTED)
        if position in in_another_order:
            names.add(OTHER_ORDER)
        for name in sorted(names):
            if name in traits or len(traits) < _MOST_TRAITS:
                traits.setdefault(name, []).append(position)
    return traits
