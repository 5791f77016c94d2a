"""Tool calls against expected ones, by our own rule or by any published one."""

from __future__ import annotations

from gradestack import Component, Panel, hookimpl

_HERE = "gradestack_plugins.tool_calls"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return (
        Component(
            kind="grader",
            name="tool_calls",
            target=f"{_HERE}.grader:ToolCalls",
            summary="Did it make these calls: matching with partial credit, or any published rule as a preset",
        ),
        Component(
            kind="grader",
            name="bfcl_ast",
            target=f"{_HERE}.bfcl_ast:BfclAst",
            summary="BFCL's own rules for calls, with its error types",
        ),
        Component(
            kind="aggregator",
            name="call_figures",
            target=f"{_HERE}.aggregators:CallFigures",
            summary="Precision, recall and F1 over calls and arguments, verdict rate, by tool and argument",
        ),
        Component(
            kind="stack",
            name="tool_calls",
            target=f"{_HERE}.stacks:tool_calls",
            summary="Did it make these calls: expected calls against those that were made",
        ),
        Component(
            kind="stack",
            name="peers",
            target=f"{_HERE}.stacks:peers",
            summary="Every published rule for tool calls, side by side on the same runs",
        ),
    )


@hookimpl
def gradestack_panels() -> tuple[Panel, ...]:
    """Return what the family shows on pages."""
    return (
        Panel(
            name="other_tools",
            place="overview",
            title="What other tools would say",
            target=f"{_HERE}.panels:other_tools",
        ),
    )
