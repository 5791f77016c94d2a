"""What changed between two states: rows added, removed and changed, by table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gradestack.jsonio import as_list, compact, dumps
from gradestack_plugins.end_states.predicates import Row, Unusable

TABLE = "__table__"
"""Key of a recorded change that names its table."""


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
    """Return what changed in a recorded state: ``inserts``, ``updates`` and ``deletes``, or ``before`` and ``after``.

    Args:
        state: The recorded state.
        key: The field that rows of ``before`` and ``after`` are told by.

    Raises:
        Unusable: It is of neither form.
    """
    if isinstance(state, Mapping):
        recorded = {"inserts", "updates", "deletes"} & state.keys()
        if recorded:
            changed = {
                name: [Change(_row(each.get("before")), _row(each.get("after"))) for each in rows]
                for name, rows in _by_table(state.get("updates")).items()
            }
            return Difference(_by_table(state.get("inserts")), _by_table(state.get("deletes")), changed)
        if "before" in state and "after" in state:
            return _compared(tables_of(state["before"], "before"), tables_of(state["after"], "after"), key)
    raise Unusable("the state is neither recorded as inserts, updates and deletes nor as before and after")


def tables_of(value: Any, where: str) -> dict[str, list[Row]]:
    """Return the tables of a state: name -> rows, which may be given by key.

    Raises:
        Unusable: It is no mapping of lists or mappings of rows.
    """
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


def _row(value: Any) -> Row:
    return value if isinstance(value, Mapping) else {}


def _compared(before: Mapping[str, list[Row]], after: Mapping[str, list[Row]], key: str) -> Difference:
    found = Difference({}, {}, {})
    for name in dict.fromkeys((*before, *after)):
        old, new = dict(_keyed(before.get(name, []), key)), dict(_keyed(after.get(name, []), key))
        added = [row for mark, row in new.items() if mark not in old]
        removed = [row for mark, row in old.items() if mark not in new]
        changed = [Change(row, new[mark]) for mark, row in old.items() if mark in new and row != new[mark]]
        found.added.update({name: added} if added else {})
        found.removed.update({name: removed} if removed else {})
        found.changed.update({name: changed} if changed else {})
    return found


def _keyed(rows: list[Row], key: str) -> Iterator[tuple[str, Row]]:
    """Yield rows by their key; one without is told by all it holds, and equal ones by their number."""
    met: dict[str, int] = {}
    for row in rows:
        mark = dumps([row[key]]) if row.get(key) is not None else dumps(row)
        met[mark] = met.get(mark, 0) + 1
        yield f"{mark} {met[mark]}", row
