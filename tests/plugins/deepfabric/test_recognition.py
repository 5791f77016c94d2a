"""Recognising files by their first lines."""

import json

import pytest

from gradestack_plugins.deepfabric.reader import DeepFabricReader
from tests.core.outcomes import data

RECORD = {"messages": [{"role": "user", "content": "q"}]}
REPLY = {"kind": "tool_call", "content": "c", "tool_call": {"name": "f", "arguments": {}}}
JOINED = {"sample": RECORD, "recorded": REPLY}


@pytest.fixture
def certainty(tmp_path):
    """Return the reader's certainty of a file with these lines, given its first bytes."""

    def sniff(*lines, name="x.jsonl", end="\n"):
        path = tmp_path / name
        path.write_text(
            end.join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        )
        with path.open("rb") as file:
            return DeepFabricReader.sniff(path, file.read(64 * 1024))

    return sniff


@pytest.mark.parametrize("row", data(__file__, "recognition.yaml"))
def test_lines_tell(certainty, row):
    lines = row["lines"]
    assert certainty(*lines, name=row.get("name", "x.jsonl")) == row["sure"]


def test_line_ends_and_a_byte_order_mark_do_not_matter(certainty):
    text = json.dumps(JOINED)
    assert certainty("\ufeff" + text, "x", end="\r\n") == 0.95


def test_bytes_of_anything(tmp_path):
    """Garbage and nothing are not recognised."""
    assert DeepFabricReader.sniff(tmp_path, b"\x00\xff garbage") == 0.0
    assert DeepFabricReader.sniff(tmp_path, b"") == 0.0
