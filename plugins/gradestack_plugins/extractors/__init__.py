"""Extractors: which text of a recorded conversation is the submission that text graders are given."""

from __future__ import annotations

from gradestack import Component, hookimpl

_EXTRACTORS = {
    "last_assistant": ("LastAssistant", "Text of the last assistant message"),
    "first_assistant": ("FirstAssistant", "Text of the first assistant message"),
    "all_assistant": ("AllAssistant", "Texts of all assistant messages, joined"),
    "last_turn": ("LastTurn", "Texts of the last turn's assistant messages, joined"),
    "pattern": ("Pattern", "What a regular expression finds in the newest assistant message it matches"),
    "after_marker": ("AfterMarker", "What follows a marker in the newest assistant message that holds it"),
    "tool_arguments": ("ToolArguments", "Argument text of the first call of a tool"),
    "tool_output": ("ToolOutput", "What the first call of a tool returned"),
    "memory_block": ("MemoryBlock", "A memory block of the agent's final state, where the recording has it"),
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the extractors."""
    return tuple(
        Component(
            kind="extractor", name=name, target=f"gradestack_plugins.extractors.extractors:{target}", summary=summary
        )
        for name, (target, summary) in _EXTRACTORS.items()
    )
