"""Logs of OpenAI's APIs.

Chat completions, fine-tuning lines, batches, Responses and their items.
"""

from gradestack import Component, hookimpl

_TABLE = """
reader openai .api_logs:OpenAILogs OpenAI chat messages, request and response logs, batches,
    Responses and their items
"""
gradestack_components = hookimpl(lambda: Component.table("gradestack_plugins.readers", _TABLE))
