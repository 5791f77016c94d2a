"""Two calls of one tool compared, argument by argument, by the terms that are set for the tool."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple

import msgspec

from gradestack import ExpectedCall, Rule, ToolCall
from gradestack.jsonio import JsonProblem, compact, loads, pointer_to
from gradestack_plugins.tool_calls.rules import UnusableRule, is_met, rule_problem
from gradestack_plugins.tool_calls.values import Equality, Leaves, equal

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
        """Prepare an expected call for comparison.

        ``rules`` and ``requestor`` say whether those of the call are heeded.

        Raises:
            UnusableRule: A rule of an argument cannot be applied.
        """
        self.index = index
        self.optional = call.optional
        self.group = call.group
        self.turn = call.turn
        self.names = call.names or (name_of(call.name),)
        self.name = self.names[0]
        arguments = arguments_of(call.arguments)
        self.arguments, self.raw = arguments, _raw_of(call)
        has_rules = bool(call.rules)
        self.compared = call.arguments is not None or self.raw is not None or has_rules
        self.rules: Mapping[str, Rule] = call.rules if rules and call.rules else {}
        for key, rule in self.rules.items():
            if problem := rule_problem(rule):
                raise UnusableRule(f"rule of {key}: {problem}")
        self.requestor = call.requestor if requestor else None
        self.leaves: dict[str, Leaves] = {}
        """Those compared with calls of a tool, worked out once."""


class Made:
    """A call that was made."""

    __slots__ = ("arguments", "failed", "index", "leaves", "name", "raw", "requestor", "turn")

    def __init__(self, index: int, call: ToolCall) -> None:
        self.index, self.name = index, name_of(call.name)
        self.requestor = call.requestor
        self.turn = call.turn
        arguments = arguments_of(call.arguments)
        self.arguments, self.raw = arguments, _raw_of(call)
        has_error = call.status is None and call.error is not None
        self.failed = has_error or call.status in {"error", "denied", "not_run"}
        self.leaves: dict[frozenset[str], Leaves] = {}
        """Those compared but for arguments a rule decides, worked out once."""


def name_of(name: Any) -> str:
    """Return a tool's name; one that is no text is shown in brackets, so that it equals no text."""
    if isinstance(name, str):
        return name
    return f"({compact(name)})"


def arguments_of(arguments: Mapping[str, Any] | None) -> Arguments:
    """Return arguments as a dict; none are an empty one."""
    if type(arguments) is dict:
        return arguments
    return dict(arguments) if isinstance(arguments, Mapping) else {}


def _raw_of(call: ToolCall | ExpectedCall) -> str | None:
    """Return the text of arguments that are no object; None for an object or no arguments."""
    return call.raw_arguments if call.arguments is None else None


def decoded(call: Expected | Made) -> Any:
    """Return a call's arguments: an object, else the JSON value of their text, else the text."""
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
"""How many leaves of two calls agree, and how many there are; (1, 1) without any."""
NOTHING: Final[Share] = (0, 1)
ALL: Final[Share] = (1, 1)


def _steps(pointer: str) -> list[str]:
    """Return the keys of a JSON pointer."""
    steps = pointer[1:].split("/")
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def _dotted(pointer_or_path: str) -> str:
    """Return a JSON pointer as keys with dots in between."""
    if pointer_or_path.startswith("/"):
        return ".".join(_steps(pointer_or_path))
    return pointer_or_path


class ToolTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the calls of one tool; ``*`` as its name stands for all other tools."""

    arguments: Mode | None = None
    """How arguments are compared; None: as those of the other tools."""
    keys: tuple[str, ...] | None = None
    """The only places compared: JSON pointers, or keys with dots in between."""
    ignore: tuple[str, ...] = ()
    """Places that are not compared: patterns of keys, with dots in between."""
    defaults: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Values of arguments that are not given.

    An argument given with this value, where it is not expected, is no error.
    """

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        has_places = self.keys is not None or bool(self.ignore)
        if self.arguments == "ignore" and (has_places or self.defaults):
            problem = "keys, ignore and defaults have no meaning beside arguments: ignore"
            raise ValueError(f"{problem}, which compares none")
        if self.keys is not None and not self.keys:
            problem = "keys names no place to compare"
            raise ValueError(f"{problem}; arguments: ignore says that, or leave it out")
        for key in map(_dotted, self.keys or ()):
            if any(fnmatchcase(key, _dotted(pattern)) for pattern in self.ignore):
                problem = f"{key} is both in keys and in ignore"
                raise ValueError(f"{problem}; leave it out of one of them")


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms on which calls of one tool are compared."""

    mode: Mode
    equality: Equality
    tool: ToolTerms = ToolTerms()

    def expected_leaves(self, call: Expected, tool: str) -> Leaves:
        """Return the leaves of an expected call that are compared with calls of a tool."""
        if tool not in call.leaves:
            call.leaves[tool] = self._leaves(call.arguments, call.rules)
        return call.leaves[tool]

    def made_leaves(self, call: Made, expected: Arguments, rules: Mapping[str, Rule]) -> Leaves:
        """Return the leaves of a call made that are compared with an expected one.

        ``expected`` and ``rules`` are the arguments and rules of that one.
        """
        if self.tool.defaults:
            stated = {*expected, *rules}
            without_defaults = self._without_defaults(call, stated)
            return self._leaves(without_defaults, rules)
        ruled_keys = frozenset(rules)
        if ruled_keys not in call.leaves:
            call.leaves[ruled_keys] = self._leaves(call.arguments, rules)
        return call.leaves[ruled_keys]

    def _without_defaults(self, call: Made, stated: set[str]) -> Arguments:
        """Return the arguments of a call, without defaults that nobody stated."""
        defaults = self.tool.defaults
        arguments = call.arguments
        keys = arguments.keys() & defaults.keys() - stated
        equal_defaults = {
            key for key in keys if equal(arguments[key], defaults[key], self.equality)
        }
        return {key: value for key, value in arguments.items() if key not in equal_defaults}

    def _leaves(self, arguments: Arguments, rules: Mapping[str, Rule]) -> Leaves:
        if rules:
            arguments = {key: value for key, value in arguments.items() if key not in rules}
        leaves = Leaves(arguments, self.equality)
        if self.tool.keys is not None or self.tool.ignore:
            leaves.select(self._is_compared)
        return leaves

    def _is_compared(self, pointer: str) -> bool:
        """Return whether a leaf is at one of ``keys``, or below, and at none that is ignored."""
        steps = _steps(pointer)
        leaf_and_parents = list(accumulate(steps, "{}.{}".format))
        keys = self.tool.keys
        ignored = map(_dotted, self.tool.ignore)
        if keys is not None and not {*map(_dotted, keys)}.intersection(leaf_and_parents):
            return False
        return not any(
            fnmatchcase(path, pattern) for pattern in ignored for path in leaf_and_parents
        )


class Diff(NamedTuple):
    """The arguments of two calls by outcome: pointers."""

    right: list[str]
    wrong: list[str]
    missing: list[str]
    unknown: list[str]
    sides: tuple[Leaves, Leaves] | None = None
    ruled: Mapping[str, tuple[Any, Any]] = {}
    """Expected and made value of each argument that a rule decides."""

    @property
    def share(self) -> Share:
        """The share that agrees."""
        right = len(self.right)
        wrong_count = len(self.wrong)
        missing_count = len(self.missing)
        unknown_count = len(self.unknown)
        leaves = right + wrong_count + missing_count + unknown_count
        return (right, leaves) if leaves else ALL

    def values(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the expected values and those that were made, by pointer."""
        expected: dict[str, Any] = {}
        made: dict[str, Any] = {}
        if self.sides is not None:
            expected, made = [leaves.values() for leaves in self.sides]
        for pointer, (wanted, actual) in self.ruled.items():
            expected[pointer], made[pointer] = wanted, actual
        return expected, made


def no_diff(missing: list[str] | None = None, unknown: list[str] | None = None) -> Diff:
    """Return the diff of a call without a counterpart."""
    return Diff([], [], missing or [], unknown or [])


def diff_of(expected: Expected, made: Made, terms: Terms) -> Diff:
    """Return the outcome of each argument of two calls of one tool."""
    has_text = expected.raw is not None or made.raw is not None
    if terms.mode == "ignore" or not expected.compared or has_text:
        return no_diff()
    left = terms.expected_leaves(expected, made.name)
    right = terms.made_leaves(made, expected.arguments, expected.rules)
    if left.marks == right.marks:
        marks = list(left.marks)
        diff = Diff(marks, [], [], [])
    else:
        diff = _compare(left, right, terms.mode)
    return _add_rules(diff, expected, made, terms) if expected.rules else diff


def _compare(left: Leaves, right: Leaves, mode: Mode) -> Diff:
    """Sort the pointers of two sides' leaves into right, wrong, missing and unknown ones."""
    diff = Diff([], [], [], [], (left, right))
    made = right.marks
    for pointer, mark in left.marks.items():
        if pointer not in made:
            diff.missing.append(pointer)
        elif mark == made[pointer]:
            diff.right.append(pointer)
        else:
            diff.wrong.append(pointer)
    if mode == "subset":
        diff.missing.clear()
    if mode != "superset" and len(diff.right) + len(diff.wrong) < len(made):
        pointers = [pointer for pointer in made if pointer not in left.marks]
        diff.unknown.extend(pointers)
    return diff


def _add_rules(diff: Diff, expected: Expected, made: Made, terms: Terms) -> Diff:
    """Return a diff with the arguments that rules decide."""
    ruled: dict[str, tuple[Any, Any]] = {}
    wanted, actual = expected.arguments, made.arguments
    for key, rule in expected.rules.items():
        if rule.ignore:
            continue
        pointer = pointer_to(key)
        any_of = list(rule.any_of)
        stated = any_of or [wanted.get(key)]
        shown = stated[0] if len(stated) == 1 else stated
        ruled[pointer] = shown, actual.get(key)
        if key not in actual:
            if not rule.optional and terms.mode != "subset":
                diff.missing.append(pointer)
            continue
        allowed = stated if rule.any_of or key in wanted else ()
        is_right = is_met(rule, actual[key], allowed, terms.equality)
        (diff.right if is_right else diff.wrong).append(pointer)
    return diff._replace(ruled=ruled)


def share_of(expected: Expected, made: Made, diff: Diff, terms: Terms) -> Share:
    """Return the share of a call's arguments that are right; both calls name the same tool."""
    if expected.requestor is not None and expected.requestor != made.requestor:
        return NOTHING
    has_text = expected.raw is not None or made.raw is not None
    if has_text and terms.mode != "ignore":
        return NOTHING
    return diff.share


def value_of(call: Expected | Made, terms: Terms) -> object:
    """Return a value that calls share which are equal by a tool's terms.

    No rules are looked at.
    """
    if terms.mode == "ignore":
        return call.name
    if call.raw is not None:
        return call.name, call.raw
    if isinstance(call, Expected):
        leaves = terms.expected_leaves(call, call.name)
    else:
        leaves = terms.made_leaves(call, {}, {})
    marks = leaves.marks.items()
    return call.name, frozenset(marks)
