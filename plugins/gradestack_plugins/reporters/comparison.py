"""Pages of a comparison, in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack_plugins.reporters.environment import asset, environment, policy
from gradestack_plugins.reporters.prose import code, prose
from gradestack_plugins.reporters.text import UNDEFINED, number

_MOST_METRICS = 8
"""Graders in the table of the Markdown page; comparison.json has all."""


def markdown_page(data: Mapping[str, Any]) -> str:
    """Return comparison.md: a table of some thirty lines for a pull request, details folded."""
    env = environment()
    env.filters.update(md=prose, code=code, signed=signed, ends=ends)
    shown = list(data["metrics"].items())[:_MOST_METRICS]
    return env.get_template("comparison.md").render(**_context(data), shown=shown)


def html_page(data: Mapping[str, Any]) -> str:
    """Return comparison.html, a file of its own."""
    env = environment()
    env.filters.update(signed=signed, ends=ends)
    style = asset(env, "report.css")
    return env.get_template("comparison.html").render(**_context(data), style=style, policy=policy([style], []))


def _context(data: Mapping[str, Any]) -> dict[str, Any]:
    first, second = data["runs"][:2]
    pairs = data.get("pairs") or [{"a": first["name"], "b": second["name"], "metrics": data["metrics"]}]
    confidence = next(iter(data["metrics"].values()))["interval"]["confidence"]
    return {
        "data": data,
        "pairs": pairs,
        "by": data.get("by"),
        "groups": data.get("groups", []),
        "confidence": f"{100 * confidence:.6g} % interval",
    }


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return UNDEFINED if value is None else f"{'+' if value > 0 else ''}{number(value)}"


def ends(value: list[float] | None) -> str:
    """Return the ends of an interval."""
    return "none" if value is None else f"{number(value[0])} to {number(value[1])}"
