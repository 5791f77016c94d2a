"""Grader ``state_diff``: assertions about what changed in the world, as agent-diff has them."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, NamedTuple

import attrs
from typing_extensions import override

from gradestack import Fault, Grade, Grader, Item, Reason, Sample, failed, skipped
from gradestack.jsonio import as_list, as_map, compact, dumps

Row = Mapping[str, Any]
Test = Callable[[Any, Any], bool]


class Unusable(ValueError):
    """An assertion or a state that is not of its form; the message says where and what."""


def _text(value: Any) -> Any:
    if not isinstance(value, dict | list):
        return value
    try:
        return json.dumps(value, separators=(",", ":"))
    except (TypeError, ValueError):
        return None


def _of_texts(
    test: Callable[[str, str], bool], *, folded: bool = False, inside: bool = False
) -> Test:
    def tested(value: Any, wanted: Any) -> bool:
        value = _text(value) if inside else value
        if not isinstance(value, str) or not isinstance(wanted, str):
            return False
        return test(value.lower(), wanted.lower()) if folded else test(value, wanted)

    return tested


def _compared(test: Callable[[Any, Any], Any]) -> Test:
    def tested(value: Any, wanted: Any) -> bool:
        with suppress(TypeError):  # values that have no order
            return bool(test(value, wanted))
        return False

    return tested


def _regex(value: str, wanted: str) -> bool:
    with suppress(re.error):
        return re.search(wanted, value) is not None
    return False


def _held(value: Any, wanted: Any) -> Iterator[bool]:
    return (_compared(lambda each, within: each in within)(each, value) for each in wanted or ())


_TESTS: Final[Mapping[str, Test]] = {
    "eq": lambda value, wanted: bool(value == wanted),
    **dict.fromkeys(("ne", "neq", "not_eq"), lambda value, wanted: bool(value != wanted)),
    "gt": _compared(operator.gt),
    "gte": _compared(operator.ge),
    "lt": _compared(operator.lt),
    "lte": _compared(operator.le),
    "in": _compared(lambda value, wanted: value in wanted),
    "not_in": _compared(lambda value, wanted: value not in wanted),
    "contains": _of_texts(lambda value, wanted: wanted in value, inside=True),
    "not_contains": _of_texts(lambda value, wanted: wanted not in value, inside=True),
    "i_contains": _of_texts(lambda value, wanted: wanted in value, folded=True, inside=True),
    "starts_with": _of_texts(str.startswith),
    "ends_with": _of_texts(str.endswith),
    "i_starts_with": _of_texts(str.startswith, folded=True),
    "i_ends_with": _of_texts(str.endswith, folded=True),
    "regex": _of_texts(_regex),
    "has_any": lambda value, wanted: (
        isinstance(value, list | tuple | str) and any(_held(value, wanted))
    ),
    "has_all": lambda value, wanted: (
        isinstance(value, list | tuple | str) and all(_held(value, wanted))
    ),
    "exists": lambda value, wanted: bool(wanted) is (value is not None),
    "is_null": lambda value, wanted: bool(wanted) is (value is None),
    "not_null": lambda value, wanted: bool(wanted) is (value is not None),
}
_JOINED: Final = {"and": all, "or": any}


def matches(value: Any, predicate: Any) -> bool:
    """Return whether a value keeps a predicate.

    ``{operator: operand}``, all of several, or a value to equal.
    """
    if not isinstance(predicate, Mapping):
        return bool(value == predicate)
    return all(_applies(value, name, operand) for name, operand in predicate.items())


def _applies(value: Any, name: str, operand: Any) -> bool:
    if name in _JOINED:
        if not isinstance(operand, list):
            raise Unusable(f"{name}: expected a list of predicates, found {compact(operand)[:60]}")
        return _JOINED[name](matches(value, each) for each in operand)
    if name not in _TESTS:
        raise Unusable(f"{name}: unknown operator; there are {', '.join([*_TESTS, *_JOINED])}")
    return _TESTS[name](value, operand)


def at(row: Row, path: str) -> Any:
    """Return what stands at a dotted path of a row, None where nothing does."""
    value: Any = row
    for step in path.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def fits(row: Row, where: Any) -> bool:
    """Return whether a row keeps all predicates of a ``where``.

    ``and`` and ``or`` take lists of such.
    """
    if where is None:
        return True
    if not isinstance(where, Mapping):
        raise Unusable(f"where: expected predicates by field, found {compact(where)[:60]}")
    for field, predicate in where.items():
        if field in _JOINED and isinstance(predicate, list):
            if not _JOINED[field](fits(row, each) for each in predicate):
                return False
        elif not matches(at(row, field), predicate):
            return False
    return True


TABLE = "__table__"


class Change(NamedTuple):
    """One row that changed."""

    before: Row
    after: Row


class Difference(NamedTuple):
    """What changed, by table."""

    added: dict[str, list[Row]]
    removed: dict[str, list[Row]]
    changed: dict[str, list[Change]]


def difference_of(state: Any, key: str) -> Difference:
    """Return what changed in a recorded state."""
    if isinstance(state, Mapping):
        recorded = {"inserts", "updates", "deletes"} & state.keys()
        if recorded:
            changed = {
                name: [
                    Change(as_map(each.get("before")), as_map(each.get("after"))) for each in rows
                ]
                for name, rows in _by_table(state.get("updates")).items()
            }
            return Difference(
                _by_table(state.get("inserts")), _by_table(state.get("deletes")), changed
            )
        if "before" in state and "after" in state:
            return _rows_compared(
                tables_of(state["before"], "before"), tables_of(state["after"], "after"), key
            )
    raise Unusable(
        "the state is neither recorded as inserts, updates and deletes nor as before and after"
    )


def tables_of(value: Any, where: str) -> dict[str, list[Row]]:
    """Return the tables of a state: name -> rows, which may be given by key."""
    if not isinstance(value, Mapping):
        raise Unusable(f"{where}: expected tables by name, found {compact(value)[:60]}")
    found = {}
    for name, rows in value.items():
        listed = list(rows.values()) if isinstance(rows, Mapping) else rows
        if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
            raise Unusable(f"{where}.{name}: expected a list of rows, found {compact(rows)[:60]}")
        found[str(name)] = listed
    return found


def _by_table(rows: Any) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in as_list(rows):
        if not isinstance(row, Mapping) or not isinstance(row.get(TABLE), str):
            raise Unusable(f"a change names no {TABLE}: {compact(row)[:60]}")
        found.setdefault(row[TABLE], []).append(row)
    return found


def _rows_compared(
    before: Mapping[str, list[Row]], after: Mapping[str, list[Row]], key: str
) -> Difference:
    found = Difference({}, {}, {})
    for name in dict.fromkeys((*before, *after)):
        old, new = dict(_keyed(before.get(name, []), key)), dict(_keyed(after.get(name, []), key))
        added = [row for mark, row in new.items() if mark not in old]
        removed = [row for mark, row in old.items() if mark not in new]
        changed = [
            Change(row, new[mark]) for mark, row in old.items() if mark in new and row != new[mark]
        ]
        found.added.update({name: added} if added else {})
        found.removed.update({name: removed} if removed else {})
        found.changed.update({name: changed} if changed else {})
    return found


def _keyed(rows: list[Row], key: str) -> Iterator[tuple[str, Row]]:
    met: dict[str, int] = {}
    for row in rows:
        mark = dumps([row[key]]) if row.get(key) is not None else dumps(row)
        met[mark] = met.get(mark, 0) + 1
        yield f"{mark} {met[mark]}", row


_KINDS: Final = ("added", "removed", "changed", "unchanged")


class Policy(NamedTuple):
    """What holds for all assertions of a task."""

    strict: bool
    ignored: Mapping[str, Any]
    """``global`` and tables -> fields whose change does not count."""


def name_of(number: int, assertion: Any) -> str:
    """Return an assertion's name: its number and what it is about."""
    about = as_map(assertion)
    return f"{number} {about.get('diff_type')} {about.get('entity')}"


