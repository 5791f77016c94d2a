"""Builders of recorded letta-evals results, in the document's and the program's layout."""

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gradestack import Inputs
from gradestack.suites.recognition import name_inputs
from gradestack_plugins.letta.reader import Letta


def spoken(text: Any) -> dict[str, Any]:
    return {
        "id": "message-1",
        "date": "2031-01-01",
        "message_type": "assistant_message",
        "content": text,
    }


def grade(score: Any, rationale: str = "", **metadata: Any) -> dict[str, Any]:
    return {"score": score, "rationale": rationale, "metadata": metadata}


def result(identifier: Any = 0, answer: Any = "Oslo", **fields: Any) -> dict[str, Any]:
    """One result; ``trajectory`` defaults to one turn with the answer."""
    sample = {
        "id": identifier,
        "input": "Capital?",
        "ground_truth": "Oslo",
        "agent_args": None,
        "rubric_vars": None,
    }
    base = {
        "sample": sample | fields.pop("sample", {}),
        "submission": answer,
        "submissions": None,
        "trajectory": [[spoken(answer)]],
        "agent_id": "agent-1",
        "grade": grade(1.0),
        "grades": {"quality": grade(1.0)},
        "model_name": None,
        "agent_usage": None,
    }
    return base | fields


def failure(
    identifier: Any = 0, message: str = "ReadTimeout: no answer", **fields: Any
) -> dict[str, Any]:
    gone = {"submission": "", "trajectory": [], "agent_id": None, "grades": None}
    return result(identifier) | gone | {"grade": grade(0.0, f"Error: {message}")} | fields


def wrapped(record: Any) -> dict[str, Any]:
    return {"type": "result", "result": record}


def write(path: Path, records: Any) -> Path:
    """Write JSON lines (text is written as it is) and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
        for record in records
    )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


def read(*paths: Path, reader: Any = None) -> list[Any]:
    reader = reader or Letta()
    inputs = Inputs(data=name_inputs(list(paths)))
    index = reader.index(inputs)
    shards = list(reader.plan(inputs, index))
    expected = list(range(len(shards)))
    ordinals = [shard.ordinal for shard in shards]
    assert ordinals == expected
    return [record for shard in shards for record in reader.read(shard, index)]


def rows(directory: Path) -> list[dict[str, Any]]:
    documents = []
    results_path = directory / "results.jsonl"
    text = results_path.read_text(encoding="utf-8")
    for line in text.splitlines():
        document = json.loads(line)
        documents.append(document)
    return documents


@pytest.fixture(scope="session")
def letta() -> ModuleType:
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def reference_dataset() -> Path:
    """The field's dataset; tests that need it are skipped when it is not at hand."""
    root = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not root:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    root_path = Path(root)
    letta_folder = root_path / "letta"
    return letta_folder / "dataset.jsonl"
