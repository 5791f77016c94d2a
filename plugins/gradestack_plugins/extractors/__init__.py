"""Extractors: which text of a recorded conversation is the submission that text graders are given."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.extractors"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the extractors."""
    return (
        Component(
            kind="extractor",
            name="last_assistant",
            target=f"{_HERE}.assistant:LastAssistant",
            summary="Text of the last assistant message",
        ),
        Component(
            kind="extractor",
            name="first_assistant",
            target=f"{_HERE}.assistant:FirstAssistant",
            summary="Text of the first assistant message",
        ),
        Component(
            kind="extractor",
            name="all_assistant",
            target=f"{_HERE}.assistant:AllAssistant",
            summary="Texts of all assistant messages, joined",
        ),
        Component(
            kind="extractor",
            name="last_turn",
            target=f"{_HERE}.assistant:LastTurn",
            summary="Texts of the last turn's assistant messages, joined",
        ),
        Component(
            kind="extractor",
            name="pattern",
            target=f"{_HERE}.search:Pattern",
            summary="What a regular expression finds in the newest assistant message it matches",
        ),
        Component(
            kind="extractor",
            name="after_marker",
            target=f"{_HERE}.search:AfterMarker",
            summary="What follows a marker in the newest assistant message that holds it",
        ),
        Component(
            kind="extractor",
            name="tool_arguments",
            target=f"{_HERE}.tools:ToolArguments",
            summary="Argument text of the first call of a tool",
        ),
        Component(
            kind="extractor",
            name="tool_output",
            target=f"{_HERE}.tools:ToolOutput",
            summary="What the first call of a tool returned",
        ),
        Component(
            kind="extractor",
            name="memory_block",
            target=f"{_HERE}.memory:MemoryBlock",
            summary="A memory block of the agent's final state, where the recording has it",
        ),
    )
