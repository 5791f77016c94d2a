"""Grader ``state_diff``: assertions about what changed in the world, as agent-diff has them."""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import Grade, Grader, Item, Reason, Sample, replace, skipped
from gradestack.jsonio import as_map, compact, dumps
from gradestack_plugins.end_states.declared import (
    Row,
    Tables,
    Unusable,
    convert,
    rows_by_table,
    unusable_state,
)

Test = Callable[[Any, Any], bool]


def _text_of(value: Any) -> Any:
    """Return the JSON text of an object or a list, None where it has none; else the value."""
    if not isinstance(value, dict | list):
        return value
    with suppress(TypeError, ValueError):
        return json.dumps(value, separators=(",", ":"))
    return None


def _on_texts(test: Callable[[str, str], bool], *, fold_case: bool = False) -> Test:
    """Return a test of two texts that anything else fails."""

    def is_kept(value: Any, operand: Any) -> bool:
        if not isinstance(value, str) or not isinstance(operand, str):
            return False
        if fold_case:
            return test(value.lower(), operand.lower())
        return test(value, operand)

    return is_kept


def _inside(test: Test) -> Test:
    """Return a test that looks into the JSON text of objects and lists."""
    return lambda value, operand: test(_text_of(value), operand)


def _where_comparable(test: Callable[[Any, Any], Any]) -> Test:
    """Return a test that values without an order fail."""

    def is_kept(value: Any, operand: Any) -> bool:
        with suppress(TypeError):
            return bool(test(value, operand))
        return False

    return is_kept


def _matches_pattern(value: str, pattern: str) -> bool:
    with suppress(re.error):
        return re.search(pattern, value) is not None
    return False


def _on_members(join: Callable[[Iterable[bool]], bool]) -> Test:
    """Return a test of which wanted members a list or a text has."""
    is_member = _where_comparable(lambda values, member: member in values)

    def is_kept(values: Any, members: Any) -> bool:
        is_listed = isinstance(values, list | tuple | str)
        return is_listed and join(is_member(values, member) for member in members or ())

    return is_kept


_contains = _on_texts(lambda value, operand: operand in value)
_contains_folded = _on_texts(lambda value, operand: operand in value, fold_case=True)
_contains_not = _on_texts(lambda value, operand: operand not in value)
_is_null: Test = lambda value, operand: bool(operand) is (value is None)  # noqa: E731
_is_not_null: Test = lambda value, operand: bool(operand) is (value is not None)  # noqa: E731
_TESTS: Final[Mapping[str, Test]] = {
    "eq": operator.eq,
    **dict.fromkeys(("ne", "neq", "not_eq"), operator.ne),
    "gt": _where_comparable(operator.gt),
    "gte": _where_comparable(operator.ge),
    "lt": _where_comparable(operator.lt),
    "lte": _where_comparable(operator.le),
    "in": _where_comparable(lambda value, values: value in values),
    "not_in": _where_comparable(lambda value, values: value not in values),
    "contains": _inside(_contains),
    "not_contains": _inside(_contains_not),
    "i_contains": _inside(_contains_folded),
    "starts_with": _on_texts(str.startswith),
    "ends_with": _on_texts(str.endswith),
    "i_starts_with": _on_texts(str.startswith, fold_case=True),
    "i_ends_with": _on_texts(str.endswith, fold_case=True),
    "regex": _on_texts(_matches_pattern),
    "has_any": _on_members(any),
    "has_all": _on_members(all),
    "exists": _is_not_null,
    "is_null": _is_null,
    "not_null": _is_not_null,
}
_JOINED: Final = {"and": all, "or": any}


def matches(value: Any, predicate: Any) -> bool:
    """Return whether a value keeps a predicate.

    A predicate is ``{operator: operand}``, of which all have to hold, or a value to equal.
    """
    if not isinstance(predicate, Mapping):
        return bool(value == predicate)
    return all(_holds(value, name, operand) for name, operand in predicate.items())


