"""Two calls compared: how much of their arguments agrees, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack import ExpectedCall, Rule, ToolCall
from gradestack_plugins.tool_calls.calls import Arguments, arguments_of, name_of, raw_of
from gradestack_plugins.tool_calls.leaves import SCALARS, Leaves, flat_pointers, walk
from gradestack_plugins.tool_calls.rules import is_met, rules_of
from gradestack_plugins.tool_calls.terms import Terms, pointer_to

Share = tuple[int, int]
"""Of the leaves of both calls, those that agree, and how many there are; (1, 1) where nothing is to be compared."""
NOTHING: Share = (0, 1)
ALL: Share = (1, 1)
_NO_RULES: Mapping[str, Rule] = {}
_TEXTS = frozenset({str})
_SHORT = 16
"""Arguments of which pointers are kept for the next call that has the same."""


class Wanted:
    """An expected call, with what is worked out of it once."""

    __slots__ = (
        "_leaves",
        "arguments",
        "compared",
        "group",
        "index",
        "name",
        "names",
        "optional",
        "raw",
        "requestor",
        "rules",
        "turn",
    )
    name: str
    """Its tool, or the first of several."""

    def __init__(self, index: int, call: ExpectedCall, *, rules: bool, requestor: bool) -> None:
        self.index, self.optional, self.group, self.turn = index, call.optional, call.group, call.turn
        self.names = call.names or (name_of(call.name),)
        self.name = self.names[0]
        self.arguments = arguments_of(call.arguments)
        self.raw = raw_of(call)
        self.compared = call.arguments is not None or self.raw is not None or bool(call.rules)
        self.rules = rules_of(call.rules) if rules and call.rules else _NO_RULES
        self.requestor = call.requestor if requestor else None
        self._leaves: dict[str, Leaves] = {}

    def leaves(self, terms: Terms, name: str) -> Leaves:
        """Return the leaves that are simply compared with a call of a tool."""
        found = self._leaves.get(name)
        if found is None:
            found = self._leaves[name] = terms.leaves(self.arguments, frozenset(self.rules))
        return found


class Given:
    """A call that was made, with what is worked out of it once."""

    __slots__ = ("_leaves", "arguments", "index", "name", "raw", "requestor", "turn")

    def __init__(self, index: int, call: ToolCall) -> None:
        self.index, self.name, self.requestor, self.turn = index, name_of(call.name), call.requestor, call.turn
        self.arguments, self.raw = arguments_of(call.arguments), raw_of(call)
        self._leaves: dict[frozenset[str], Leaves] = {}

    def leaves(self, terms: Terms, wanted: Wanted | None = None) -> Leaves:
        """Return the leaves that are simply compared, with an expected call or with none."""
        rules = wanted.rules if wanted is not None else _NO_RULES
        if terms.tool.defaults:
            expected = wanted.arguments if wanted is not None else {}
            return terms.leaves(terms.given(self.arguments, expected, rules), frozenset(rules))
        without = frozenset(rules)
        found = self._leaves.get(without)
        if found is None:
            found = self._leaves[without] = terms.leaves(self.arguments, without)
        return found


def settled(wanted: Wanted, given: Given, terms: Terms) -> Share | None:
    """Return how much of two calls of one tool agrees, where that does not depend on their arguments; else None."""
    if wanted.requestor is not None and wanted.requestor != given.requestor:
        return NOTHING
    if terms.mode == "ignore":
        return ALL
    if wanted.raw is not None or given.raw is not None:
        return NOTHING
    return None if wanted.compared else ALL


def share(wanted: Wanted, given: Given, terms: Terms) -> Share:
    """Return how much of two calls of one tool agrees, of which many are compared with many."""
    found = settled(wanted, given, terms)
    if found is not None:
        return found
    mode = terms.mode
    left, right = wanted.leaves(terms, given.name), given.leaves(terms, wanted)
    agree = len(left.equals & right.equals)
    if mode == "superset":
        of = len(left.values)
    elif mode == "subset":
        of = len(right.values)
    else:
        of = len(left.values)
        if left.values.keys() != right.values.keys():
            of = len(left.values.keys() | right.values.keys())
    for key, rule in wanted.rules.items():
        if rule.ignore or (key not in given.arguments and (rule.optional or mode == "subset")):
            continue
        of += 1
        agree += key in given.arguments and _met(wanted, given, key, rule, terms)
    return (agree, of) if of else ALL


def _met(wanted: Wanted, given: Given, key: str, rule: Rule, terms: Terms) -> bool:
    allowed = rule.any_of or ((wanted.arguments[key],) if key in wanted.arguments else ())
    return is_met(rule, given.arguments[key], allowed, terms.equality)


def surely_equal(wanted: Wanted, given: Given, terms: Terms) -> bool:
    """Return whether a look is enough to tell that two calls of one tool agree; if not, they may still."""
    if wanted.rules or wanted.requestor is not None or not terms.whole or not wanted.compared:
        return False
    if wanted.raw is not None or given.raw is not None:
        return False
    if terms.equality == "text":  # where 0.0 is not -0.0
        return repr(wanted.arguments) == repr(given.arguments)
    return wanted.arguments == given.arguments and alike(wanted.arguments, given.arguments)


def alike(left: Arguments, right: Arguments) -> bool:
    """Return whether equal arguments are of the same types: what true, 1 and 1.0 are to each other is not told."""
    for key, value in left.items():  # noqa: SIM110 - a generator takes twice as long
        if type(value) is not str and not same_kind(value, right[key]):
            return False
    return True


def same_kind(value: Any, other: Any) -> bool:
    """Return whether equal values are of the same types, and not NaN, of which one object equals itself."""
    kind = type(value)
    if kind is not type(other) or (kind is float and value != other):
        return False
    if kind in SCALARS:
        return True
    if kind is list and SCALARS.issuperset(map(type, value)):
        return _TEXTS.issuperset(map(type, value)) or all(map(same_kind, value, other))
    if kind is dict and are_scalars(value):
        return alike(value, other)
    return "nan" not in (text := repr(value)) and text == repr(other)


def value_of(call: Wanted | Given, terms: Terms) -> object:
    """Return what is the same for calls that are equal by a tool's terms; no rules are looked at."""
    if terms.mode == "ignore":
        return call.name
    if call.raw is not None:
        return (call.name, call.raw)
    leaves = call.leaves(terms, call.name) if isinstance(call, Wanted) else call.leaves(terms)
    return (call.name, frozenset(leaves.equals))


