"""Extractors: the text of a recorded conversation that text graders grade."""

from gradestack import Component, hookimpl

_TABLE = """
extractor last_assistant .extractors:LastAssistant Text of the last assistant message
extractor first_assistant .extractors:FirstAssistant Text of the first assistant message
extractor all_assistant .extractors:AllAssistant Texts of all assistant messages, joined
extractor last_turn .extractors:LastTurn Texts of the last turn's assistant messages, joined
extractor pattern .extractors:Pattern The match of a regular expression in the newest assistant
    message it matches
extractor after_marker .extractors:AfterMarker The text behind a marker in the newest assistant
    message that holds it
extractor tool_arguments .extractors:ToolArguments Argument text of the first call of a tool
extractor tool_output .extractors:ToolOutput The result of the first call of a tool
extractor memory_block .extractors:MemoryBlock A memory block of the agent's final state, where the
    recording has it
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