def _holds(value: Any, name: str, operand: Any) -> bool:
    """Test a value with the operator of a predicate; some join a list of predicates.

    Raises:
        Unusable: The operator is unknown, or its operand no list of predicates.
    """
    if name in _TESTS:
        return _TESTS[name](value, operand)
    if name not in _JOINED:
        known = ", ".join([*_TESTS, *_JOINED])
        raise Unusable(f"{name}: unknown operator; there are {known}")
    if not isinstance(operand, list):
        raise Unusable(f"{name}: expected a list of predicates, found {compact(operand)[:60]}")
    return _JOINED[name](matches(value, predicate) for predicate in operand)


def value_at(row: Row, path: str) -> Any:
    """Return the value at a dotted path of a row, None where nothing is there."""
    value: Any = row
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def row_fits(row: Row, where: Any) -> bool:
    """Return whether a row keeps all predicates of a ``where``.

    ``and`` and ``or`` take lists of such conditions.
    """
    if where is None:
        return True
    if not isinstance(where, Mapping):
        raise Unusable(f"where: expected predicates by field, found {compact(where)[:60]}")
    return all(_field_fits(row, field, predicate) for field, predicate in where.items())


def _field_fits(row: Row, field: str, predicate: Any) -> bool:
    if field in _JOINED and isinstance(predicate, list):
        return _JOINED[field](row_fits(row, condition) for condition in predicate)
    return matches(value_at(row, field), predicate)


TABLE = "__table__"
Change = tuple[Row, Row]
"""A row before and after."""


class Difference(msgspec.Struct, frozen=True):
    """The rows that changed, by table."""

    added: Mapping[str, list[Row]]
    removed: Mapping[str, list[Row]]
    changed: Mapping[str, list[Change]]


Rows = list[dict[str, Any]] | None


class _State(msgspec.Struct, frozen=True):
    """A recorded end state: what changed, or tables before and after."""

    inserts: Rows = None
    updates: Rows = None
    deletes: Rows = None
    before: Tables | None = None
    after: Tables | None = None


def difference_of(state: Any, key: str) -> Difference:
    """Return the difference that a recorded state holds.

    Args:
        state: The state as it was recorded.
        key: The field that tells rows apart, where tables are recorded before and after.

    Raises:
        Unusable: It is of neither form.
    """
    recorded = convert(state, _State, "state")
    lists = recorded.inserts, recorded.deletes, recorded.updates
    if any(rows is not None for rows in lists):
        added, removed, updated = map(_by_table, lists)
        changed = {table: list(map(_change_of, rows)) for table, rows in updated.items()}
        return Difference(added, removed, changed)
    if recorded.before is None or recorded.after is None:
        forms = "as inserts, updates and deletes nor as before and after"
        raise Unusable(f"the state is neither recorded {forms}")
    before = rows_by_table(recorded.before)
    return _compare_tables(before, rows_by_table(recorded.after), key)


def _change_of(row: Row) -> Change:
    before = row.get("before")
    return as_map(before), as_map(row.get("after"))


def _by_table(rows: Rows) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for row in rows or ():
        table = row.get(TABLE)
        if not isinstance(table, str):
            raise Unusable(f"a change names no {TABLE}: {compact(row)[:60]}")
        tables.setdefault(table, []).append(row)
    return tables


def _compare_tables(
    before: Mapping[str, list[Row]], after: Mapping[str, list[Row]], key: str
) -> Difference:
    """Compare the rows of all tables before and after a run, matched by their key column."""
    added: dict[str, list[Row]] = {}
    removed: dict[str, list[Row]] = {}
    changed: dict[str, list[Change]] = {}
    for table in dict.fromkeys((*before, *after)):
        rows = before.get(table, ())
        old = dict(_keyed(rows, key))
        new = dict(_keyed(after.get(table, ()), key))
        pairs = [(row, new[mark]) for mark, row in old.items() if mark in new]
        added[table] = [row for mark, row in new.items() if mark not in old]
        removed[table] = [row for mark, row in old.items() if mark not in new]
        changed[table] = [(row, other) for row, other in pairs if row != other]
    return Difference(added, removed, changed)


