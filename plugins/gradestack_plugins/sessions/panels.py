"""What pages show of sessions: calls by tool, and what work took by day and by branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.pages import blocks

_BY = {"day": "By day", "branch": "By branch", "cwd": "By directory"}
"""Facet of a session -> title of its table."""
_AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
_COLUMNS = ("Sessions", "Calls", "Failed", "Input tokens", "Output tokens", "Cost in USD")


@blocks.panel("Sessions")
def sessions(about: Report) -> Iterable[blocks.Block] | None:
    """Calls by tool, and sessions with what they took by day, branch and directory.

    None in a run whose samples are no sessions of a coding agent.
    """
    if not about.has_rows:
        return None
    first = islice(about.rows(), 1)
    if not any("day" in as_map(row.get("facets")) for row in first):
        return None
    return list(_tables(about))


def _tables(about: Report) -> Iterator[blocks.Block]:
    tools = _tools_of(about)
    if tools:
        rows = {name: _cells_of(counts) for name, counts in tools.items()}
        columns = ["Calls", "Failed", "Recovered", "Successful"]
        yield blocks.Table(columns, rows, "By tool", "tool")
    sums: dict[str, dict[str, list[float | None]]] = {facet: {} for facet in _BY}
    for row in about.rows():
        amounts = _amounts_of(row)
        for facet, by_value in sums.items():
            value = as_text(as_map(row.get("facets")).get(facet))
            if value:
                held = by_value.setdefault(value, [0, 0, 0, None, None, None])
                by_value[value] = [_add(*pair) for pair in zip(held, amounts, strict=True)]
    for facet, by_value in sums.items():
        if len(by_value) > 1:
            groups: dict[str, list[blocks.Cell]] = {
                name: [*by_value[name]] for name in sorted(by_value)
            }
            yield blocks.Table(_COLUMNS, groups, _BY[facet], facet)


def _tools_of(about: Report) -> Mapping[str, Any]:
    for metrics in about.aggregates.values():
        tools = as_map(as_map(metrics.get("tool_outcomes")).get("tools"))
        if tools:
            return tools
    return {}


def _cells_of(counts: Any) -> list[blocks.Cell]:
    numbers = [counts.get(name) for name in ("calls", "error", "recovered")]
    return [*numbers, blocks.figure_of("", counts, "success_rate")]


def _amounts_of(row: Mapping[str, Any]) -> list[float | None]:
    """Return what a row adds to each column: sessions, calls, failed calls, tokens, cost."""
    calls = as_list(as_map(row.get("predicted")).get("calls"))
    failed = sum(as_map(call).get("status") == "error" for call in calls)
    is_session = "subagent_of" not in as_map(row.get("facets"))
    usage = as_map(row.get("usage"))
    return [int(is_session), len(calls), failed, *(_amount(usage.get(name)) for name in _AMOUNTS)]


def _amount(value: Any) -> float | None:
    """Return a recorded amount, a count as the whole number it is."""
    return value if type(value) is int else as_number(value)


def _add(total: float | None, amount: float | None) -> float | None:
    """Add an amount to a total; what nobody recorded stays None."""
    if total is None or amount is None:
        return amount if total is None else total
    return total + amount
