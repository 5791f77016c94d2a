"""Graders of runs without a reference: what a run took, and how its tool calls went."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from gradestack import Component, hookimpl

if TYPE_CHECKING:
    from gradestack import Sample

_TABLE = """
grader tool_success .success:ToolSuccess Share of executed tool calls that did not end in an error;
    retries and recoveries
grader tool_schema .tool_schema:ToolSchema Share of tool calls that are valid against the JSON
    Schema of the run's own
    tools
grader tool_policy .tool_policy:ToolPolicy Share of a policy's rules that hold in a run: tools,
    counts, order, repeats
grader repeats .repeats:CallRepeats Share of tool calls that do not repeat the one before them; loops
    of calls
grader usage .usage:RunUsage Steps, calls, tokens, seconds and cost of a run; never passes or fails
aggregator tool_outcomes .success:ToolOutcomes Calls by outcome, over all runs and by tool
aggregator call_validity .tool_schema:CallValidity Calls valid against their tools' schemas, by
    tool; violations
aggregator policy_checks .tool_policy:PolicyChecks Runs within the whole policy, and by check
aggregator loops .repeats:Loops Runs with a loop, repeated calls, and the longest run of identical
    ones
panel tool_errors .panels:tool_errors Errors of tools, grouped, with examples
aggregator usage_totals .usage:UsageTotals Total, mean and range of every figure of usage
stack trajectory :trajectory What needs no reference: how tool calls went, and what runs took
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))


def trajectory(
    provides: Collection[str] | None = None, samples: Callable[[], Iterable[Sample]] = tuple
) -> dict[str, Any]:
    """Return the stack.

    How tool calls went, whether they keep a mild policy, loops and usage. Where the first runs
    record their tools, whether calls keep the schemas. Where exit codes of shells are recorded, how
    many commands ended non-zero, apart from failed calls.
    """
    recorded = set[str]()
    if provides is None or "calls" in provides:
        for sample in samples():
            recorded |= recorded_in(sample)
    return trajectory_of(provides, recorded)


def trajectory_of(provides: Collection[str] | None, recorded: Collection[str]) -> dict[str, Any]:
    """Return the stack for runs that record what ``recorded_in`` names."""
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
        graders, recorded = {"usage": graders["usage"]}, ()
    has_tools = not recorded or "tools" in recorded
    if "tool_schema" in graders and not ("tools" in known and has_tools):
        del graders["tool_schema"]
    commands: dict[str, str] = {}
    if "exit_code" in recorded:
        commands = {"Commands that ended non-zero": "tool_success.tool_outcomes.nonzero_commands"}
    if "day" in recorded:
        commands |= _figures_of_sessions(recorded)
    figures = {
        "Successful calls": "tool_success.tool_outcomes.success_rate",
        **commands,
        "Schema-valid calls": "tool_schema.call_validity.valid_share",
        "No pointless repeats, no call after the answer": "tool_policy.policy_checks.kept_rate",
        "Runs that loop": "repeats.loops.loop_rate",
        "Steps per run": "usage.mean",
    }
    shown = {label: path for label, path in figures.items() if path.partition(".")[0] in graders}
    return {
        "graders": graders,
        "outcome": "tool_success" if "tool_success" in graders else "none",
        "headline": {"figures": shown},
    }


_AMOUNTS = {"input_tokens": "Input tokens", "output_tokens": "Output tokens", "cost_usd": "Cost"}
"""Amount of a usage -> its label."""


def recorded_in(sample: Sample) -> set[str]:
    """Return the names of what a run records: a run at all, tools, exit codes, a day, amounts."""
    names = {"runs"}
    if sample.tools:
        names.add("tools")
    if any(call.exit_code is not None for call in sample.calls or ()):
        names.add("exit_code")
    if "day" in sample.facets:
        names.add("day")
    if sample.usage is not None:
        names |= {name for name in _AMOUNTS if getattr(sample.usage, name) is not None}
    return names


def _figures_of_sessions(recorded: Collection[str]) -> dict[str, str]:
    """Return the figures of sessions that a person worked through: how often, and how much."""
    outcomes, totals = "tool_success.tool_outcomes", "usage.usage_totals"
    figures = {
        "Failed calls": f"{outcomes}.failed_rate",
        "Failed calls before a success of the same tool": f"{outcomes}.recovered_rate",
    }
    for name in filter(recorded.__contains__, _AMOUNTS):
        figures[_AMOUNTS[name]] = f"{totals}.{name}.total"
    return figures