def _keyed(rows: Iterable[Row], key: str) -> Iterator[tuple[str, Row]]:
    """Yield each row with what tells it apart: its key, else all of it; and its number."""
    numbers = Counter[str]()
    for row in rows:
        mark = dumps(row if row.get(key) is None else [row[key]])
        numbers[mark] += 1
        yield f"{mark} {numbers[mark]}", row


class Count(msgspec.Struct, frozen=True):
    """The expected number of rows, both ends included."""

    min: float | None = None
    max: float | None = None


Fields = list[Any] | None


class Assertion(msgspec.Struct, frozen=True):
    """An assertion of agent-diff about the rows of a table."""

    diff_type: Literal["added", "removed", "changed", "unchanged"]
    entity: str
    where: Any = None
    expected_count: int | Count | None = None
    expected_changes: dict[str, Any] | None = None
    strict: bool | None = None
    ignore: Fields = None
    ignore_fields: Fields = None


class Policy(msgspec.Struct, frozen=True):
    """Defaults of all assertions of a task."""

    strict: bool
    ignore_fields: Mapping[str, Sequence[Any]]
    """``global`` and tables -> fields whose change does not count."""


def find_problems(assertion: Assertion, difference: Difference, policy: Policy) -> list[str]:
    """Return why an assertion is not kept; nothing where it is."""
    table = assertion.entity
    where = assertion.where
    count = assertion.expected_count
    kind = assertion.diff_type
    added = difference.added.get(table, [])
    removed = difference.removed.get(table, [])
    changes = difference.changed.get(table, [])
    if kind in {"added", "removed"}:
        rows = added if kind == "added" else removed
        total = sum(row_fits(row, where) for row in rows)
        return _check_count(count, total)
    changes = [
        change for change in changes if row_fits(change[1], where) or row_fits(change[0], where)
    ]
    if kind == "unchanged":
        moved = sum(row_fits(row, where) for row in [*added, *removed])
        number = moved + len(changes)
        return _check_count(count or 0, number)
    return _check_changes(assertion, changes, policy)


def _check_changes(assertion: Assertion, changes: Iterable[Change], policy: Policy) -> list[str]:
    """List the problems of changed rows: unexpected fields, or a wrong number of expected ones."""
    expected = assertion.expected_changes or {}
    if assertion.strict is None:
        strict = policy.strict
    else:
        strict = assertion.strict
    ignored = set(assertion.ignore or assertion.ignore_fields or ())
    for name in ("global", assertion.entity):
        ignored.update(policy.ignore_fields.get(name, ()))
    problems, number = [], 0
    for before, after in changes:
        names = {*before, *after} - ignored
        fields = {name for name in names if before.get(name) != after.get(name)}
        others = fields - expected.keys()
        if strict and others:
            problems.append(f"other fields changed: {', '.join(sorted(others))}")
        elif fields.issuperset(expected):
            number += all(
                _changed_as_expected(before.get(name), after.get(name), ends)
                for name, ends in expected.items()
            )
    return [*problems, *_check_count(assertion.expected_count, number)]


def _changed_as_expected(before: Any, after: Any, expected: Any) -> bool:
    ends = expected if isinstance(expected, Mapping) else {"to": expected}
    if "from" in ends and not matches(before, ends["from"]):
        return False
    return "to" not in ends or matches(after, ends["to"])


def _check_count(expected: int | Count | None, number: int) -> list[str]:
    """Return one message where a number of rows is not the expected one, else none."""
    if expected is None:
        return [] if number else ["expected at least 1 row, found 0"]
    if isinstance(expected, int):
        if number == expected:
            return []
        return [f"expected {expected} row(s), found {number}"]
    low, high = expected.min, expected.max
    if (low is None or number >= low) and (high is None or number <= high):
        return []
    if low is None:
        least = ""
    else:
        least = f"{low:g}"
    if high is None:
        most = ""
    else:
        most = f"{high:g}"
    return [f"expected {least} to {most} row(s), found {number}"]