Differences = tuple[list[str], list[tuple[str, Any, Any]], list[tuple[str, Any]], list[tuple[str, Any]]]
"""Pointers that are right; wrong ones with both values; missing ones, and unknown ones, with theirs."""


def share_of(found: Differences) -> Share:
    """Return how much of two calls agrees, whose differences are known: what :func:`share` returns of them."""
    right, wrong, missing, unknown = found
    of = len(right) + len(wrong) + len(missing) + len(unknown)
    return (len(right), of) if of else ALL


def differences(wanted: Wanted, given: Given, terms: Terms) -> Differences:
    """Return how each argument of two calls of one tool fares."""
    if terms.mode == "ignore" or not wanted.compared or wanted.raw is not None or given.raw is not None:
        return [], [], [], []
    if not wanted.rules and terms.whole:
        return compared(wanted.arguments, given.arguments, terms)
    left, right = wanted.leaves(terms, given.name), given.leaves(terms, wanted)
    both = left.equals & right.equals
    same = len(both) == len(left.values) == len(right.values)
    if same and not wanted.rules:
        return list(left.values), [], [], []
    fine, wrong, missing, unknown = _plain_differences(left, right, terms)
    for key, rule in wanted.rules.items():
        pointer = pointer_to(key)
        allowed = list(rule.any_of) or [wanted.arguments.get(key)]
        said: Any = allowed[0] if len(allowed) == 1 else allowed
        if rule.ignore:
            continue
        if key not in given.arguments:
            if not rule.optional and terms.mode != "subset":
                missing.append((pointer, said))
        elif _met(wanted, given, key, rule, terms):
            fine.append(pointer)
        else:
            wrong.append((pointer, said, given.arguments[key]))
    return fine, wrong, missing, unknown


