"""Builders of records and an independent scorer, written from the rules, for the tests of this
folder.
"""

import functools
import json
import operator
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradestack import Input, Inputs, Key, Source
from gradestack.metrics.computed import compute_figures
from gradestack.testing.components import make_grades
from gradestack_plugins.tau_bench.reader import TauBench, sample_of


def make_call(name: Any, arguments: Any = "{}", identifier: str = "c0") -> dict[str, Any]:
    """Return a message with one tool call; arguments that are no text are encoded."""
    if isinstance(arguments, str):
        text = arguments
    else:
        text = json.dumps(arguments)
    function = {"name": name, "arguments": text}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": identifier, "type": "function", "function": function}],
    }


def make_record(actions: Any = (), traj: Any = (), **fields: Any) -> dict[str, Any]:
    """Return a record; ``actions`` are (name, kwargs) pairs or anything else as it is."""
    if isinstance(actions, tuple | list) and all(isinstance(action, tuple) for action in actions):
        actions = [{"name": name, "kwargs": kwargs} for name, kwargs in actions]
    if isinstance(traj, tuple):
        traj = list(traj)
    record_info = {
        "task": {"user_id": "u", "actions": actions, "instruction": "Do it.", "outputs": []},
        "source": "user",
    }
    return {"task_id": 0, "reward": 0.0, "info": record_info, "traj": traj, "trial": 0} | fields


def sample(record: Any, **options: Any) -> Any:
    source = Source(file="results.json")
    return sample_of(record, source, **options)


def read(path: Path, *more: Path, reader: TauBench | None = None) -> list[Any]:
    reader = reader or TauBench()
    paths = (path, *more)
    inputs = Inputs(
        data=tuple(
            Input(path=data_path, name=data_path.stem, shown=data_path.name) for data_path in paths
        )
    )
    shards = reader.plan(inputs, None)
    return [record for shard in shards for record in reader.read(shard, None)]


def fold(aggregator: Any, grades: Any, samples: Any = None) -> Any:
    """Return the figures of grades, or of (key, grade) pairs."""
    pairs = []
    for ordinal, entry in enumerate(grades):
        if samples is not None:
            one = samples[ordinal]
            key = Key(id=one.id, run=one.run, model=one.model, ordinal=ordinal)
            pairs.append((key, entry))
        elif isinstance(entry, tuple):
            pairs.append(entry)
        else:
            pairs.append((Key(id=str(ordinal), ordinal=ordinal), entry))
    return compute_figures(aggregator, make_grades(aggregator, [pairs]))


def ref_similarity(expected: Any, actual: Any) -> float:
    if expected == actual:
        return 1.0
    if type(expected) is not type(actual) or not isinstance(expected, dict | list):
        return 0.0
    if not actual:
        return 0.0
    if not expected:
        return 1.0
    if isinstance(expected, dict):
        scores = []
        for key in expected:
            scores.append(ref_similarity(expected[key], actual[key]) if key in actual else 0.0)
    else:
        scores = [max(ref_similarity(item, other) for other in actual) for item in expected]
    return functools.reduce(operator.add, scores, 0.0) / len(scores)


def ref_calls(traj: Any) -> list[tuple[Any, Any]]:
    """Calls of a conversation, straight from the script's rules; raises where it does."""
    calls = []
    for message in traj:
        tool_calls = message.get("tool_calls")
        for call in tool_calls or []:
            function = call.get("function", {})
            if not isinstance(function, dict):
                raise TypeError
            try:
                text = function.get("arguments", "{}")
                arguments = json.loads(text)
            except (ValueError, TypeError):
                arguments = {}
            calls.append((function.get("name", ""), arguments))
    return calls


def ref_score(record: dict[str, Any]) -> float:
    """Partial score, straight from the script's rules; raises where it does."""
    if "error" in record.get("info", {}):
        return 0.0
    try:
        task = record["info"]["task"]
        actions = task["actions"]
    except KeyError:
        return 0.0
    calls = ref_calls(record["traj"])
    if not actions:
        return 0.0 if calls else 1.0
    scores = []
    for action in actions:
        name = action.get("name", "")
        kwargs = action.get("kwargs", {})
        similarities = []
        for called, arguments in calls:
            if called == name:
                similarities.append(0.4 + 0.6 * ref_similarity(kwargs, arguments))
        largest_similarity = max(similarities, default=0.0)
        scores.append(largest_similarity)
    return functools.reduce(operator.add, scores, 0.0) / len(scores)


@pytest.fixture(scope="session")
def tau() -> SimpleNamespace:
    return SimpleNamespace(
        call=make_call,
        record=make_record,
        sample=sample,
        read=read,
        fold=fold,
        ref_similarity=ref_similarity,
        ref_score=ref_score,
    )


@pytest.fixture(scope="session")
def reference_file() -> Path:
    """The field's gpt-4o airline run; tests that need it are skipped when it is not at hand."""
    root = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not root:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    root_path = Path(root)
    tau_bench_folder = root_path / "tau-bench"
    return tau_bench_folder / "gpt-4o-airline.json"
