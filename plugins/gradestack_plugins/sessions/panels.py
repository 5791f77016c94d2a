"""The panel of sessions: calls by tool, and usage by day, branch and directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.pages import blocks

_TITLES: Final = {"day": "By day", "branch": "By branch", "cwd": "By directory"}
"""Facet of a session -> title of its table."""
_AMOUNTS: Final = ("input_tokens", "output_tokens", "cost_usd")
_COLUMNS: Final = ("Sessions", "Calls", "Failed", "Input tokens", "Output tokens", "Cost in USD")
_OF_TOOLS: Final = ("Calls", "Failed", "Before a success of the same tool", "Successful")
Amount = float | None


@blocks.panel("Sessions")
def sessions(about: Report) -> Iterable[blocks.Block] | None:
    """Calls by tool, and sessions with their usage by day, branch and directory.

    None in a run whose samples are no sessions of a coding agent.
    """
    if not about.has_rows:
        return None
    for row in islice(about.rows(), 1):
        facets = row.get("facets")
        if "day" in as_map(facets):
            tables_of_tools = _tables_of_tools(about)
            return [*tables_of_tools, *_tables_by_facet(about)]
    return None


def _tables_of_tools(about: Report) -> Iterator[blocks.Block]:
    for metrics in about.aggregates.values():
        tool_outcomes = metrics.get("tool_outcomes")
        tools = as_map(as_map(tool_outcomes).get("tools"))
        if tools:
            rows = {name: _cells_of_tool(counts) for name, counts in tools.items()}
            yield blocks.Table(_OF_TOOLS, rows, "By tool", "tool")
            return


def _cells_of_tool(counts: Any) -> list[blocks.Cell]:
    numbers = [counts.get(name) for name in ("calls", "error", "recovered")]
    figure = blocks.figure_of("", counts, "success_rate", unit="share")
    return [*numbers, figure]


def _tables_by_facet(about: Report) -> Iterator[blocks.Block]:
    """Yield a table for each facet of which there are several values."""
    sums: dict[str, dict[str, list[Amount]]] = {facet: {} for facet in _TITLES}
    for row in about.rows():
        facets = as_map(row.get("facets"))
        amounts = _amounts_of(row)
        for facet, by_value in sums.items():
            value = as_text(facets.get(facet))
            if value:
                before = by_value.get(value, [None] * len(amounts))
                by_value[value] = list(map(_add_amounts, before, amounts))
    for facet, by_value in sums.items():
        if len(by_value) > 1:
            rows: dict[str, list[blocks.Cell]] = {
                name: [*by_value[name]] for name in sorted(by_value)
            }
            yield blocks.Table(_COLUMNS, rows, _TITLES[facet], facet)


def _amounts_of(row: Mapping[str, Any]) -> list[Amount]:
    """Return the amounts of a row for each column: sessions, calls, failed calls, tokens, cost."""
    predicted = row.get("predicted")
    calls = as_list(as_map(predicted).get("calls"))
    failed = sum(as_map(call).get("status") == "error" for call in calls)
    facets = row.get("facets")
    is_session = "subagent_of" not in as_map(facets)
    usage = as_map(row.get("usage"))
    amounts = [_amount_of(usage.get(name)) for name in _AMOUNTS]
    return [int(is_session), len(calls), failed, *amounts]


def _amount_of(value: Any) -> Amount:
    """Return a recorded amount, a count as the whole number it is."""
    if type(value) is int:
        return value
    return as_number(value)


def _add_amounts(total: Amount, amount: Amount) -> Amount:
    """Add an amount to a total; the sum of amounts that nobody recorded stays None."""
    if total is None or amount is None:
        return amount if total is None else total
    return total + amount
