"""Two calls of one tool compared, argument by argument, by the terms that are set for the tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, NamedTuple, NoReturn

import attrs

from gradestack import ExpectedCall, Rule, ToolCall
from gradestack.jsonio import JsonProblem, as_number, compact, is_number, loads, pointer_to

Equality = Literal["json", "python", "text"]
SCALARS: Final = frozenset({str, int, float, bool, type(None)})
DEEPEST: Final = 1000
"""Levels of nesting; pointers get as long as arguments are deep."""


class Leaves:
    """The leaves of arguments, by pointer and in order."""

    __slots__ = ("_arguments", "marks")

    def __init__(self, arguments: Mapping[str, Any], equality: Equality) -> None:
        mark = _MARKS[equality]
        self._arguments = arguments
        self.marks: dict[str, Any] = {}
        """What is equal exactly for equal leaves; an item of a list is no member of an object."""
        for key, value in arguments.items():
            pointer = pointer_to(key)
            if type(value) in SCALARS:
                self.marks[pointer] = value if type(value) is str else mark(value)
                continue
            for inner, place, each in _walk(pointer, value):
                self.marks[inner] = mark(each) if place == inner else (place, mark(each))

    def values(self) -> dict[str, Any]:
        """Return what stands at each pointer."""
        return {
            pointer: each
            for key, value in self._arguments.items()
            for pointer, _, each in _walk(pointer_to(key), value)
        }


def _walk(pointer: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield pointer, place and value of each leaf.

    A place tells items of lists from members of objects.
    """
    waiting = [(pointer, pointer, value, 1)]
    while waiting:
        pointer, place, value, level = waiting.pop()
        if type(value) in SCALARS or not value or not isinstance(value, list | tuple | Mapping):
            yield pointer, place, value
            continue
        if level >= DEEPEST:
            raise RecursionError("nested too deeply")
        if isinstance(value, Mapping):
            words = [(pointer_to(key), each) for key, each in value.items()]
            inner = [(pointer + word, place + word, each, level + 1) for word, each in words]
        else:  # no escaped key has "~["
            inner = [
                (f"{pointer}/{at}", f"{place}~[{at}", each, level + 1)
                for at, each in enumerate(value)
            ]
        inner.reverse()
        waiting += inner


def _json_mark(value: Any) -> Any:
    """Numbers by value, true and false only equal to themselves, NaN to nothing."""
    return ("boolean", value) if value is True or value is False else _python_mark(value)


