"""Assertions about what changed, as agent-diff has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from gradestack.jsonio import as_list, as_map, compact
from gradestack_plugins.end_states.differences import Change, Difference
from gradestack_plugins.end_states.predicates import Unusable, fits, matches

_KINDS: Final = ("added", "removed", "changed", "unchanged")


class Policy(NamedTuple):
    """What holds for all assertions of a task."""

    strict: bool
    ignored: Mapping[str, Any]
    """``global`` and tables -> fields whose change does not count."""


def name_of(number: int, assertion: Any) -> str:
    """Return an assertion's name: its number and what it is about."""
    about = as_map(assertion)
    return f"{number} {about.get('diff_type')} {about.get('entity')}"


def broken(assertion: Any, difference: Difference, policy: Policy) -> list[str]:
    """Return why an assertion is not kept; nothing where it is.

    Raises:
        Unusable: It is not of its form.
    """
    kind, table = as_map(assertion).get("diff_type"), as_map(assertion).get("entity")
    if kind not in _KINDS or not isinstance(table, str):
        raise Unusable(f"expected diff_type ({', '.join(_KINDS)}) and entity, found {compact(assertion)[:80]}")
    where, count = assertion.get("where"), assertion.get("expected_count")
    rows = difference.added.get(table, []) if kind == "added" else difference.removed.get(table, [])
    if kind in {"added", "removed"}:
        return _miscounted(count, sum(fits(row, where) for row in rows))
    changes = [
        each for each in difference.changed.get(table, []) if fits(each.after, where) or fits(each.before, where)
    ]
    if kind == "unchanged":
        moved = [*difference.added.get(table, []), *difference.removed.get(table, [])]
        number = sum(fits(row, where) for row in moved) + len(changes)
        return _miscounted(0 if count is None else count, number)
    return _changed(assertion, changes, policy)


def _changed(assertion: Mapping[str, Any], changes: Sequence[Change], policy: Policy) -> list[str]:
    expected = as_map(assertion.get("expected_changes"))
    strict = assertion.get("strict", policy.strict)
    own = assertion.get("ignore", assertion.get("ignore_fields"))
    names = (policy.ignored.get("global"), policy.ignored.get(assertion["entity"]), own)
    ignored = {each for listed in names for each in as_list(listed)}
    said, number = [], 0
    for before, after in changes:
        fields = {each for each in {*before, *after} if each not in ignored and before.get(each) != after.get(each)}
        if strict and (others := sorted(map(str, fields - expected.keys()))):
            said.append(f"other fields changed: {', '.join(others)}")
            continue
        number += all(field in fields and _as_expected(field, each, before, after) for field, each in expected.items())
    return [*said, *_miscounted(assertion.get("expected_count"), number)]


def _as_expected(field: str, expected: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a field went from where to where it should; a plain value is where to."""
    ends = expected if isinstance(expected, Mapping) else {"to": expected}
    return all(end not in ends or matches(row.get(field), ends[end]) for end, row in (("from", before), ("to", after)))


def _miscounted(expected: Any, number: int) -> list[str]:
    """Return what is wrong with a number of rows: at least one, exactly so many, or within bounds.

    Raises:
        Unusable: The count is neither.
    """
    if expected is None:
        return [] if number else ["expected at least 1 row, found 0"]
    if isinstance(expected, int):
        return [] if number == expected else [f"expected {expected} row(s), found {number}"]
    if not isinstance(expected, Mapping):
        raise Unusable(f"expected_count: expected a number, or min and max, found {compact(expected)[:60]}")
    low, high = expected.get("min"), expected.get("max")
    if (low is None or number >= low) and (high is None or number <= high):
        return []
    return [f"expected {'' if low is None else low} to {'' if high is None else high} row(s), found {number}"]
