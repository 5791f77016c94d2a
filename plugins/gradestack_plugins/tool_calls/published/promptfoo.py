"""promptfoo: assertions on tool calls and trajectories, by JavaScript's values and its globs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from gradestack import Sample
from gradestack_plugins.tool_calls.diff import Expected, Made, decoded
from gradestack_plugins.tool_calls.published.preset import (
    Raised,
    Rule,
    Verdict,
    f1,
    refuse_nothing,
    yes_or_no,
)

_ANY = r"[^\n\r\u2028\u2029]"
"""What a dot is in JavaScript."""
_BLANKS = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_ASCII = 127
_SHELLS = frozenset({"exec_command", "local_shell", "shell"})
_COMMANDS = ("cmd", "command", "commands")


def call_f1(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
    """Return F1 over the sets of names."""
    refuse_nothing(expected)
    wanted, done = {call.name for call in expected}, {call.name for call in made}
    hits = len(wanted & done)
    score = f1(hits / len(done) if done else 0.0, hits / len(wanted))
    return Verdict(score, score >= 1)


def tool_used(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
    """Return whether every expected name was called."""
    refuse_nothing(expected)
    names = [name for name, _ in _steps(made)]
    return yes_or_no(all(any(map(_matching(call.name), names)) for call in expected))


def tool_sequence(mode: str) -> Rule:
    """Return whether names come ``in_order``, others in between, or are ``exact``."""

    def verdict(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
        refuse_nothing(expected)
        _refuse_unnamed(expected)
        names, globs = (
            [name for name, _ in _steps(made)],
            [_matching(call.name) for call in expected],
        )
        if mode == "exact":
            fits = len(names) == len(globs) and all(
                glob(name) for glob, name in zip(globs, names, strict=True)
            )
            return yes_or_no(fits)
        rest = iter(names)
        return yes_or_no(all(any(map(glob, rest)) for glob in globs))

    return verdict


def tool_args_match(mode: str) -> Rule:
    """Return the share of expected calls that some call of the name satisfies, one assertion each.

    Passed when all.
    """
    agree = _strict_equal if mode == "exact" else _within

    def verdict(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
        _refuse_unnamed(expected)
        named, hits = _steps(made), 0
        for call in expected:
            matches, wanted = _matching(call.name), decoded(call)
            hits += any(
                value != "" and matches(name) and agree(value, wanted) for name, value in named
            )
        return Verdict(hits / len(expected) if expected else 1.0, hits == len(expected))

    return verdict


def _steps(made: Sequence[Made]) -> list[tuple[str, Any]]:
    """Return names and arguments of calls that are steps of tools.

    Those with a name, commands of a shell aside.
    """
    named = [(call.name.strip(_BLANKS), decoded(call)) for call in made]
    return [(name, value) for name, value in named if name and not _is_command(name, value)]


def _is_command(name: str, value: Any) -> bool:
    """Return whether a call hands a command to a shell, which is a step of another kind."""
    if name.lower() not in _SHELLS or not isinstance(value, dict):
        return False
    given = next((value[key] for key in _COMMANDS if key in value), None)
    parts = given if isinstance(given, list) else [given]
    return any(isinstance(part, str) and part.strip(_BLANKS) for part in parts)


def _refuse_unnamed(expected: Sequence[Expected]) -> None:
    if not all(call.name for call in expected):
        raise Raised(
            "unnamed_tool", "an expected call has no name, and the original program raises on that"
        )


def _matching(glob: str) -> Callable[[str], bool]:
    """Return what tells whether a name is matched by a glob, case ignored.

    The empty one matches all.
    """
    pattern = "".join(
        _ANY + "*" if each == "*" else _ANY if each == "?" else re.escape(each)
        for each in _units(glob)
    )
    matcher = re.compile(pattern)
    return lambda name: not glob or matcher.fullmatch(_units(name)) is not None


def _units(text: str) -> str:
    """Return a text as patterns of JavaScript see it that ignore case.

    16 bits at a time, each in upper case.

    A character keeps its case where the other is longer, or where it alone is beyond ASCII.
    """
    if text.isascii():
        return text.upper()
    data = text.encode("utf-16-le", "surrogatepass")
    units = (chr(int.from_bytes(data[at : at + 2], "little")) for at in range(0, len(data), 2))
    return "".join(map(_upper, units))


def _upper(unit: str) -> str:
    upper = unit.upper()
    return unit if len(upper) != 1 or (ord(unit) > _ASCII and ord(upper) <= _ASCII) else upper


def _within(value: Any, wanted: Any) -> bool:
    """Return whether objects have at least what is wanted.

    Lists agree in length and element by element.
    """
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_within, value, wanted))
        )
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            key in value and _within(value[key], wanted[key]) for key in wanted
        )
    return _strict_equal(value, wanted)


def _strict_equal(value: Any, wanted: Any) -> bool:
    """Return whether two values are the same to JavaScript.

    Numbers are doubles, 0 is not -0, true is no number.
    """
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_strict_equal, value, wanted))
        )
    if isinstance(wanted, dict):
        same = isinstance(value, dict) and value.keys() == wanted.keys()
        return same and all(_strict_equal(value[key], wanted[key]) for key in wanted)
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
