"""How two calls of one tool differ, argument by argument, by the terms that are set for the tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import attrs

from gradestack import ExpectedCall, Rule, ToolCall
from gradestack_plugins.tool_calls.calls import Arguments, arguments_of, name_of, raw_of
from gradestack_plugins.tool_calls.leaves import Equality, Leaves, equal, leaves_of, pointer_to
from gradestack_plugins.tool_calls.rules import check, is_met

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
        """Check that the options agree.

        Raises:
            ValueError: One takes away what another says.
        """
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

    def leaves(self, arguments: Arguments, rules: Mapping[str, Rule]) -> Leaves:
        """Return the leaves that are compared, those a rule decides left out."""
        if rules:
            arguments = {key: value for key, value in arguments.items() if key not in rules}
        keys, ignore = self.tool.keys, self.tool.ignore
        if keys is not None or ignore:
            dotted = None if keys is None else list(map(_dotted, keys))
            arguments = _compared(arguments, (), dotted, list(map(_dotted, ignore)))
        return leaves_of(arguments, self.equality)


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


class Expected:
    """An expected call; its leaves are worked out once."""

    __slots__ = (
        *("_leaves", "arguments", "compared", "group", "index", "name", "names"),
        *("optional", "raw", "requestor", "rules", "turn"),
    )

    def __init__(self, index: int, call: ExpectedCall, *, rules: bool, requestor: bool) -> None:
        self.index, self.optional, self.group, self.turn = index, call.optional, call.group, call.turn
        self.names = call.names or (name_of(call.name),)
        self.name = self.names[0]
        self.arguments, self.raw = arguments_of(call.arguments), raw_of(call)
        self.compared = call.arguments is not None or self.raw is not None or bool(call.rules)
        self.rules: Mapping[str, Rule] = call.rules if rules and call.rules else {}
        if self.rules:
            check(self.rules)
        self.requestor = call.requestor if requestor else None
        self._leaves: dict[str, Leaves] = {}

    def leaves(self, terms: Terms, name: str) -> Leaves:
        """Return what is compared with a call of a tool."""
        if name not in self._leaves:
            self._leaves[name] = terms.leaves(self.arguments, self.rules)
        return self._leaves[name]


class Made:
    """A call that was made; its leaves are worked out once."""

    __slots__ = ("_leaves", "arguments", "index", "name", "raw", "requestor", "turn")

    def __init__(self, index: int, call: ToolCall) -> None:
        self.index, self.name, self.requestor, self.turn = index, name_of(call.name), call.requestor, call.turn
        self.arguments, self.raw = arguments_of(call.arguments), raw_of(call)
        self._leaves: dict[frozenset[str], Leaves] = {}

    def leaves(self, terms: Terms, expected: Arguments, rules: Mapping[str, Rule]) -> Leaves:
        """Return what is compared with an expected call of these arguments and rules."""
        if defaults := terms.tool.defaults:
            arguments = {
                key: value
                for key, value in self.arguments.items()
                if key in expected
                or key in rules
                or key not in defaults
                or not equal(value, defaults[key], terms.equality)
            }
            return terms.leaves(arguments, rules)
        without = frozenset(rules)
        if without not in self._leaves:
            self._leaves[without] = terms.leaves(self.arguments, rules)
        return self._leaves[without]


class Diff(NamedTuple):
    """How each argument of two calls fares: pointers, and what stands there on either side."""

    right: list[str]
    wrong: list[str]
    missing: list[str]
    unknown: list[str]
    expected: Mapping[str, Any] = {}
    made: Mapping[str, Any] = {}

    @property
    def share(self) -> Share:
        """How much agrees."""
        right = len(self.right)
        of = right + len(self.wrong) + len(self.missing) + len(self.unknown)
        return (right, of) if of else ALL


def diff_of(expected: Expected, made: Made, terms: Terms) -> Diff:
    """Return how each argument of two calls of one tool fares."""
    if terms.mode == "ignore" or not expected.compared or expected.raw is not None or made.raw is not None:
        return Diff([], [], [], [])
    left, right = expected.leaves(terms, made.name), made.leaves(terms, expected.arguments, expected.rules)
    if left.marks == right.marks:
        found = Diff(list(left.marks), [], [], [], left.values, right.values)
    else:
        found = Diff([], [], [], [], left.values, right.values)
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
    wanted, actual = dict(found.expected), dict(found.made)
    for key, rule in expected.rules.items():
        if rule.ignore:
            continue
        pointer = pointer_to(key)
        stated = list(rule.any_of) or [expected.arguments.get(key)]
        wanted[pointer] = stated[0] if len(stated) == 1 else stated
        if key not in made.arguments:
            if not rule.optional and terms.mode != "subset":
                found.missing.append(pointer)
            continue
        actual[pointer] = made.arguments[key]
        allowed = rule.any_of or ((expected.arguments[key],) if key in expected.arguments else ())
        met = is_met(rule, made.arguments[key], allowed, terms.equality)
        (found.right if met else found.wrong).append(pointer)
    return found._replace(expected=wanted, made=actual)


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
    leaves = call.leaves(terms, call.name) if isinstance(call, Expected) else call.leaves(terms, {}, {})
    return call.name, frozenset(leaves.marks.items())
