"""Members of JSON objects in files: where values stand, and where lists among them are cut."""

import json

import pytest

from gradestack import DataError
from gradestack.jsonio import iter_list, iter_members, records
from tests.core.outcomes import data

WHOLE = {
    "info": {"policy": "p" * 50, "odd": '"[{\\'},
    "none": [],
    "runs": [{"n": n, "t": "é]" * n} for n in range(9)],
    "end": 1.5,
}


def _read(path, size):
    """Read an object member by member, the lists element by element."""
    members = {}
    for member in iter_members(path, size):
        if member.ranges is None:
            text = member.read(path)
            members[member.key] = json.loads(text)
        else:
            members[member.key] = [
                element.value for part in member.ranges for element in iter_list(path, part)
            ]
    return members


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("size", [1, 60, 10_000])
def test_any_cut_reads_the_same_values(tmp_path, indent, size):
    path = tmp_path / "x.json"
    text = json.dumps(WHOLE, indent=indent, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    assert _read(path, size) == WHOLE


def test_pieces_of_a_few_bytes_read_the_same_values(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    text = json.dumps(WHOLE, indent=1)
    path.write_bytes(b"\xef\xbb\xbf " + text.encode())
    for piece in (5, 7, 64):
        monkeypatch.setattr(records, "_PIECE", piece)
        assert _read(path, 60) == WHOLE


def test_elements_keep_their_line_and_ordinal(tmp_path):
    path = tmp_path / "x.json"
    text = json.dumps({"a": 1, "runs": [{"n": n} for n in range(5)]}, indent=1)
    path.write_text(text, encoding="utf-8")
    lines = path.read_text().split("\n")
    members = iter_members(path, 1)
    runs = next(member for member in members if member.key == "runs")
    elements = [element for part in runs.ranges for element in iter_list(path, part)]
    range_count = len(runs.ranges)
    assert range_count == 5
    ordinals = [element.ordinal for element in elements]
    assert ordinals == list(range(5))
    expected = [f'"n": {n}' for n in range(5)]
    assert [lines[element.line].strip() for element in elements] == expected


def test_what_msgspec_refuses_is_walked_over(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": [NaN, {"b": "\\ud800"}], "c": -Infinity, "d": 1}')
    assert list(_read(path, 1)) == ["a", "c", "d"]
    assert _read(path, 1)["a"][1] == {"b": "\ud800"}


@pytest.mark.parametrize(("text", "keys"), data(__file__, "broken.yaml")["broken_objects"])
def test_what_is_broken_ends_the_members(tmp_path, text, keys):
    """Everything before the break is there; a list that breaks is open, and its reader says how."""
    path = tmp_path / "x.json"
    path.write_text(text)
    assert _read(path, 1000) == keys


@pytest.mark.parametrize("text", ["", "  ", "[1]", "null"])
def test_what_is_no_object_is_refused(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"x\.json:1: (the file is empty|expected a JSON object)"):
        list(iter_members(path))
