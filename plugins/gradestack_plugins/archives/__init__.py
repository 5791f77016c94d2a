"""Result files of other evaluation tools: Google's ADK, ATIF, promptfoo, deepeval.

And writing any format as ATIF.
"""

from gradestack import Component, hookimpl

_TABLE = """
reader adk .adk:Adk Google ADK eval sets (as a data set), their results, and the legacy list of
    turns
reader atif .atif:Atif ATIF trajectories, versions 1.0 to 1.8, with their sub-agents
command convert .convert:convert Write files of any format as JSON Lines or ATIF.
reader deepeval .tools:DeepEval deepeval test runs and data sets: toolsCalled, expectedTools,
    metrics
reader harbor .harbor:Harbor Harbor: jobs, a folder with a folder for each trial
reader promptfoo .tools:Promptfoo promptfoo results: answers, calls, and the recorded verdict
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
