"""Result files of benchmarks whose verdicts are recorded, and logs of two that compare calls."""

from gradestack import Component, hookimpl

_TABLE = """
aggregator appworld_goals .goals:GoalCompletion Scenarios of AppWorld in which every task passed
stack appworld .goals:appworld Goal completion of AppWorld, by task and by scenario
reader appworld .reports:AppWorld AppWorld: evaluation reports, and reports of one task
reader gaia2 .reports:Gaia2 Gaia2: output.jsonl of the Meta agents research environments
reader hammerbench .answers:HammerBench HammerBench: logs of answers beside their labels
reader mcpmark .trials:McpMark MCPMark: results by task, and meta.json of each run
reader stabletoolbench .answers:StableToolBench StableToolBench: converted answers, and pass rates
reader swebench .reports:SweBench SWE-bench: reports of runs and of instances, with predictions
reader terminal_bench .trials:TerminalBench Terminal-Bench: results.json of runs and of trials
reader toolsandbox .reports:ToolSandbox ToolSandbox: result_summary.json
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
