"""Commands in the texts of answers, which a program runs in a shell."""

from __future__ import annotations

from typing import Any, Final

COMMAND_TOOL: Final = "bash"
"""The name of the tool that such a command calls."""


def answer_with_command(content: str, command: str) -> dict[str, Any]:
    """Return an answer that calls the shell with a command."""
    call = {"name": COMMAND_TOOL, "arguments": {"command": command}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}
