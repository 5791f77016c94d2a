"""Reader ``swe_agent``: trajectories of SWE-agent, and of EnIGMA, its sister for puzzles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from gradestack import Input, Usage
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
_STEP_KEYS: Final = frozenset({"action", "observation", "response"})


class SweAgent(RunReader):
    """Reads trajectories of SWE-agent, a JSON document each.

    Calls of tools are read from ``history``. Where answers are plain text, the ``action`` of an
    answer is a call of ``bash``, and the message behind the answer its result. Demonstrations are
    left out. The id is the file's name without its extension. Amounts and the way the run ended are
    those of ``info``.
    """

    version = "1"
    records_are_runs = True
    example_file = "INSTANCE.traj"
    marks = (("trajectory", "history", "info"),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        document = as_map(record)
        steps = document.get("trajectory")
        history = document.get("history")
        if not isinstance(steps, list) or not isinstance(history, list):
            return 0.0
        has_own_steps = all(as_map(step).keys() >= _STEP_KEYS for step in steps[:3])
        return _SURE if has_own_steps and "info" in document else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for document, source in records:
            run, info = start_run(document, source, name_of_file(file))
            run.entries += _read_history(as_list(document.get("history")))
            run.model = _find_model(document.get("replay_config"))
            run.usage = _read_usage(as_map(info.model_stats))
            run.ended = _name_end(info.exit_status)
            yield run


def _read_history(history: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of the run; a plain text action is a call, its observation the result."""
    is_waiting = False
    for entry in history:
        message = dict(as_map(entry))
        if message.get("is_demo"):
            continue
        action = word(message, "action").strip()
        role = message.get("role")
        if role == "assistant" and action and not message.get("tool_calls"):
            yield answer_with_command(word(message, "thought"), action)
            is_waiting = True
        elif is_waiting and message.get("role") == "user":
            content = text_of(message.get("content"))
            yield {"role": "tool", "name": COMMAND_TOOL, "content": content}
            is_waiting = False
        else:
            yield message


def _read_usage(amounts: Mapping[str, Any]) -> Usage:
    """Return the run's own totals. A replay records zeros, which say nothing."""
    requests = count_of(amounts.get("api_calls"))
    if not as_number(amounts.get("tokens_sent")):
        return Usage(requests=requests or None)
    read, written = (count_of(amounts.get(key)) for key in ("tokens_sent", "tokens_received"))
    cost = as_number(amounts.get("instance_cost"))
    return Usage(requests=requests, input_tokens=read, output_tokens=written, cost_usd=cost)


def _find_model(config: Any) -> str | None:
    """Return the model's name from the configuration, which is an object or its JSON text."""
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except ValueError:
            return None
    agent = as_map(config).get("agent")
    model = as_map(as_map(agent).get("model"))
    return word(dict(model), "name") or word(dict(model), "model_name") or None


def _name_end(status: str) -> str | None:
    """Return the end of the run: SWE-agent submits at a limit, too, and says so in brackets."""
    if "exit_cost" in status or "exit_context" in status:
        return f"limit:{status}"
    return "completed" if status.startswith("submitted") else None
