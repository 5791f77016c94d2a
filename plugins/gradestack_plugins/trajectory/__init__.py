"""Graders of runs without a reference: what a run took, and how its tool calls went."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from gradestack import Component, Kind, hookimpl

_HERE = "gradestack_plugins.trajectory"
_GRADERS = {
    "tool_success": (
        "calls:ToolSuccess",
        "Share of executed tool calls that did not end in an error; retries and recoveries",
    ),
    "tool_schema": (
        "tool_schema:ToolSchema",
        "Share of tool calls that are valid against the JSON Schema of the run's own tools",
    ),
    "tool_policy": (
        "tool_policy:ToolPolicy",
        "Share of a policy's rules that hold in a run: tools, counts, order, repeats",
    ),
    "repeats": ("calls:CallRepeats", "Share of tool calls that do not repeat the one before them; loops of calls"),
    "usage": ("usage:RunUsage", "Steps, calls, tokens, seconds and cost of a run; never passes or fails"),
}
_AGGREGATORS = {
    "tool_outcomes": ("calls:ToolOutcomes", "Calls by outcome, over all runs and by tool"),
    "call_validity": ("tool_schema:CallValidity", "Calls valid against their tools' schemas, by tool; violations"),
    "policy_checks": ("tool_policy:PolicyChecks", "Runs within the whole policy, and by check"),
    "loops": ("calls:Loops", "Runs with a loop, repeated calls, and the longest run of identical ones"),
    "usage_totals": ("usage:UsageTotals", "Total, mean and range of every figure of usage"),
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    what = "What needs no reference: how tool calls went, and what runs took"
    kinds: tuple[tuple[Kind, Any], ...] = (("grader", _GRADERS), ("aggregator", _AGGREGATORS))
    found = [
        Component(kind=kind, name=name, target=f"{_HERE}.{path}", summary=text)
        for kind, parts in kinds
        for name, (path, text) in parts.items()
    ]
    return (*found, Component(kind="stack", name="trajectory", target=f"{_HERE}:trajectory", summary=what))


def trajectory(provides: Collection[str] | None = None) -> dict[str, Any]:
    """Return the stack: how tool calls went, whether they keep schemas and a mild policy, loops and usage."""
    graders: dict[str, dict[str, Any]] = {
        "tool_success": {"kind": "tool_success"},
        "tool_schema": {"kind": "tool_schema"},
        # what is no good anywhere; everything else is for users to say
        "tool_policy": {"kind": "tool_policy", "repeats": {"in_a_row": 3}, "after_final": False},
        "repeats": {"kind": "repeats"},
        "usage": {"kind": "usage"},
    }
    known = {"calls", "tools"} if provides is None else set(provides)
    if "calls" not in known:
        graders = {"usage": graders["usage"]}
    elif "tools" not in known:
        del graders["tool_schema"]
    return {
        "graders": graders,
        "outcome": "tool_success" if "tool_success" in graders else "none",
        "headline": {
            "figures": {
                "Successful calls": "tool_success.tool_outcomes.success_rate",
                "Schema-valid calls": "tool_schema.call_validity.valid_share",
                "No tight repeats, no call after the answer": "tool_policy.policy_checks.kept_rate",
                "Runs in a loop": "repeats.loops.loop_rate",
                "Steps a run": "usage.mean",
            },
        },
    }
