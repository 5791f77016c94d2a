"""How two calls of one tool differ, argument by argument, by the terms that are set for the tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import attrs

from gradestack import Rule
from gradestack_plugins.tool_calls.calls import Arguments, Expected, Made
from gradestack_plugins.tool_calls.leaves import Equality, Leaves, equal, pointer_to
from gradestack_plugins.tool_calls.rules import is_met

Mode = Literal["ignore", "exact", "subset", "superset", "rules"]
Share = tuple[int, int]
"""Of the leaves of both calls, those that agree, and how many there are; (1, 1) where nothing is to be compared."""
NOTHING: Share = (0, 1)
ALL: Share = (1, 1)


@attrs.frozen(kw_only=True)
class ToolTerms:
    """What is said of the calls of one tool; ``*`` as its name says it of all the others."""

    arguments: Mode | None = None
    """How arguments are compared; None: as those of the other tools."""
    keys: tuple[str, ...] | None = None
    """The only places compared: JSON pointers, or keys with dots in between."""
    ignore: tuple[str, ...] = ()
    """Places that are not compared: patterns of keys, with dots in between."""
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """What an argument that is not given stands for: given as this value, where it is not expected, it is no error."""

    def __attrs_post_init__(self) -> None:
        if self.arguments == "ignore" and (self.keys is not None or self.ignore or self.defaults):
            raise ValueError("keys, ignore and defaults have no meaning beside arguments: ignore, which compares none")
        if self.keys is None:
            return
        if not self.keys:
            raise ValueError("keys names no place to compare; arguments: ignore says that, or leave it out")
        for key in map(_dotted, self.keys):
            if any(fnmatchcase(key, _dotted(pattern)) for pattern in self.ignore):
                raise ValueError(f"{key} stands both in keys and in ignore; leave it out of one of them")


@attrs.frozen(kw_only=True)
class Terms:
    """How the calls of one tool are compared."""

    mode: Mode
    equality: Equality
    tool: ToolTerms = ToolTerms()

    def expected_leaves(self, call: Expected, tool: str) -> Leaves:
        """Return the leaves of an expected call that are compared with calls of a tool."""
        if tool not in call.leaves:
            call.leaves[tool] = self._leaves(call.arguments, call.rules)
        return call.leaves[tool]

    def made_leaves(self, call: Made, expected: Arguments, rules: Mapping[str, Rule]) -> Leaves:
        """Return the leaves of a call that are compared with an expected one of these arguments and rules."""
        if defaults := self.tool.defaults:
            arguments = {
                key: value
                for key, value in call.arguments.items()
                if key in expected
                or key in rules
                or key not in defaults
                or not equal(value, defaults[key], self.equality)
            }
            return self._leaves(arguments, rules)
        without = frozenset(rules)
        if without not in call.leaves:
            call.leaves[without] = self._leaves(call.arguments, rules)
        return call.leaves[without]

    def _leaves(self, arguments: Arguments, rules: Mapping[str, Rule]) -> Leaves:
        """Return the leaves that are compared, those a rule decides left out."""
        if rules:
            arguments = {key: value for key, value in arguments.items() if key not in rules}
        keys, ignore = self.tool.keys, self.tool.ignore
        if keys is not None or ignore:
            dotted = None if keys is None else list(map(_dotted, keys))
            arguments = _compared(arguments, (), dotted, list(map(_dotted, ignore)))
        return Leaves(arguments, self.equality)


def _dotted(place: str) -> str:
    if not place.startswith("/"):
        return place
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in place[1:].split("/"))


def _compared(value: Any, path: tuple[str, ...], keys: Sequence[str] | None, ignored: Sequence[str]) -> Any:
    """Return a value without the parts that are not compared."""
    parts = {}
    for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
        place = (*path, str(key))
        dotted = ".".join(place)
        if any(fnmatchcase(dotted, pattern) for pattern in ignored):
            continue
        if keys is not None and dotted not in keys:
            inside = [name for name in keys if name.startswith(f"{dotted}.")]
            if not inside or not isinstance(each, Mapping | list):
                continue
            part = _compared(each, place, inside, ignored)
            if not part:
                continue
        else:
            part = (
                each if not ignored or not isinstance(each, Mapping | list) else _compared(each, place, None, ignored)
            )
        parts[key] = part
    return parts if isinstance(value, Mapping) else list(parts.values())


class Diff(NamedTuple):
    """How each argument of two calls fares: pointers."""

    right: list[str]
    wrong: list[str]
    missing: list[str]
    unknown: list[str]
    sides: tuple[Leaves, Leaves] | None = None
    ruled: Mapping[str, tuple[Any, Any]] = {}
    """What is expected and made where a rule decides."""

    @property
    def share(self) -> Share:
        """How much agrees."""
        right = len(self.right)
        of = right + len(self.wrong) + len(self.missing) + len(self.unknown)
        return (right, of) if of else ALL

    def values(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is expected and what was made, by pointer."""
        expected, made = ({}, {}) if self.sides is None else (self.sides[0].values(), self.sides[1].values())
        for pointer, (wanted, actual) in self.ruled.items():
            expected[pointer], made[pointer] = wanted, actual
        return expected, made


