"""Reader ``mini_swe_agent``: trajectories of mini-swe-agent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import Input, Usage
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.readers.chat import text_of, word
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.97
_COMMAND: Final = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n?```", re.DOTALL)
"""How an answer says the command that is run: the first block of it."""
_OBSERVED: Final = re.compile(r"\s*<(?:returncode|exit_code)>")
_CALL: Final = "bash"


@attrs.frozen(kw_only=True)
class MiniSweAgent(RunReader):
    """Reads trajectories of mini-swe-agent, a JSON document each.

    A command in an answer's block is a call of ``bash``, and the message behind it its result, with
    the exit code it begins with. Id is the instance's, else the file's name. How it ended, and what
    it cost, is taken from ``info``.
    """

    version = "1"
    records_are_runs = True
    example_file = "INSTANCE.traj.json"
    marks = (("trajectory_format", "messages", "info"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        is_own = word(record, "trajectory_format").startswith("mini-swe-agent")
        return _SURE if is_own and isinstance(record.get("messages"), list) else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for document, source in records:
            if not isinstance(document, dict):
                continue
            about = as_map(document.get("info"))
            spent = as_map(about.get("model_stats"))
            model = as_map(as_map(about.get("config")).get("model")).get("model_name")
            status = word(dict(about), "exit_status")
            usage = Usage(
                requests=count_of(spent.get("api_calls")),
                cost_usd=as_number(spent.get("instance_cost")),
            )
            yield Run(
                id=word(document, "instance_id") or file.name.partition(".")[0],
                entries=list(_entries(as_list(document.get("messages")))),
                source=source,
                first=document,
                model=model if isinstance(model, str) else None,
                usage=usage,
                ended=_ended(status),
                recorded={"exit_status": status} if status else {},
            )


def _ended(status: str) -> str | None:
    if status == "Submitted":
        return "completed"
    return f"limit:{status}" if status.startswith("Limits") else None


def _entries(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield messages; commands in blocks are calls, what came of them their results."""
    is_waiting = False
    for message in messages:
        said = dict(as_map(message))
        text = text_of(said.get("content"))
        command = _COMMAND.search(text) if said.get("role") == "assistant" else None
        if command is not None and not said.get("tool_calls"):
            call = {"name": _CALL, "arguments": {"command": command[1].strip()}}
            yield {**said, "content": text.replace(command[0], "").strip(), "tool_calls": [call]}
            is_waiting = True
        elif is_waiting and said.get("role") == "user" and _OBSERVED.match(text):
            yield {"role": "tool", "name": _CALL, "content": text}
            is_waiting = False
        else:
            yield said
