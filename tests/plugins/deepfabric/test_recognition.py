"""Recognising files by their first lines."""

import json

import pytest

from gradestack_plugins.deepfabric.reader import DeepFabricReader
from tests.core.outcomes import data

DATA = data(__file__, "recognition.yaml")

RECORD = {"messages": [{"role": "user", "content": "q"}]}
REPLY = {"kind": "tool_call", "content": "c", "tool_call": {"name": "f", "arguments": {}}}
JOINED = {"sample": RECORD, "recorded": REPLY}


@pytest.fixture
def certainty(tmp_path):
    """Return how sure the reader is of a file with these lines, given the head the kernel gives it."""

    def sniff(*lines, name="x.jsonl", end="\n"):
        path = tmp_path / name
        path.write_text(end.join(line if isinstance(line, str) else json.dumps(line) for line in lines))
        with path.open("rb") as file:
            return DeepFabricReader.sniff(path, file.read(64 * 1024))

    return sniff


FIRST = DATA["first"]
WITHOUT_KIND = DATA["without_kind"]


@pytest.mark.parametrize(("line", "sure"), FIRST)
def test_the_first_line_tells(certainty, line, sure):
    """The surer the more of the format is in it; blank lines, line ends and a byte-order mark do not matter."""
    assert certainty("", line, "{") == sure
    assert certainty("\ufeff" + json.dumps(line), "x", end="\r\n") == sure


@pytest.mark.parametrize("line", WITHOUT_KIND)
def test_replies_without_a_kind(certainty, line):
    """Their keys tell them, as when they are read; one key that no reply has, and they may be anyone's."""
    assert certainty(line, line) == 0.3
    assert certainty({**line, "score": 1.0}) == (0.3 if "tool_call" in line else 0.0)


def test_failed_inferences_do_not_hide_the_replies_behind_them(certainty):
    """A lone message or error may be anyone's, so the next line tells."""
    failed = {"id": "a", "message": "timeout"}
    assert certainty(failed, {"id": "b", "error": "boom"}) == 0.0
    assert certainty(failed, WITHOUT_KIND[0]) == 0.3


def test_plain_texts(certainty):
    """Lines of nothing but text are replies, if the file is named as such lines are."""
    assert certainty('"one"', '"two"') == 0.1
    assert certainty('"one"', "{bad") == 0.1
    assert certainty('"one"', name="x.json") == 0.0
    assert certainty('"one"', {"a": 1}) == 0.0


BAD = DATA["bad"]


@pytest.mark.parametrize("line", BAD)
def test_a_first_line_that_is_merely_bad_hides_nothing(certainty, line):
    """Joined lines behind it are recognised."""
    assert certainty(line, JOINED) == 0.95


def test_joined_lines_without_any_reply(certainty):
    """A record under ``sample`` and no foreign key beside it is enough."""
    assert certainty({"id": "a", "sample": RECORD, "recorded": {"x": 1}}) == 0.8
    assert certainty({"sample": RECORD, "trajectory": []}) == 0.0


def test_behind_lines_of_another_form(certainty):
    """Lines of this format count little there, wherever they stand."""
    assert certainty({"other": 1}, JOINED) == 0.3
    assert certainty({"id": "1", "expected": [], "predicted": []}, JOINED) == 0.3
    assert certainty(*[{"other": 1}] * 10, JOINED) == 0.0


OTHERS = DATA["others"]


@pytest.mark.parametrize("line", OTHERS)
def test_other_files_are_not_recognised(certainty, line):
    """Nothing of the format, no recognition."""
    assert certainty(line) == 0.0


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("value", [[WITHOUT_KIND[1]], [{"text": "t"}, JOINED], {"a": {"text": "t"}, "b": "t"}])
def test_documents_over_many_lines_are_not_recognised(certainty, value, indent):
    """A line of a pretty-printed document is no line of this format, nor is a list."""
    assert certainty(json.dumps(value, indent=indent)) == 0.0
    assert certainty("[", json.dumps(WITHOUT_KIND[1]), "]") == 0.0


LONG = "y" * 70_000


@pytest.mark.parametrize("before", [(), ("{bad",), ({"sample": RECORD, "recorded": None, "id": 1},)])
@pytest.mark.parametrize(
    ("line", "sure"),
    [
        ({"messages": [{"role": "user", "content": LONG}], "tool_context": None}, 0.7),
        ({"messages": [{"role": "user", "content": LONG}], "tool_context": None, "recorded": REPLY}, 0.9),
        ({"id": 1, "sample": {"messages": [{"role": "user", "content": LONG}]}, "recorded": REPLY}, 0.95),
        ({"metadata": {"note": LONG}, **RECORD, "recorded": REPLY}, 0.9),
        ({"id": 1, "text": LONG}, 0.3),
    ],
)
def test_a_line_longer_than_the_head_is_read_whole(certainty, before, line, sure):
    """What comes behind a long message tells as well."""
    assert certainty(*before, line) == (0.8 if before and isinstance(before[0], dict) else sure)


def test_lines_too_long_to_be_read_are_told_by_their_names(tmp_path, monkeypatch):
    """One cut off even so counts by the names in it; of a foreign file no more is read than its head."""
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
