"""Logs of Anthropic's Messages API: requests, answers, and batches of both."""

from gradestack import Component, hookimpl

_TABLE = """
reader anthropic .api_logs:AnthropicLogs Anthropic messages with tool use, request and response
    logs, batch results
"""
gradestack_components = hookimpl(lambda: Component.table("gradestack_plugins.readers", _TABLE))
