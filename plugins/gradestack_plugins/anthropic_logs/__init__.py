"""Logs of Anthropic's Messages API: requests, answers, and batches of both."""

from __future__ import annotations

from gradestack import Component, hookimpl

_TABLE = """
reader anthropic .api_logs:AnthropicLogs Anthropic messages with tool use, request and response logs, batch results
"""


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return Component.table("gradestack_plugins.readers", _TABLE)
