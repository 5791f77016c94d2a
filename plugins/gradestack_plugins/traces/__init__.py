"""Traces that platforms keep as rows: one row a call of a model or a tool."""

from gradestack import Component, hookimpl

_TABLE = """
reader agents_traces .formats:AgentsTraces OpenAI Agents SDK: exported traces and their spans
reader bedrock .formats:BedrockLogs Amazon Bedrock: logs of model invocations
reader braintrust .formats:Braintrust Braintrust: spans of logs and experiments, with scores
reader helicone .formats:Helicone Helicone: exported requests
reader langsmith .formats:LangSmith LangSmith: exported runs
reader litellm .formats:LiteLLM LiteLLM: request logs
reader opik .formats:Opik Opik: exported spans and traces
reader weave .formats:Weave Weave: exported calls
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
