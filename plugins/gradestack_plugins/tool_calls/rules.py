"""Rules of single arguments: allowed values, tolerances, sets, patterns and schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from gradestack import Rule
from gradestack.jsonio import as_number, compact, is_number
from gradestack_plugins.tool_calls.leaves import Equality, equal, token_of
from gradestack_plugins.tool_calls.schema import satisfies


class UnusableRule(ValueError):
    """A rule that says nothing, or two things."""


def check(key: str, rule: Rule) -> None:
    """Check that a rule can be used.

    Raises:
        UnusableRule: It contradicts itself, or has a pattern that is none.
    """
    if rule.ignore and (rule.any_of or rule.compare != "exact" or rule.tolerance is not None):
        raise UnusableRule(f"rule of {key}: ignore takes any value, so it goes with no other condition")
    if rule.tolerance is not None and rule.compare not in {"exact", "number"}:
        raise UnusableRule(f"rule of {key}: tolerance is of numbers, and compare is {rule.compare}")
    if rule.tolerance is not None and not rule.tolerance >= 0:
        raise UnusableRule(f"rule of {key}: tolerance must be a number of at least 0, got {rule.tolerance}")
    if rule.compare in {"regex", "schema"} and not rule.any_of:
        raise UnusableRule(f"rule of {key}: compare {rule.compare} needs any_of, the list of them")
    if rule.compare == "regex":
        for pattern in rule.any_of:
            _pattern(key, pattern)


def _pattern(key: str, pattern: Any) -> None:
    if not isinstance(pattern, str):
        raise UnusableRule(f"rule of {key}: a pattern is a text, got {compact(pattern)[:60]}")
    try:
        compiled(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnusableRule(f"rule of {key}: {pattern[:60]!r} is no pattern: {error}") from error


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern ready for use.

    Raises:
        re.error: It is none.
    """
    return re.compile(pattern)


def is_met(rule: Rule, value: Any, allowed: Sequence[Any], equality: Equality) -> bool:
    """Return whether a value is one of those allowed, as the rule compares; where none are named, any is.

    Args:
        rule: The rule.
        value: What was given.
        allowed: The rule's ``any_of``, or where it has none what the call's ``arguments`` say.
        equality: How values are compared that the rule does not compare otherwise.
    """
    if rule.ignore or not allowed:
        return True
    return any(_agrees(rule, value, each, equality) for each in allowed)


def _agrees(rule: Rule, value: Any, wanted: Any, equality: Equality) -> bool:
    compare = rule.compare
    if compare == "text":
        return equal(value, wanted, "text")
    if compare == "regex":
        return isinstance(value, str) and isinstance(wanted, str) and compiled(wanted).search(value) is not None
    if compare == "schema":
        return satisfies(value, wanted)
    if compare == "set":
        if isinstance(value, list) and isinstance(wanted, list):
            return {token_of(each, equality) for each in value} == {token_of(each, equality) for each in wanted}
        return equal(value, wanted, equality)
    if compare == "number":
        left, right = _number(value), _number(wanted)
        return left is not None and right is not None and _near(left, right, rule.tolerance or 0)
    if rule.tolerance is not None and is_number(value) and is_number(wanted):
        return _near(value, wanted, rule.tolerance)
    return equal(value, wanted, equality)


def _near(value: float, wanted: float, tolerance: float) -> bool:
    try:
        return value == wanted or abs(value - wanted) <= tolerance
    except OverflowError:
        return False


def _number(value: Any) -> float | None:
    """Return a number, or the one a text is."""
    if isinstance(value, str):
        try:
            return as_number(float(value))
        except ValueError:
            return None
    return value if is_number(value) else None


def rules_of(rules: Mapping[str, Rule] | None) -> Mapping[str, Rule]:
    """Return a call's rules, checked.

    Raises:
        UnusableRule: One cannot be used.
    """
    for key, rule in (rules or {}).items():
        check(key, rule)
    return rules or {}