def _python_mark(value: Any) -> Any:
    """True = 1 = 1.0, NaN equal to nothing."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value == value else object()  # noqa: PLR0124 - NaN
    if isinstance(value, Mapping):
        return ("empty", "object")
    return ("empty", "list") if isinstance(value, list | tuple) else ("odd", repr(value))


def _text_mark(value: Any) -> Any:
    if isinstance(value, Mapping):
        return "{}"
    return "[]" if isinstance(value, list | tuple) else str(value)


_MARKS: Mapping[Equality, Callable[[Any], Any]] = {
    "json": _json_mark,
    "python": _python_mark,
    "text": _text_mark,
}


def mark_of(value: Any, equality: Equality) -> frozenset[tuple[str, Any]]:
    """Return what is equal for equal JSON values, and can be in a set."""
    return frozenset(Leaves({"": value}, equality).marks.items())


def equal(left: Any, right: Any, equality: Equality) -> bool:
    """Return whether two JSON values are equal."""
    if equality == "text":
        return str(left) == str(right)
    if equality == "json" and (isinstance(left, bool) or isinstance(right, bool)):
        return left is right
    if type(left) in SCALARS or type(right) in SCALARS:
        return bool(left == right)
    return mark_of(left, equality) == mark_of(right, equality)


_REFERENCES = ('"$ref"', '"$dynamicRef"', '"$recursiveRef"')


class UnusableRule(ValueError):
    """A rule that says nothing, or two things."""


def _problem(rule: Rule) -> str:  # noqa: C901
    if rule.ignore and (rule.any_of or rule.compare != "exact" or rule.tolerance is not None):
        return "ignore takes any value, so it goes with no other condition"
    if rule.tolerance is not None and rule.compare not in {"exact", "number"}:
        return f"tolerance is of numbers, and compare is {rule.compare}"
    if rule.tolerance is not None and not rule.tolerance >= 0:
        return f"tolerance must be a number of at least 0, got {rule.tolerance}"
    if rule.compare in {"regex", "schema"} and not rule.any_of:
        return f"compare {rule.compare} needs any_of, the list of them"
    for schema in rule.any_of if rule.compare == "schema" else ():
        if any(word in compact(schema) for word in _REFERENCES):  # a check could then take any time
            return "references in a schema are not followed; write out what they stand for"
        try:
            _validator(schema)
        except (ValueError, RecursionError) as error:
            return f"{compact(schema)[:60]} is no schema: {str(error).partition(chr(10))[0]}"
    for pattern in rule.any_of if rule.compare == "regex" else ():
        if not isinstance(pattern, str):
            return f"a pattern is a text, got {compact(pattern)[:60]}"
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return f"{pattern[:60]!r} is no pattern: {error}"
    return ""


def is_met(rule: Rule, value: Any, allowed: Sequence[Any], equality: Equality) -> bool:
    """Return whether a value is one of those allowed, as the rule compares.

    Where none are named, any is.
    """
    return (
        rule.ignore or not allowed or any(_agrees(rule, value, each, equality) for each in allowed)
    )


def _agrees(rule: Rule, value: Any, wanted: Any, equality: Equality) -> bool:
    compare = rule.compare
    if compare == "text":
        return equal(value, wanted, "text")
    if compare == "regex":
        return (
            isinstance(value, str)
            and isinstance(wanted, str)
            and re.search(wanted, value) is not None
        )
    if compare == "schema":
        return _satisfies(value, wanted)
    if compare == "set" and isinstance(value, list) and isinstance(wanted, list):
        return {mark_of(each, equality) for each in value} == {
            mark_of(each, equality) for each in wanted
        }
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


def _validator(schema: Any) -> Any:
    """Return what checks values by a schema: it fetches nothing, and formats are annotations."""
    import jsonschema_rs  # noqa: PLC0415 - of the rules, only those with a schema need it

    if not isinstance(schema, dict | bool):
        raise ValueError("expected an object or a boolean")
    return jsonschema_rs.validator_for(schema, validate_formats=False, retriever=_refuse)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


def _satisfies(value: Any, schema: Any) -> bool:
    """Return whether a value is as a schema says.

    What the library cannot read, such as half a character, is not.
    """
    try:
        return bool(_validator(schema).is_valid(value))
    except (ValueError, RecursionError):
        return False


Arguments = dict[str, Any]


class Expected:
    """An expected call."""

    __slots__ = (
        *("arguments", "compared", "group", "index", "leaves", "name", "names"),
        *("optional", "raw", "requestor", "rules", "turn"),
    )

    def __init__(
        self, index: int, call: ExpectedCall, *, rules: bool = False, requestor: bool = False
    ) -> None:
        self.index, self.optional, self.group, self.turn = (
            index,
            call.optional,
            call.group,
            call.turn,
        )
        self.names = call.names or (name_of(call.name),)
        self.name = self.names[0]
        self.arguments, self.raw = arguments_of(call.arguments), _raw_of(call)
        self.compared = call.arguments is not None or self.raw is not None or bool(call.rules)
        self.rules: Mapping[str, Rule] = call.rules if rules and call.rules else {}
        for key, rule in self.rules.items():
            if problem := _problem(rule):
                raise UnusableRule(f"rule of {key}: {problem}")
        self.requestor = call.requestor if requestor else None
        self.leaves: dict[str, Leaves] = {}
        """Those compared with calls of a tool, worked out once."""


class Made:
    """A call that was made."""

    __slots__ = ("arguments", "failed", "index", "leaves", "name", "raw", "requestor", "turn")

    def __init__(self, index: int, call: ToolCall) -> None:
        self.index, self.name, self.requestor, self.turn = (
            index,
            name_of(call.name),
            call.requestor,
            call.turn,
        )
        self.arguments, self.raw = arguments_of(call.arguments), _raw_of(call)
        self.failed = call.status in {"error", "denied", "not_run"} or (
            call.status is None and call.error is not None
        )
        self.leaves: dict[frozenset[str], Leaves] = {}
        """Those compared but for arguments a rule decides, worked out once."""


def name_of(name: Any) -> str:
    """Return a tool's name; what is no text is shown in brackets, so that it equals no text."""
    return name if isinstance(name, str) else f"({compact(name)})"


