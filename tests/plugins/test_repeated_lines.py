"""A line that is written twice counts once, wherever a line says which one it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradestack import Input, Inputs, Sample, discover, replace, testing

REGISTRY = discover()
CASES = [
    case
    for folder in ("sessions", "traces")
    for case in testing.cases(Path(__file__).parents[1] / "cases" / folder)
    if not case.file.startswith("damaged") and list(case.data["files"]) == ["log.jsonl"]
]
IDENTITIES = ("uuid", "timestamp", "part", "id", "span_id", "request_id", "requestId")
"""Keys of which a line that can be told from others has one."""


def samples(reader, file, lines):
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    inputs = Inputs(data=(Input(path=file, name=file.stem, shown=file.name),))
    index = reader.index(inputs)
    read = [each for shard in reader.plan(inputs, index) for each in reader.read(shard, index)]
    return [replace(each, source=None, remarks={}) for each in read if isinstance(each, Sample)]


def has_identity(line, reader):
    if reader == "gemini_cli" and "id" not in line:
        return False  # pieces of a text may be equal
    return isinstance(line, dict) and any(line.get(key) for key in IDENTITIES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_repeated_line_counts_once(case, tmp_path):
    """Neither calls nor usage grow: agents that resume a session write lines again."""
    name = case.data["reader"]
    reader = REGISTRY.load("reader", name)()
    lines = case.data["files"]["log.jsonl"]
    if not isinstance(lines, list):
        pytest.skip("the file is given as text")
    doubled = [copy for line in lines for copy in [line] * (1 + has_identity(line, name))]
    file = tmp_path / "log.jsonl"
    assert samples(reader, file, doubled) == samples(reader, file, lines)
