"""promptfoo: assertions on tool calls and trajectories, by JavaScript's values and its globs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from gradestack_plugins.tool_calls.calls import Call, value_of
from gradestack_plugins.tool_calls.peers.verdict import Rule, Verdict, boolean, f1, refuse_nothing

_ANY = r"[^\n\r\u2028\u2029]"
"""What a dot is in JavaScript."""


def call_f1(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
    """Return F1 over sets of names, passed at 1."""
    refuse_nothing(expected)
    wanted, done = {call.name for call in expected}, {call.name for call in made}
    hits = len(wanted & done)
    score = f1(hits / len(done) if done else 0.0, hits / len(wanted))
    return Verdict(score, score >= 1)


def tool_used(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
    """Return whether each expected name, a glob, is that of some call."""
    refuse_nothing(expected)
    names = _trimmed(made)
    return boolean(all(any(map(_matching(call.name), names)) for call in expected))


def tool_sequence(mode: str) -> Rule:
    """Return whether names come ``in_order``, others in between, or are ``exact``."""

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        refuse_nothing(expected)
        names, globs = _trimmed(made), [_matching(call.name) for call in expected]
        if mode == "exact":
            fits = len(names) == len(globs) and all(glob(name) for glob, name in zip(globs, names, strict=True))
            return boolean(fits)
        rest = iter(names)
        return boolean(all(any(map(glob, rest)) for glob in globs))

    return verdict


def tool_args_match(mode: str) -> Rule:
    """Return the share of expected calls that some call of the name satisfies, one assertion each; passed when all."""
    agree = strict_equal if mode == "exact" else _within

    def verdict(expected: Sequence[Call], made: Sequence[Call]) -> Verdict:
        named = list(zip(_trimmed(made), map(value_of, made), strict=True))
        hits = 0
        for call in expected:
            matches, wanted = _matching(call.name), value_of(call)
            hits += any(value != "" and matches(name) and agree(value, wanted) for name, value in named)
        return Verdict(hits / len(expected) if expected else 1.0, hits == len(expected))

    return verdict


def _trimmed(made: Sequence[Call]) -> list[str]:
    return [call.name.strip() for call in made]


def _matching(glob: str) -> Callable[[str], bool]:
    """Return what tells whether a name is matched by a glob, case ignored."""
    pattern = "".join(_ANY + "*" if each == "*" else _ANY if each == "?" else re.escape(each) for each in glob)
    matcher = re.compile(pattern, re.IGNORECASE)
    return lambda name: matcher.fullmatch(name) is not None


def _within(value: Any, wanted: Any) -> bool:
    """Return whether objects have at least what is wanted; lists agree in length and element by element."""
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_within, value, wanted))
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(key in value and _within(value[key], wanted[key]) for key in wanted)
    return strict_equal(value, wanted)


def strict_equal(value: Any, wanted: Any) -> bool:
    """Return whether two values are the same to JavaScript: numbers are doubles, 0 is not -0, true is no number."""
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(strict_equal, value, wanted))
    if isinstance(wanted, dict):
        same = isinstance(value, dict) and value.keys() == wanted.keys()
        return same and all(strict_equal(value[key], wanted[key]) for key in wanted)
    if isinstance(wanted, bool) or isinstance(value, bool) or not isinstance(wanted, int | float):
        return type(value) is type(wanted) and bool(value == wanted)
    return isinstance(value, int | float) and _same_double(_double(value), _double(wanted))


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


def _same_double(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right and math.copysign(1, left) == math.copysign(1, right)