class _Reference(msgspec.Struct, frozen=True):
    """A reference: the assertions of a task, and what holds for all of them."""

    assertions: list[Assertion] | None = None
    strict: bool | None = None
    ignore_fields: dict[str, list[Any]] | None = None


@attrs.frozen(kw_only=True)
class StateDiff(Grader):
    """Share of the assertions that a run's end state keeps, in [0, 1].

    ``passed`` when it keeps all.

        score = kept / assertions

    The assertions are those of agent-diff, in the reference (``expected.state``: ``assertions``,
    ``strict``, ``ignore_fields``) or in the options. ``diff_type`` names ``added``, ``removed``,
    ``changed`` or ``unchanged`` rows of a table (``entity``) that keep ``where``. There must be as
    many as ``expected_count`` says, by default at least one; of ``unchanged`` none. A changed row's
    ``expected_changes`` say from what to what; with ``strict`` nothing else of it may have changed,
    but for ignored fields.

    The recorded state is what changed (``inserts``, ``updates`` with ``before`` and ``after``,
    ``deletes``, each with its ``__table__``), or tables ``before`` and ``after``, whose rows are
    told by ``key``. A state or an assertion that is of neither form fails the grade. Skipped
    without a recorded state, and without assertions.

    Attributes:
        assertions: For samples whose reference has none.
        strict: Whether other fields of a changed row may not change, where the reference does not
            say.
        ignore_fields: ``global`` and tables -> fields whose change does not count, where the
            reference does not say.
        key: The field that rows are told by.
    """

    needs = frozenset({"state"})
    metrics = ("mean",)

    assertions: tuple[dict[str, Any], ...] = ()
    strict: bool = True
    ignore_fields: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    key: str = "id"

    @property
    @override
    def compares(self) -> frozenset[str]:  # type: ignore[override]  # of these options, not of all
        return frozenset(() if self.assertions else {"state"})

    @override
    def grade(self, sample: Sample) -> Grade:
        if sample.state is None:
            return skipped("state_not_recorded", "the end state is not recorded")
        try:
            state = as_map(sample.expected.state)
            reference = convert(state, _Reference, "expected.state")
            assertions = reference.assertions
            if assertions is None and self.assertions:
                assertions = convert([*self.assertions], list[Assertion], "assertions")
            if assertions is None:
                missing = "neither the reference nor the options assert anything of the state"
                return skipped("no_assertions", missing)
            difference = difference_of(sample.state, self.key)
            return _grade_of(assertions, difference, self._policy_of(reference))
        except (Unusable, RecursionError) as problem:
            return unusable_state(problem)

    def _policy_of(self, reference: _Reference) -> Policy:
        strict, ignored = reference.strict, reference.ignore_fields
        ignore_fields = self.ignore_fields if ignored is None else ignored
        return Policy(
            strict=self.strict if strict is None else strict,
            ignore_fields=ignore_fields,
        )


def _grade_of(assertions: list[Assertion], difference: Difference, policy: Policy) -> Grade:
    """Grade a difference of states by the share of assertions that hold."""
    items = list[Item]()
    reasons = list[Reason]()
    for number, assertion in enumerate(assertions):
        problems = find_problems(assertion, difference, policy)
        name = f"{number} {assertion.diff_type} {assertion.entity}"
        items.append(Item(id=name, score=float(not problems)))
        pointer = f"/assertions/{number}"
        about = Reason(code="assertion", pointer=pointer, subject=assertion.entity)
        reasons += [replace(about, message=problem) for problem in problems]
    passed = sum(item.score == 1.0 for item in items)
    score = passed / len(items) if items else 1.0
    counts = {"assertions": len(items), "kept": passed}
    return Grade(
        score=score,
        passed=passed == len(items),
        counts=counts,
        items=tuple(items),
        reasons=tuple(reasons),
    )
