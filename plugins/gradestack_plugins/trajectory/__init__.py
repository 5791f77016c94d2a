"""Graders of runs without a reference: what a run took, and how its tool calls went."""

from gradestack import Component, hookimpl

_TABLE = """
grader tool_success .success:ToolSuccess Share of executed tool calls that did not end in an error;
    retries and recoveries
grader tool_schema .tool_schema:ToolSchema Share of tool calls that are valid against the JSON
    Schema of the run's own
    tools
grader tool_policy .tool_policy:ToolPolicy Share of a policy's rules that hold in a run: tools,
    counts, order, repeats
grader repeats .repeats:CallRepeats Share of tool calls that do not repeat the one before them;
    loops of calls
grader usage .usage:RunUsage Steps, calls, tokens, seconds and cost of a run; never passes or fails
aggregator tool_outcomes .success:ToolOutcomes Calls by outcome, over all runs and by tool
aggregator call_validity .tool_schema:CallValidity Calls valid against their tools' schemas, by
    tool; violations
aggregator policy_checks .tool_policy:PolicyChecks Runs within the whole policy, and by check
aggregator loops .repeats:Loops Runs with a loop, repeated calls, and the longest run of identical
    ones
panel tool_errors .panels:tool_errors Errors of tools, grouped, with examples
aggregator usage_totals .usage:UsageTotals Total, mean and range of every figure of usage
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
