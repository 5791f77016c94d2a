"""Similarity of tables, as ToolSandbox has it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from gradestack.jsonio import as_list, as_map, as_number, compact, dumps, standard_loads
from gradestack_plugins.end_states.predicates import Row, Unusable

_FAR: Final = 1e9
"""Stands for an infinite cost while rows are assigned: more than any sum of finite ones."""
_MOST_ROWS: Final = 100
_WORD: Final = re.compile(r"[a-z0-9]+")
_MEASURES: Final = ("exact", "close", "contains", "one", "words", "tool_trace")


def table_similarity(rows: Sequence[Row], target: Sequence[Row], columns: Mapping[str, Any]) -> float:
    """Return how similar a table is to the rows it should have, in [0, 1].

        exp(-mean over pairs of rows of the mean over columns of -log similarity)

    by the best assignment of rows to rows. 0 where their numbers differ, a column is missing, or no assignment has only
    similar rows.

    Args:
        rows: The rows there are.
        target: The rows there should be; their columns are compared.
        columns: Column -> how it is compared; exactly where nothing is said.

    Raises:
        Unusable: A measure nobody knows, or more rows than are assigned here.
    """
    if len(rows) != len(target) or {key for row in target for key in row} - {key for row in rows for key in row}:
        return 0.0
    if len(rows) > _MOST_ROWS:
        raise Unusable(f"{len(rows)} rows; at most {_MOST_ROWS} are assigned")
    if not target:
        return 1.0
    costs = [[_cost(row, wanted, columns) for row in rows] for wanted in target]
    chosen = [costs[at][to] for at, to in enumerate(assignment(costs))]
    return math.exp(-sum(chosen) / len(chosen)) if max(chosen) < _FAR else 0.0


def _cost(row: Row, wanted: Row, columns: Mapping[str, Any]) -> float:
    """Return the mean of -log similarity over the columns of a target row."""
    found = [_similarity(row.get(name), value, columns.get(name, "exact")) for name, value in wanted.items()]
    return _FAR if 0.0 in found else sum(-math.log(each) for each in found) / len(found) if found else 0.0


def _similarity(value: Any, wanted: Any, measure: Any) -> float:
    name, option = next(iter(measure.items())) if isinstance(measure, Mapping) and measure else (measure, None)
    if name == "exact":
        return float(value == wanted and isinstance(value, bool) is isinstance(wanted, bool))
    if name == "python":
        return float(value == wanted)
    if name == "close":
        left, right = as_number(value), as_number(wanted)
        return float(left is not None and right is not None and abs(left - right) <= (as_number(option) or 0.0))
    if name == "contains":
        return float(isinstance(value, str) and isinstance(wanted, str) and wanted in value)
    if name == "words":
        return _words(value, wanted) if isinstance(value, str) and isinstance(wanted, str) else 0.0
    if name == "tool_trace":
        return float(any(_traced(each, gold, as_map(option)) for gold in _traces(wanted) for each in _traces(value)))
    if name == "one":
        return 1.0
    raise Unusable(f"columns: unknown measure {compact(measure)[:60]}; there are {', '.join(_MEASURES)}")


def _words(value: str, wanted: str) -> float:
    """Return the F1 of the longest common subsequence of words (ROUGE-L without stemming)."""
    left, right = _WORD.findall(value.lower()), _WORD.findall(wanted.lower())
    held = [0] * (len(right) + 1)
    for word in left:
        before = 0
        for at, other in enumerate(right, 1):
            held[at], before = before + 1 if word == other else max(held[at], held[at - 1]), held[at]
    common = held[-1]
    return 2 * common / (len(left) + len(right)) if common else 0.0


def _traces(value: Any) -> Sequence[Any]:
    """Return tool traces: one or a list of them, each an object or its JSON text."""
    found = []
    for each in value if isinstance(value, list) else [value]:
        trace = each
        with suppress(ValueError):
            trace = standard_loads(each) if isinstance(each, str) else each
        found += list(as_list(trace)) or [trace]
    return found


def _traced(made: Any, gold: Any, tolerances: Mapping[str, Any]) -> bool:
    """Return whether a call has the name of another and each of its arguments, closely where a tolerance is given."""
    arguments = as_map(as_map(made).get("arguments"))
    if as_map(made).get("tool_name") != as_map(gold).get("tool_name"):
        return False
    for name, value in as_map(as_map(gold).get("arguments")).items():
        measure = {"close": tolerances[name]} if name in tolerances else "python"
        if name not in arguments or not _similarity(arguments[name], value, measure):
            return False
    return True


def addition_similarity(
    rows: Sequence[Row], before: Sequence[Row], target: Sequence[Row], columns: Mapping[str, Any]
) -> float:
    """Return how similar what was added is to what should be; 0 where something of before is not there any more."""
    old, new = Counter(map(dumps, before)), Counter(map(dumps, rows))
    if sum(new[mark] * number for mark, number in old.items()) != len(before):
        return 0.0
    return table_similarity([row for row in rows if dumps(row) not in old], target, columns)


def update_similarity(
    rows: Sequence[Row], before: Sequence[Row], target: Sequence[Row], columns: Mapping[str, Any]
) -> float:
    """Return how similar the rows that differ from before are to what they should be; 0 for another number of rows."""
    if len(rows) != len(before):
        return 0.0
    old = set(map(dumps, before))
    return table_similarity([row for row in rows if dumps(row) not in old], target, columns)


def assignment(costs: Sequence[Sequence[float]]) -> list[int]:
    """Return for each row of a square matrix the column it is assigned, at the least sum (the Hungarian method)."""
    size = len(costs)
    above, left = [0.0] * (size + 1), [0.0] * (size + 1)
    owner, way = [0] * (size + 1), [0] * (size + 1)  # column -> row, both from 1
    for row in range(1, size + 1):
        owner[0], column = row, 0
        least, used = [math.inf] * (size + 1), [False] * (size + 1)
        while owner[column]:
            used[column], here, delta, following = True, owner[column], math.inf, 0
            for each in range(1, size + 1):
                if not used[each]:
                    reduced = costs[here - 1][each - 1] - above[here] - left[each]
                    if reduced < least[each]:
                        least[each], way[each] = reduced, column
                    if least[each] < delta:
                        delta, following = least[each], each
            for each in range(size + 1):
                if used[each]:
                    above[owner[each]] += delta
                    left[each] -= delta
                else:
                    least[each] -= delta
            column = following
        while column:
            owner[column], column = owner[way[column]], way[column]
    found = [0] * size
    for column in range(1, size + 1):
        found[owner[column] - 1] = column - 1
    return found
