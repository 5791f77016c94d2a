"""Histories that agents' libraries and their evaluators write, a file or a line each."""

from gradestack import Component, hookimpl

_TABLE = """
reader autogen .formats:AutoGenState AutoGen: saved states of agents and teams
reader langgraph .formats:LangGraph LangGraph: streamed updates and events of graphs
reader mini_swe_agent .mini_swe:MiniSweAgent mini-swe-agent: trajectories with commands in blocks
reader openai_evals .formats:OpenAIEvals OpenAI Evals: output items of the API, and record logs
reader openhands .formats:OpenHands OpenHands: output of its evaluations
reader swe_agent .swe_agent:SweAgent SWE-agent: trajectories, whose actions are calls of tools or
    of a shell
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
