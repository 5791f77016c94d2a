"""Graders of runs without a reference: what a run took, and how its tool calls went."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.trajectory"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return (
        Component(
            kind="grader",
            name="tool_success",
            target=f"{_HERE}.tool_success:ToolSuccess",
            summary="Share of executed tool calls that did not end in an error; retries and recoveries",
        ),
        Component(
            kind="grader",
            name="tool_schema",
            target=f"{_HERE}.tool_schema:ToolSchema",
            summary="Share of tool calls that are valid against the JSON Schema of the run's own tools",
        ),
        Component(
            kind="grader",
            name="tool_policy",
            target=f"{_HERE}.tool_policy:ToolPolicy",
            summary="Share of a policy's rules for tool calls that a run keeps: tools, counts, order, repeats",
        ),
        Component(
            kind="grader",
            name="repeats",
            target=f"{_HERE}.repeats:CallRepeats",
            summary="Share of tool calls that do not repeat the one before them; loops of calls",
        ),
        Component(
            kind="grader",
            name="usage",
            target=f"{_HERE}.usage:RunUsage",
            summary="Steps, calls, tokens, seconds and cost of a run; never passes or fails",
        ),
        Component(
            kind="aggregator",
            name="tool_outcomes",
            target=f"{_HERE}.tool_success:ToolOutcomes",
            summary="Calls by outcome, over all runs and by tool",
        ),
        Component(
            kind="aggregator",
            name="call_validity",
            target=f"{_HERE}.tool_schema:CallValidity",
            summary="Calls that are valid against their tools' schemas, by tool, and what is violated",
        ),
        Component(
            kind="aggregator",
            name="policy_checks",
            target=f"{_HERE}.tool_policy:PolicyChecks",
            summary="Runs that keep a whole policy, and each of its checks",
        ),
        Component(
            kind="aggregator",
            name="loops",
            target=f"{_HERE}.repeats:Loops",
            summary="Runs with a loop, repeated calls, and the longest run of identical ones",
        ),
        Component(
            kind="aggregator",
            name="usage_totals",
            target=f"{_HERE}.usage:UsageTotals",
            summary="Total, mean and range of every figure of usage",
        ),
        Component(
            kind="stack",
            name="trajectory",
            target=f"{_HERE}.stacks:trajectory",
            summary="What needs no reference: how tool calls went, and what runs took",
        ),
    )
