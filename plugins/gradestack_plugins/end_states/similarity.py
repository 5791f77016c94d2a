"""The similarity of tables to the rows they should hold, as ToolSandbox measures it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from gradestack import compile_later
from gradestack.jsonio import as_list, as_map, as_number, compact, dumps, standard_loads
from gradestack_plugins.end_states.declared import Row, Unusable
from gradestack_plugins.statistics.assignment import assign_rows

_FAR: Final = 1e9
"""Stands for an infinite cost while rows are assigned: more than any sum of finite ones."""
_MOST_ROWS: Final = 100
_WORD: Final = compile_later(r"[a-z0-9]+")

Rows = Sequence[Row]
Columns = Mapping[str, Any]
"""Column -> how its values are measured; ``exact`` where nothing is said."""


def table_similarity(rows: Rows, target: Rows, columns: Columns) -> float:
    """Return the similarity of a table to the rows it should have, in [0, 1].

        exp(-mean over pairs of rows of the mean over columns of -log similarity)

    by the best assignment of rows to rows. 0 where their numbers differ, a column is missing, or no
    assignment has only similar rows.
    """
    wanted_columns = set().union(*target)
    recorded_columns = set().union(*rows)
    if len(rows) != len(target) or wanted_columns - recorded_columns:
        return 0.0
    if len(rows) > _MOST_ROWS:
        raise Unusable(f"{len(rows)} rows; at most {_MOST_ROWS} are assigned")
    if not target:
        return 1.0
    costs = [[_row_cost(row, wanted, columns) for row in rows] for wanted in target]
    chosen = [costs[row][column] for row, column in enumerate(assign_rows(costs))]
    if max(chosen) >= _FAR:
        return 0.0
    return math.exp(-sum(chosen) / len(chosen))


def _row_cost(row: Row, wanted: Row, columns: Columns) -> float:
    """Return the mean negative logarithm of the columns' similarities, ``_FAR`` if one is zero."""
    similarities = [
        _similarity(row.get(name), value, columns.get(name, "exact"))
        for name, value in wanted.items()
    ]
    if 0.0 in similarities:
        return _FAR
    if not similarities:
        return 0.0
    costs = [-math.log(similarity) for similarity in similarities]
    return sum(costs) / len(costs)


def _similarity(value: Any, wanted: Any, measure: Any) -> float:
    name, option = measure, None
    if isinstance(measure, Mapping) and measure:
        name, option = next(iter(measure.items()))
    if not isinstance(name, str) or name not in _MEASURES:
        known = ", ".join(_MEASURES)
        raise Unusable(f"columns: unknown measure {compact(measure)[:60]}; there are {known}")
    return float(_MEASURES[name](value, wanted, option))


def _is_equal(value: Any, wanted: Any, _: Any) -> bool:
    if isinstance(value, bool) is not isinstance(wanted, bool):
        return False
    return bool(value == wanted)


def _is_close(value: Any, wanted: Any, tolerance: Any) -> bool:
    number = as_number(value)
    other = as_number(wanted)
    if number is None or other is None:
        return False
    size = abs(number - other)
    return size <= (as_number(tolerance) or 0.0)


def _contains(value: Any, wanted: Any, _: Any) -> bool:
    return isinstance(value, str) and isinstance(wanted, str) and wanted in value


def _word_f1(value: Any, wanted: Any, _: Any) -> float:
    """Return the F1 of the longest common subsequence of words (ROUGE-L without stemming)."""
    if not isinstance(value, str) or not isinstance(wanted, str):
        return 0.0
    left = _WORD.findall(value.lower())
    right = _WORD.findall(wanted.lower())
    lengths = [0] * (len(right) + 1)
    for word in left:
        before = 0
        for index, other in enumerate(right, 1):
            above = lengths[index]
            lengths[index] = before + 1 if word == other else max(above, lengths[index - 1])
            before = above
    common = lengths[-1]
    if common:
        return 2 * common / (len(left) + len(right))
    return 0.0


def _has_trace(value: Any, wanted: Any, tolerances: Any) -> bool:
    """Return whether a recorded call is one of those that should have been made."""
    gold = _traces(wanted)
    calls = _traces(value)
    limits = as_map(tolerances)
    return any(_is_traced(call, trace, limits) for trace in gold for call in calls)


def _traces(value: Any) -> list[Mapping[str, Any]]:
    """Return tool traces: one or a list of them, each an object or its JSON text."""
    traces: list[Any] = []
    for entry in value if isinstance(value, list) else [value]:
        trace = entry
        with suppress(ValueError):
            trace = standard_loads(entry) if isinstance(entry, str) else entry
        traces += as_list(trace) or [trace]
    return list(map(as_map, traces))


def _is_traced(
    made: Mapping[str, Any], gold: Mapping[str, Any], tolerances: Mapping[str, Any]
) -> bool:
    """Check that a traced call has the tool and arguments of the gold one, within tolerances."""
    tool_name = made.get("tool_name")
    if tool_name != gold.get("tool_name"):
        return False
    arguments = as_map(made.get("arguments"))
    for name, wanted in as_map(gold.get("arguments")).items():
        if name not in arguments:
            return False
        value = arguments[name]
        tolerance = tolerances.get(name)
        if tolerance is None:
            is_met = value == wanted
        else:
            is_met = _is_close(value, wanted, tolerance)
        if not is_met:
            return False
    return True


_MEASURES: Final[Mapping[str, Callable[[Any, Any, Any], float]]] = {
    "exact": _is_equal,
    "close": _is_close,
    "contains": _contains,
    "one": lambda *_: 1.0,
    "words": _word_f1,
    "tool_trace": _has_trace,
}


def addition_similarity(rows: Rows, before: Rows, target: Rows, columns: Columns) -> float:
    """Return the similarity of the rows that were added to those that should be.

    0 where a row of before is missing.
    """
    old = Counter(map(dumps, before))
    new = Counter(map(dumps, rows))
    still_there = [new[row] * times for row, times in old.items()]
    if sum(still_there) != len(before):
        return 0.0
    return table_similarity(_without(rows, old), target, columns)


def update_similarity(rows: Rows, before: Rows, target: Rows, columns: Columns) -> float:
    """Return the similarity of the rows that differ from before to those that should be.

    0 for another number of rows.
    """
    if len(rows) != len(before):
        return 0.0
    old = Counter(map(dumps, before))
    return table_similarity(_without(rows, old), target, columns)


def _without(rows: Rows, old: Counter[str]) -> Rows:
    return [row for row in rows if dumps(row) not in old]