def broken(assertion: Any, difference: Difference, policy: Policy) -> list[str]:
    """Return why an assertion is not kept; nothing where it is."""
    kind, table = as_map(assertion).get("diff_type"), as_map(assertion).get("entity")
    if kind not in _KINDS or not isinstance(table, str):
        raise Unusable(
            f"expected diff_type ({', '.join(_KINDS)}) and entity, found {compact(assertion)[:80]}"
        )
    where, count = assertion.get("where"), assertion.get("expected_count")
    rows = difference.added.get(table, []) if kind == "added" else difference.removed.get(table, [])
    if kind in {"added", "removed"}:
        return _miscounted(count, sum(fits(row, where) for row in rows))
    changes = [
        each
        for each in difference.changed.get(table, [])
        if fits(each.after, where) or fits(each.before, where)
    ]
    if kind == "unchanged":
        moved = [*difference.added.get(table, []), *difference.removed.get(table, [])]
        number = sum(fits(row, where) for row in moved) + len(changes)
        return _miscounted(0 if count is None else count, number)
    return _changed(assertion, changes, policy)


def _changed(assertion: Mapping[str, Any], changes: Sequence[Change], policy: Policy) -> list[str]:
    expected = as_map(assertion.get("expected_changes"))
    strict = assertion.get("strict", policy.strict)
    own = assertion.get("ignore", assertion.get("ignore_fields"))
    names = (policy.ignored.get("global"), policy.ignored.get(assertion["entity"]), own)
    ignored = {each for listed in names for each in as_list(listed)}
    said, number = [], 0
    for before, after in changes:
        fields = {
            each
            for each in {*before, *after}
            if each not in ignored and before.get(each) != after.get(each)
        }
        if strict and (others := sorted(map(str, fields - expected.keys()))):
            said.append(f"other fields changed: {', '.join(others)}")
            continue
        number += all(
            field in fields and _as_expected(field, each, before, after)
            for field, each in expected.items()
        )
    return [*said, *_miscounted(assertion.get("expected_count"), number)]


