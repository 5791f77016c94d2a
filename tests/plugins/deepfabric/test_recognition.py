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
    """Return how sure the reader is of a file with these lines, given the head the
    kernel gives it.
    """

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
    assert certainty(*row["lines"], name=row.get("name", "x.jsonl")) == row["sure"]


def test_line_ends_and_a_byte_order_mark_do_not_matter(certainty):
    assert certainty("\ufeff" + json.dumps(JOINED), "x", end="\r\n") == 0.95


LONG = "y" * 70_000


@pytest.mark.parametrize(
    "before", [(), ("{bad",), ({"sample": RECORD, "recorded": None, "id": 1},)]
)
@pytest.mark.parametrize(
    ("line", "sure"),
    [
        ({"messages": [{"role": "user", "content": LONG}], "tool_context": None}, 0.7),
        (
            {
                "messages": [{"role": "user", "content": LONG}],
                "tool_context": None,
                "recorded": REPLY,
            },
            0.9,
        ),
        (
            {
                "id": 1,
                "sample": {"messages": [{"role": "user", "content": LONG}]},
                "recorded": REPLY,
            },
            0.95,
        ),
        ({"metadata": {"note": LONG}, **RECORD, "recorded": REPLY}, 0.9),
        ({"id": 1, "text": LONG}, 0.3),
    ],
)
def test_a_line_longer_than_the_head_is_read_whole(certainty, before, line, sure):
    """What comes behind a long message tells as well."""
    assert certainty(*before, line) == (0.8 if before and isinstance(before[0], dict) else sure)


def test_lines_too_long_to_be_read_are_told_by_their_names(tmp_path, monkeypatch):
    """One cut off even so counts by the names in it.

    Of a foreign file no more is read than its head.
    """
    line = json.dumps({"messages": [], "tool_context": None, "x": LONG}).encode()
    assert DeepFabricReader.sniff(tmp_path / "gone", line[:65_536]) == 0.6
    assert DeepFabricReader.sniff(tmp_path / "gone", line[:60_000]) == 0.0
    foreign = b'{"history": [' + line.replace(b"messages", b"turns")[:65_536]
    assert DeepFabricReader.sniff(tmp_path / "gone", foreign) == 0.0
    monkeypatch.setattr(type(tmp_path), "open", None)
    assert DeepFabricReader.sniff(tmp_path / "gone", foreign) == 0.0


def test_bytes_of_anything(tmp_path):
    """Garbage and nothing are not recognised."""
    assert DeepFabricReader.sniff(tmp_path, b"\x00\xff garbage") == 0.0
    assert DeepFabricReader.sniff(tmp_path, b"") == 0.0