def arguments_of(arguments: Mapping[str, Any] | None) -> Arguments:
    """Return arguments as a dict; none are an empty one."""
    if type(arguments) is dict:
        return arguments
    return dict(arguments) if arguments is not None and isinstance(arguments, Mapping) else {}


def _raw_of(call: ToolCall | ExpectedCall) -> str | None:
    """Return the text of arguments that are no object, None where they are one or there
    are none.
    """
    return call.raw_arguments if call.arguments is None else None


def decoded(call: Expected | Made) -> Any:
    """Return what a call's arguments are.

    An object, else the JSON value of their text, else the text itself.
    """
    if call.raw is None:
        return call.arguments
    try:
        return loads(call.raw)
    except JsonProblem:
        return call.raw.strip()


def is_json(text: str) -> bool:
    """Return whether a text can be decoded."""
    try:
        loads(text)
    except JsonProblem:
        return False
    return True


Mode = Literal["ignore", "exact", "subset", "superset", "rules"]
Share = tuple[int, int]
"""Of the leaves of both calls, those that agree, and how many there are.

(1, 1) where nothing is to be compared.
"""
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
    """What an argument that is not given stands for.

    Given as this value, where it is not expected, it is no error.
    """

    def __attrs_post_init__(self) -> None:
        if self.arguments == "ignore" and (self.keys is not None or self.ignore or self.defaults):
            raise ValueError(
                "keys, ignore and defaults have no meaning beside arguments: ignore, which "
                "compares none"
            )
        if self.keys is None:
            return
        if not self.keys:
            raise ValueError(
                "keys names no place to compare; arguments: ignore says that, or leave it out"
            )
        for key in map(_dotted, self.keys):
            if any(fnmatchcase(key, _dotted(pattern)) for pattern in self.ignore):
                raise ValueError(
                    f"{key} stands both in keys and in ignore; leave it out of one of them"
                )


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
        """Return the leaves of a call that are compared with an expected one of these arguments and
        rules.
        """
        if defaults := self.tool.defaults:
            stated = {*expected, *rules, *(call.arguments.keys() - defaults.keys())}
            arguments = {
                key: value
                for key, value in call.arguments.items()
                if key in stated or not equal(value, defaults[key], self.equality)
            }
            return self._leaves(arguments, rules)
        without = frozenset(rules)
        if without not in call.leaves:
            call.leaves[without] = self._leaves(call.arguments, rules)
        return call.leaves[without]

    def _leaves(self, arguments: Arguments, rules: Mapping[str, Rule]) -> Leaves:
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


def _compared(
    value: Any, path: tuple[str, ...], keys: Sequence[str] | None, ignored: Sequence[str]
) -> Any:
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
                each
                if not ignored or not isinstance(each, Mapping | list)
                else _compared(each, place, None, ignored)
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
        expected, made = (
            ({}, {}) if self.sides is None else (self.sides[0].values(), self.sides[1].values())
        )
        for pointer, (wanted, actual) in self.ruled.items():
            expected[pointer], made[pointer] = wanted, actual
        return expected, made


def diff_of(expected: Expected, made: Made, terms: Terms) -> Diff:
    """Return how each argument of two calls of one tool fares."""
    if (
        terms.mode == "ignore"
        or not expected.compared
        or expected.raw is not None
        or made.raw is not None
    ):
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
    """Return what is the same for calls that are equal by a tool's terms.

    No rules are looked at.
    """
    if terms.mode == "ignore":
        return call.name
    if call.raw is not None:
        return call.name, call.raw
    leaves = (
        terms.expected_leaves(call, call.name)
        if isinstance(call, Expected)
        else terms.made_leaves(call, {}, {})
    )
    return call.name, frozenset(leaves.marks.items())
