"""letta-evals: the bare ToolGrader with exact_match, one sample at a time, none kept.

It compares texts, so expected and made calls are written as JSON with sorted keys; the made ones
are the assistant's message.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import importlib
import sys
from pathlib import Path
from typing import Any

import side_common

orjson = importlib.import_module("orjson")
graders = importlib.import_module("letta_evals.graders")
tools = importlib.import_module("letta_evals.graders.tool")
models = importlib.import_module("letta_evals.models")
messages = importlib.import_module("letta_client.types.agents.assistant_message")
NOON = dt.datetime(2025, 1, 1, 12, tzinfo=dt.UTC)


async def graded(path: Path, limit: int) -> float:
    """Return the mean score."""
    grader = tools.ToolGrader(function="exact_match", extractor="last_assistant")
    sample, message, dumps, sort = (
        models.Sample,
        messages.AssistantMessage,
        orjson.dumps,
        orjson.OPT_SORT_KEYS,
    )
    total = 0.0
    for record in side_common.records(path, limit):
        said = message(
            id="message",
            content=dumps(record.made, option=sort).decode(),
            date=NOON,
            message_type="assistant_message",
        )
        truth = dumps(record.expected, option=sort).decode()
        result, _ = await grader.grade(
            sample(id=record.number, input=record.input, ground_truth=truth), [[said]]
        )
        total += result.score
    return total / limit


def grade(path: Path, limit: int, _job: dict[str, Any]) -> float:
    """Return the mean score."""
    return asyncio.run(graded(path, limit))


if __name__ == "__main__":
    sys.exit(side_common.run("letta-evals", grade))
