"""promptfoo: assertions on tool calls and trajectories, by JavaScript's values and its globs."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from gradestack import Sample
from gradestack.jsonio import is_number
from gradestack_plugins.tool_calls.diff import Expected, Made, decoded
from gradestack_plugins.tool_calls.published.preset import (
    RAISES,
    Raised,
    Rule,
    Verdict,
    precision_recall_f1,
    yes_or_no,
)

_ANY = r"[^\n\r\u2028\u2029]"
"""What a dot is in JavaScript."""
_SPACES = "".join(map(chr, range(0x2000, 0x200B)))
_BLANKS = f"\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff{_SPACES}"
_ASCII = 127
_SHELLS = frozenset({"exec_command", "local_shell", "shell"})
_COMMANDS = ("cmd", "command", "commands")


def call_f1(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
    """Return F1 over the sets of names."""
    wanted = {call.name for call in expected}
    done = {call.name for call in made}
    hits = len(wanted & done)
    *_, score = precision_recall_f1(hits, len(wanted), len(done))
    return Verdict(score, score >= 1)


def tool_used(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
    """Return whether every expected name was called."""
    names = [name for name, _ in _steps(made)]
    globs = [_matcher_of(call.name) for call in expected]
    passed = all(any(map(glob, names)) for glob in globs)
    return yes_or_no(passed)


def tool_sequence(mode: str) -> Rule:
    """Return whether names come ``in_order``, others in between, or are ``exact``."""

    def verdict(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
        """Match the names of calls in their order with the expected patterns."""
        _refuse_unnamed(expected)
        names = [name for name, _ in _steps(made)]
        globs = [_matcher_of(call.name) for call in expected]
        if mode == "exact":
            pairs = zip(globs, names, strict=False)
            is_long = len(names) == len(globs)
            return yes_or_no(is_long and all(glob(name) for glob, name in pairs))
        rest = iter(names)
        passed = all(any(map(glob, rest)) for glob in globs)
        return yes_or_no(passed)

    return verdict


def tool_args_match(mode: str) -> Rule:
    """Return the share of expected calls that some call of the name satisfies, one assertion each.

    Passed when all.
    """
    agree = _strict_equal if mode == "exact" else _within

    def verdict(expected: Sequence[Expected], made: Sequence[Made], _sample: Sample) -> Verdict:
        _refuse_unnamed(expected)
        steps = [step for step in _steps(made) if step[1] != ""]
        hits = 0
        for call in expected:
            matches = _matcher_of(call.name)
            wanted = decoded(call)
            hits += any(matches(name) and agree(value, wanted) for name, value in steps)
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
    command = next((value[key] for key in _COMMANDS if key in value), None)
    parts = command if isinstance(command, list) else [command]
    return any(isinstance(part, str) and part.strip(_BLANKS) for part in parts)


def _refuse_unnamed(expected: Sequence[Expected]) -> None:
    if not all(call.name for call in expected):
        raise Raised("unnamed_tool", f"an expected call has no name, and {RAISES}")


def _matcher_of(glob: str) -> Callable[[str], bool]:
    """Return a function that tells whether a name is matched by a glob, case ignored.

    The empty one matches all.
    """
    signs = {"*": f"{_ANY}*", "?": _ANY}
    units = _units(glob)
    pattern = "".join(signs.get(unit) or re.escape(unit) for unit in units)
    matcher = re.compile(pattern)
    return lambda name: not glob or matcher.fullmatch(_units(name)) is not None


def _units(text: str) -> str:
    """Write a text as JavaScript's case-insensitive patterns see it: 16 bits a unit, upper case.

    A character keeps its case where the other is longer, or where it alone is beyond ASCII.
    """
    if text.isascii():
        return text.upper()
    data = text.encode("utf-16-le", "surrogatepass")
    units = [chr(unit) for (unit,) in struct.iter_unpack("<H", data)]
    return "".join(map(_upper, units))


def _upper(unit: str) -> str:
    upper = unit.upper()
    if len(upper) != 1 or (ord(unit) > _ASCII and ord(upper) <= _ASCII):
        return unit
    return upper


def _within(value: Any, wanted: Any) -> bool:
    """Return whether objects have at least the wanted members.

    Lists agree in length and element by element.
    """
    if isinstance(wanted, list):
        return _lists_agree(value, wanted, _within)
    if not isinstance(wanted, dict):
        return _strict_equal(value, wanted)
    has_keys = isinstance(value, dict) and wanted.keys() <= value.keys()
    return has_keys and all(_within(value[key], wanted[key]) for key in wanted)


def _lists_agree(value: Any, wanted: list[Any], agree: Callable[[Any, Any], bool]) -> bool:
    is_long = isinstance(value, list) and len(value) == len(wanted)
    return is_long and all(map(agree, value, wanted))


def _strict_equal(value: Any, wanted: Any) -> bool:
    """Return whether two values are the same to JavaScript.

    Numbers are doubles, 0 is not -0, true is no number.
    """
    if isinstance(wanted, list):
        return _lists_agree(value, wanted, _strict_equal)
    if isinstance(wanted, dict):
        has_keys = isinstance(value, dict) and value.keys() == wanted.keys()
        return has_keys and all(_strict_equal(value[key], wanted[key]) for key in wanted)
    if is_number(wanted) and is_number(value):
        return _same_double(_double(value), _double(wanted))
    return type(value) is type(wanted) and bool(value == wanted)


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


def _same_double(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right and math.copysign(1, left) == math.copysign(1, right)
