"""The parts that trajectories of SWE-agent and mini-swe-agent share: ``info``, and commands."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gradestack import Input, Source
from gradestack.jsonio import as_map
from gradestack_plugins.readers.declared import Object, convert_record
from gradestack_plugins.readers.runs import Run

COMMAND_TOOL: Final = "bash"
"""The name of the tool that a command in the text of an answer calls."""


class RunInfo(msgspec.Struct):
    """The end of a run, and its amounts."""

    exit_status: str = ""
    model_stats: Object = None
    config: Object = None


def start_run(document: dict[str, Any], source: Source, identifier: str) -> tuple[Run, RunInfo]:
    """Return a run without its messages, with the exit status of its ``info``; and that ``info``.

    Args:
        document: The trajectory.
        source: The place of the trajectory.
        identifier: The id of the run.
    """
    record = as_map(document.get("info"))
    info, remarks = convert_record(record, RunInfo)
    run = Run(id=identifier, entries=[], source=source, first=document, remarks=remarks)
    if info.exit_status:
        run.recorded = {"exit_status": info.exit_status}
    return run, info


def name_of_file(file: Input) -> str:
    """Return the name of a file without ``.traj``, ``.json`` or both."""
    return file.name.removesuffix(".json").removesuffix(".traj")


def answer_with_command(content: str, command: str) -> dict[str, Any]:
    """Return an answer that calls the shell with a command."""
    call = {"name": COMMAND_TOOL, "arguments": {"command": command}}
    return {"role": "assistant", "content": content, "tool_calls": [call]}
