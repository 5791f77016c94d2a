"""Logs of OpenAI's APIs: chat completions, fine-tuning lines, batches, Responses and their items."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return (
        Component(
            kind="reader",
            name="openai",
            target="gradestack_plugins.openai_logs.reader:OpenAILogs",
            summary="OpenAI chat messages, request and response logs, batches, Responses and their items",
        ),
    )
