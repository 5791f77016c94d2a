"""inspect_ai: score() over a log of all samples, with a scorer that compares the calls.

The log is built in memory from the recording; what each sample expects stands in its metadata.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import side_common

api = importlib.import_module("inspect_ai")
log = importlib.import_module("inspect_ai.log")
logs = importlib.import_module("inspect_ai.log._log")
model = importlib.import_module("inspect_ai.model")
scorer = importlib.import_module("inspect_ai.scorer")
tool = importlib.import_module("inspect_ai.tool")


@scorer.scorer(metrics=[scorer.mean()])  # type: ignore[untyped-decorator,unused-ignore] # known where it runs
def calls_equal() -> Any:
    """Return a scorer: 1 when the calls made are those expected."""

    async def score(state: Any, target: Any) -> Any:  # noqa: ARG001 - what a scorer is given
        made = [
            (call.function, None if call.parse_error else call.arguments)
            for call in state.messages[-1].tool_calls or ()
        ]
        return scorer.Score(value=1.0 if made == state.metadata["expected"] else 0.0)

    return score


def sample_of(record: side_common.Calls) -> Any:
    """Return a record as a sample of a log."""
    calls = [
        tool.ToolCall(
            id=f"call-{place}",
            function=name,
            arguments=made or {},
            parse_error=None if made is not None else "not JSON",
        )
        for place, (name, made) in enumerate(record.made)
    ]
    return log.EvalSample(
        id=record.number,
        epoch=1,
        input=record.input,
        target="",
        messages=[
            model.ChatMessageUser(content=record.input),
            model.ChatMessageAssistant(content=record.answer, tool_calls=calls),
        ],
        metadata={"expected": record.expected},
    )


def grade(path: Path, limit: int, job: dict[str, Any]) -> float:
    """Return the mean score."""
    samples = [sample_of(record) for record in side_common.records(path, limit)]
    spec = log.EvalSpec(
        created="2025-01-01T12:00:00+00:00",
        task="calls",
        dataset=log.EvalDataset(name="recording", samples=limit),
        model="mockllm/model",
        config=log.EvalConfig(),
    )
    scored = api.score(
        log.EvalLog(eval=spec, status="success", samples=samples),
        calls_equal(),
        display="none",
        copy=job.get("copy", True),
    )
    return float(scored.results.scores[0].metrics["mean"].value)


if __name__ == "__main__":
    sys.exit(side_common.run("inspect_ai", grade))
