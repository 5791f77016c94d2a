"""For readers of chat logs.

Messages, calls and tools in their usual shapes, conversations, usage and single steps.
"""

from gradestack_plugins.readers.chat import made_calls, messages, text_of, tool_calls, tool_spec
from gradestack_plugins.readers.chat.conversation import Conversation, conversation_of
from gradestack_plugins.readers.chat.steps import Run, Step, joined, step
from gradestack_plugins.readers.chat.usage import added, usage_of

__all__ = [
    "Conversation",
    "Run",
    "Step",
    "added",
    "conversation_of",
    "joined",
    "made_calls",
    "messages",
    "step",
]
__all__ += ["text_of", "tool_calls", "tool_spec", "usage_of"]
