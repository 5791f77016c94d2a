"""Reader ``mini_swe_agent``: trajectories of mini-swe-agent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from typing_extensions import override

from gradestack import Input, Usage, compile_later
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.histories.trajectories import (
    COMMAND_TOOL,
    answer_with_command,
    name_of_file,
    start_run,
)
from gradestack_plugins.readers.chat import text_of, word
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_SURE: Final = 0.97
_COMMAND: Final = compile_later(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n?```", re.DOTALL)
"""The command of an answer: its first block."""
_OBSERVED: Final = compile_later(r"\s*<(?:returncode|exit_code)>")


class MiniSweAgent(RunReader):
    """Reads trajectories of mini-swe-agent, a JSON document each.

    A command in an answer's block is a call of ``bash``, and the message behind it its result, with
    the exit code it begins with. The id is the instance's, else the file's name without its
    extension. End and cost of the run are those of ``info``.
    """

    version = "1"
    records_are_runs = True
    example_file = "INSTANCE.traj.json"
    marks = (("trajectory_format", "messages", "info"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        is_own = word(record, "trajectory_format").startswith("mini-swe-agent")
        if is_own and isinstance(record.get("messages"), list):
            return _SURE
        return 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for document, source in records:
            identifier = word(document, "instance_id") or name_of_file(file)
            run, info = start_run(document, source, identifier)
            run.entries += _entries(as_list(document.get("messages")))
            model = as_map(info.config).get("model")
            run.model = word(model, "model_name") or None
            amounts = as_map(info.model_stats)
            requests = count_of(amounts.get("api_calls"))
            cost = amounts.get("instance_cost")
            cost_usd = as_number(cost)
            run.usage = Usage(requests=requests, cost_usd=cost_usd)
            if info.exit_status.startswith("Limits"):
                run.ended = f"limit:{info.exit_status}"
            elif info.exit_status == "Submitted":
                run.ended = "completed"
            yield run


def _entries(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield messages; commands in blocks are calls, and the messages behind them their results."""
    is_waiting = False
    for recorded in messages:
        message = dict(as_map(recorded))
        text = text_of(message.get("content"))
        command = None
        if message.get("role") == "assistant":
            command = _COMMAND.search(text)
        if command is not None and not message.get("tool_calls"):
            content = text.replace(command[0], "").strip()
            yield {**message, **answer_with_command(content, command[1].strip())}
            is_waiting = True
        elif is_waiting and message.get("role") == "user" and _OBSERVED.match(text):
            yield {"role": "tool", "name": COMMAND_TOOL, "content": text}
            is_waiting = False
        else:
            yield message
