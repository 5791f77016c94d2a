"""Tool calls against expected ones, by our own rule or by any published one."""

from gradestack import Component, hookimpl

_TABLE = """
grader tool_calls .grader:ToolCalls Calls against expected ones: partial credit, or a published rule
grader bfcl_ast .bfcl_ast:BfclAst BFCL's own rules for calls, with its error types
aggregator call_figures .aggregators:CallFigures Precision, recall, F1 over calls and arguments
stack tool_calls .presets:tool_calls Did it make these calls: expected ones against those made
stack peers .presets:peers Published rules for tool calls, each on the same runs
panel other_tools .panels:other_tools Verdicts of other tools' rules on the same run
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