def diff_of(expected: Expected, made: Made, terms: Terms) -> Diff:
    """Return how each argument of two calls of one tool fares."""
    if terms.mode == "ignore" or not expected.compared or expected.raw is not None or made.raw is not None:
        return Diff([], [], [], [])
    left = terms.expected_leaves(expected, made.name)
    right = terms.made_leaves(made, expected.arguments, expected.rules)
    if left.marks == right.marks:
        found = Diff(list(left.marks), [], [], [])
    else:
        found = Diff([], [], [], [], (left, right))
        for pointer, mark in left.marks.items():
            if pointer not in right.marks:
                found.missing.append(pointer)
            elif mark == right.marks[pointer]:
                found.right.append(pointer)
            else:
                found.wrong.append(pointer)
        if terms.mode == "subset":
            found.missing.clear()
        if terms.mode != "superset" and len(found.right) + len(found.wrong) < len(right.marks):
            found.unknown.extend([pointer for pointer in right.marks if pointer not in left.marks])
    return _with_rules(found, expected, made, terms) if expected.rules else found


def _with_rules(found: Diff, expected: Expected, made: Made, terms: Terms) -> Diff:
    ruled = {}
    for key, rule in expected.rules.items():
        if rule.ignore:
            continue
        pointer, stated = pointer_to(key), list(rule.any_of) or [expected.arguments.get(key)]
        ruled[pointer] = (stated[0] if len(stated) == 1 else stated), made.arguments.get(key)
        if key not in made.arguments:
            if not rule.optional and terms.mode != "subset":
                found.missing.append(pointer)
            continue
        allowed = rule.any_of or ((expected.arguments[key],) if key in expected.arguments else ())
        met = is_met(rule, made.arguments[key], allowed, terms.equality)
        (found.right if met else found.wrong).append(pointer)
    return found._replace(ruled=ruled)


def share_of(expected: Expected, made: Made, diff: Diff, terms: Terms) -> Share:
    """Return how much of two calls of one tool agrees, whose arguments differ so."""
    if expected.requestor is not None and expected.requestor != made.requestor:
        return NOTHING
    if terms.mode != "ignore" and (expected.raw is not None or made.raw is not None):
        return NOTHING
    return diff.share


def value_of(call: Expected | Made, terms: Terms) -> object:
    """Return what is the same for calls that are equal by a tool's terms; no rules are looked at."""
    if terms.mode == "ignore":
        return call.name
    if call.raw is not None:
        return call.name, call.raw
    leaves = terms.expected_leaves(call, call.name) if isinstance(call, Expected) else terms.made_leaves(call, {}, {})
    return call.name, frozenset(leaves.marks.items())