def compared(left: Arguments, right: Arguments, terms: Terms) -> Differences:
    """Return how each of some arguments fares, nothing left out of them."""
    if terms.equality == "text":
        return _plain_differences(Leaves(left, "text"), Leaves(right, "text"), terms)
    if left == right and alike(left, right):
        return pointers(left), [], [], []
    json = terms.equality == "json"
    fine: list[str] = []
    wrong: list[tuple[str, Any, Any]] = []
    missing: list[tuple[str, Any]] = []
    within: dict[str, list[tuple[str, Any]]] = {}
    """What is unknown within arguments that both have."""
    for pointer, (key, value) in zip(_pointers(left), left.items(), strict=True):
        kind = type(value)
        if key not in right:
            missing += [(pointer, value)] if kind in SCALARS else _leaves(key, value)
        elif kind in SCALARS and type(other := right[key]) in SCALARS:
            if value == other and (kind is str or not json or (kind is bool) is (type(other) is bool)):
                fine.append(pointer)
            else:
                wrong.append((pointer, value, other))
        elif value == (other := right[key]) and same_kind(value, other):
            fine += inside(pointer, value)
        else:
            apart = _plain_differences(
                Leaves({key: value}, terms.equality), Leaves({key: other}, terms.equality), terms
            )
            fine += apart[0]
            wrong += apart[1]
            missing += apart[2]
            within[key] = apart[3]
    known = terms.mode == "superset" or (not within and right.keys() <= left.keys())
    unknown = [] if known else _unknown(left, right, within)
    return fine, wrong, [] if terms.mode == "subset" else missing, unknown


def _unknown(left: Arguments, right: Arguments, within: Mapping[str, list[tuple[str, Any]]]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in right.items():
        if key in left:
            found += within.get(key, ())
        else:
            found += [(pointer_to(key), value)] if type(value) in SCALARS else _leaves(key, value)
    return found


def _leaves(key: str, value: Any) -> list[tuple[str, Any]]:
    return [(pointer, each) for pointer, _, each in walk({key: value})]


def _pointers(arguments: Arguments) -> list[str]:
    """Return the pointer of every argument; not to be changed."""
    keys = tuple(arguments)
    try:
        return flat_pointers(keys) if len(keys) <= _SHORT else list(map(pointer_to, keys))
    except TypeError:  # a key that is no text
        return list(map(pointer_to, keys))


def are_scalars(arguments: Arguments) -> bool:
    """Return whether nothing is nested in arguments."""
    return SCALARS.issuperset(map(type, arguments.values()))


def _plain_differences(left: Leaves, right: Leaves, terms: Terms) -> Differences:
    fine: list[str] = []
    wrong: list[tuple[str, Any, Any]] = []
    missing: list[tuple[str, Any]] = []
    for pointer, value in left.values.items():
        if pointer not in right.values:
            if terms.mode != "subset":
                missing.append((pointer, value))
        elif left.marks[pointer] in right.equals:
            fine.append(pointer)
        else:
            wrong.append((pointer, value, right.values[pointer]))
    unknown = [(pointer, value) for pointer, value in right.values.items() if pointer not in left.values]
    return fine, wrong, missing, [] if terms.mode == "superset" else unknown


def pointers(arguments: Arguments) -> list[str]:
    """Return the pointer of every leaf."""
    places = _pointers(arguments)
    if are_scalars(arguments):
        return places
    found: list[str] = []
    for pointer, value in zip(places, arguments.values(), strict=True):
        if type(value) in SCALARS:
            found.append(pointer)
        else:
            found += inside(pointer, value)
    return found


def inside(pointer: str, value: Any) -> list[str]:
    """Return the pointer of every leaf of an argument."""
    kind = type(value)
    if kind in SCALARS or not value:
        return [pointer]
    if kind is list and SCALARS.issuperset(map(type, value)):
        return [f"{pointer}/{index}" for index in range(len(value))]
    if kind is dict and are_scalars(value):
        return [pointer + inner for inner in map(pointer_to, value)]
    return [pointer + below[1:] for below, _, _ in walk({"": value})]
