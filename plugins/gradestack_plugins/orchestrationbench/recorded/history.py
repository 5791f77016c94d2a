"""The gold conversation before a step, as a judge gets to see it."""

from __future__ import annotations

from typing import Any

from gradestack import JSON
from gradestack.jsonio import standard_loads

Turn = dict[str, JSON]


def history_before(label: Any, step: Any) -> list[Turn]:
    """Return the user and assistant turns of the label before ``step``, without empty ones.

    Keys are read as numbers joined by dashes and sorted. A turn with calls (``N-1``) takes the place of its text ``N``:
    it becomes a user turn holding the ``refinedQuery`` arguments of its calls. Tool results (``N-2``) are left out.

    Raises:
        Exception: The label is not what the original takes it for (a key that is no number, gold arguments that are no
            JSON text, a ``refinedQuery`` that is no text, ...).
    """
    turns: list[Turn] = []
    for key in sorted(label, key=lambda name: [int(part) for part in name.split("-")]):
        if key == step:
            break
        entry = label[key]
        if "-1" in key:
            if turns and turns[-1]["key"] == key.split("-")[0]:
                turns.pop()
            if calls := entry.get("tool_calls"):
                turns.append({"key": "", "role": "user", "content": " ".join(_queries(calls))})
        if "-2" in key:
            continue
        if isinstance(entry, dict) and "content" in entry and entry.get("role") in ["user", "assistant"]:
            turns.append({"key": key, "role": entry["role"], "content": entry["content"]})
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns if turn["content"] != ""]


def _queries(calls: Any) -> list[str]:
    decoded = [standard_loads(call["function"]["arguments"]) for call in calls]
    return [arguments["refinedQuery"] for arguments in decoded if "refinedQuery" in arguments]


def system_message(label: Any) -> Any:
    """Return the content of the label's first turn when it is the system message, else "".

    Raises:
        Exception: There is no turn ``1``, or it is not a message.
    """
    first = label["1"]
    return first["content"] if first["role"] == "system" else ""
