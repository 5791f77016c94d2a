"""Logs of Anthropic's Messages API: requests, answers, and batches of both."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the reader."""
    return (
        Component(
            kind="reader",
            name="anthropic",
            target="gradestack_plugins.anthropic_logs.reader:AnthropicLogs",
            summary="Anthropic messages with tool use, request and response logs, batch results",
        ),
    )
