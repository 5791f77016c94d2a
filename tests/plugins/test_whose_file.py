"""Readers of tau2-bench and BFCL take their own files and nobody else's."""

import os
from pathlib import Path

import pytest

from gradestack_plugins.bfcl.reader import Bfcl
from gradestack_plugins.tau2_bench.reader import Tau2

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")
READERS = {"tau2": Tau2, "bfcl": Bfcl}


def files():
    roots = [EXAMPLES, *([Path(DATA)] if DATA else [])]
    return [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("name", READERS)
def test_no_file_of_another_format_is_taken(name):
    """What does not stand in a folder of the format is not recognised, directories neither."""
    paths = files()
    taken = [path for path in paths if READERS[name].sniff(path, path.read_bytes()[: 64 * 1024]) > 0]
    folders = [path for path in {each.parent for each in paths} if READERS[name].sniff(path, b"") > 0]
    assert [path for path in (*taken, *folders) if name not in path.parts] == []


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "a", "result": [1]}',
        '{"id": "run_1", "result": {"x": 1}}',
        '{"id": "run_1", "ground_truth": "x"}',
        '{"id": "run_1", "input": "x", "ground_truth": ["x"]}',
        '{"id": "run_1", "question": "What?", "answer": "x"}',
        '{"accuracy": 0.5}',
        '{"id": 1, "messages": [{"role": "user", "content": "task_id termination_reason"}]}',
        '{"info": {"x": 1}, "tasks": []}',
        '[{"task_id": 1, "reward": 1.0, "traj": []}]',
        '{"simulations": []}',
        "",
        "null",
    ],
)
def test_what_only_looks_alike_is_not_taken(text, tmp_path):
    """A few keys of the same name are not enough."""
    path = tmp_path / "log.json"
    path.write_text(text)
    assert [name for name, reader in READERS.items() if reader.sniff(path, text.encode()) > 0] == []
