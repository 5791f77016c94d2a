"""Logs of OpenAI's APIs: chat completions, fine-tuning lines, batches, Responses and their items."""

from __future__ import annotations

from gradestack import Component, hookimpl

_TABLE = """
reader openai .api_logs:OpenAILogs OpenAI chat messages, request and response logs, batches, Responses and their items
"""


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return Component.table("gradestack_plugins.readers", _TABLE)