def _as_expected(
    field: str, expected: Any, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    ends = expected if isinstance(expected, Mapping) else {"to": expected}
    return all(
        end not in ends or matches(row.get(field), ends[end])
        for end, row in (("from", before), ("to", after))
    )


def _miscounted(expected: Any, number: int) -> list[str]:
    if expected is None:
        return [] if number else ["expected at least 1 row, found 0"]
    if isinstance(expected, int):
        return [] if number == expected else [f"expected {expected} row(s), found {number}"]
    if not isinstance(expected, Mapping):
        raise Unusable(
            f"expected_count: expected a number, or min and max, found {compact(expected)[:60]}"
        )
    low, high = expected.get("min"), expected.get("max")
    if (low is None or number >= low) and (high is None or number <= high):
        return []
    return [
        (
            f"expected {'' if low is None else low} to {'' if high is None else high} row(s), found "
            f"{number}"
        )
    ]


@attrs.frozen(kw_only=True)
class StateDiff(Grader):
    """Share of the assertions that a run's end state keeps, in [0, 1].

    ``passed`` when it keeps all.

        score = kept / assertions

    The assertions are those of agent-diff, in the reference (``expected.state``: ``assertions``,
    ``strict``, ``ignore_fields``) or in the options: ``diff_type`` ``added``, ``removed``,
    ``changed`` or ``unchanged`` rows of a table (``entity``) that keep ``where``, as many as
    ``expected_count`` says (at least one; of ``unchanged`` none). A changed row's
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

    needs: ClassVar[frozenset[str]] = frozenset({"state"})
    metrics: ClassVar[tuple[str, ...]] = ("mean",)

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
        reference = as_map(sample.expected.state)
        assertions = reference.get("assertions", list(self.assertions) or None)
        if sample.state is None:
            return skipped("state_not_recorded", "the end state is not recorded")
        if assertions is None:
            return skipped(
                "no_assertions",
                "neither the reference nor the options assert anything of the state",
            )
        policy = Policy(
            reference.get("strict", self.strict),
            as_map(reference.get("ignore_fields", self.ignore_fields)),
        )
        try:
            return self._graded(sample, assertions, policy)
        except Unusable as problem:
            return failed(Fault(category="data", code="unusable_state", message=str(problem)))
        except RecursionError:
            return failed(
                Fault(category="data", code="unusable_state", message="nested too deeply")
            )

    def _graded(self, sample: Sample, assertions: Any, policy: Policy) -> Grade:
        if not isinstance(assertions, list):
            raise Unusable("expected.state.assertions: expected a list")
        difference = difference_of(sample.state, self.key)
        items, reasons = [], []
        for number, assertion in enumerate(assertions):
            said = broken(assertion, difference, policy)
            items.append(Item(id=name_of(number, assertion), score=float(not said)))
            subject = str(as_map(assertion).get("entity"))
            pointer = f"/assertions/{number}"
            reasons += [
                Reason(code="assertion", pointer=pointer, subject=subject, message=each)
                for each in said
            ]
        kept = sum(item.score == 1.0 for item in items)
        score = kept / len(items) if items else 1.0
        counts = {"assertions": len(items), "kept": kept}
        return Grade(
            score=score,
            passed=kept == len(items),
            counts=counts,
            items=tuple(items),
            reasons=tuple(reasons),
        )
