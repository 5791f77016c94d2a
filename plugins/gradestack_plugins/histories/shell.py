"""Commands in the texts of answers, which a program runs in a shell."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gradestack_plugins.readers.declared import Object

COMMAND_TOOL: Final = "bash"
"""The name of the tool that such a command calls."""


class RunInfo(msgspec.Struct):
    """The ``info`` of a trajectory: how the run ended, its amounts and its configuration."""

    exit_status: str | None = None
    model_stats: Object = None
    config: Object = None


def answer_with_command(content: str, command: str) -> dict[str, Any]:
    """Return an answer that calls the shell with a command."""
    call = {"name": COMMAND_TOOL, "arguments": {"command": command}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}
