"""Ranges of JSON lists: cut only where it does not show, whatever the file holds."""

import json
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradestack import DataError
from gradestack.jsonio import SHARD_BYTES, Range, iter_list, list_ranges, records
from tests.conftest import examples
from tests.core.outcomes import data

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def shown(elements):
    shown_elements = []
    for element in elements:
        shown_elements.append(
            (element.ordinal, element.line, repr(element.value), element.problem, element.fatal)
        )
    return shown_elements


def outcome(path, parts):
    """Return everything that reading a file's ranges gives, refusal included."""
    try:
        return shown(element for part in parts for element in iter_list(path, part))
    except DataError as error:
        return str(error)


def reference(path):
    """Return the same for the whole file, read at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_PIECE", 10**9)
        return outcome(path, [None])


def same(path, size, piece=1024 * 1024):
    """Return the ranges of a file, after comparing what they give with what the whole
    file gives.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_PIECE", piece)
        ranges = list(list_ranges(path, size))
        patch.setattr(records, "_PIECE", max(size, 1))
        assert outcome(path, [None]) == reference(path)
    assert outcome(path, ranges) == reference(path)
    assert ranges[0].start == 0
    last_range = ranges[-1]
    assert last_range.end is None
    parts = ranges[:-1]
    ends = [part.end for part in parts]
    expected = [part.start for part in ranges[1:]]
    assert ends == expected
    return ranges


def test_ranges_hold_whole_elements(tmp_path):
    """They meet behind the first comma at least so many bytes on.

    Lines and rows are counted through.
    """
    path = tmp_path / "x.json"
    path.write_text('[\n{"a": 1},\n{"b": 2} , [3],\n{"c": "}, {"}\n]')
    assert same(path, 10) == [Range(0, 11, 1, 0), Range(11, 22, 2, 1), Range(22, None, 3, 2)]
    assert same(path, 14) == [Range(0, 22, 1, 0), Range(22, None, 3, 2)]


def test_a_small_file_is_one_range(tmp_path):
    path = tmp_path / "x.json"
    for text in ("", "x", "[" + "{}," * 100 + "{}]"):
        path.write_text(text)
        ranges = list(list_ranges(path))
        assert ranges == [Range()]
    expected = 8 * 1024 * 1024
    assert expected == SHARD_BYTES


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *data(__file__, "broken.yaml")["cuts"],
        ("[" + "[" * 5000 + "]" * 5000 + ",[1],[2]]", 3),
        ('[{"a":' + "9" * 5000 + '},{"b":2}]', 2),
    ],
)
def test_a_list_is_cut_only_where_a_whole_reading_would_go_on(tmp_path, text, count):
    """Broken elements with closed brackets are no obstacle.

    From anything else on, the rest is one range.
    """
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    same_count = len(same(path, 1))
    assert same_count == count


def test_other_messages_of_msgspec_cost_time_only(tmp_path, monkeypatch):
    """Were they worded otherwise, the ranges would be the same."""
    path = tmp_path / "x.json"
    text = json.dumps([{"n": n, "s": ']}\\"' * n} for n in range(20)], indent=1)
    path.write_text(text)
    ranges = same(path, 100)
    monkeypatch.setattr(records, "_TRAILING", "so much for this")
    monkeypatch.setattr(records, "_TRUNCATED", "that is all")
    assert same(path, 100, piece=50) == ranges
    assert len(ranges) > 5


ATOMS = rb"""
1 -0.0 1E400 NaN -Infinity null "x" "\ud800" "\uD83D\ude00" "a\"b" "\\" "[{" "]}" {} []
""".split()
ATOMS += [b'", "', b'"\xc3\xa9"', b"12345678901234567890123", b'"\\\\ud800 NaN"']
WRONG = rb'"\x" "\u12" "\u000Infinity" 01 1. tru 1NaN'.split()
WRONG += [
    b'"\xff"',
    b'"\xc3"',
    b'"\xed\xa0\x80"',
    b'"a\nb"',
    b'"\x00"',
    b"9" * 4301,
    b"\xef\xbb\xbf",
]
SPACE = st.sampled_from([b"", b"", b" ", b"\n", b"\r\n", b"\n  ", b"\t"])


def container_of(values, space, is_object):
    """Return the text of an object or a list of values, with space before and after each."""
    prefix = b'"k":' if is_object else b""
    members = b",".join(space + prefix + value + space for value in values)
    return (b"{%b}" if is_object else b"[%b]") % (space + members)


TEXT = st.recursive(
    st.sampled_from(ATOMS) | st.sampled_from(ATOMS) | st.sampled_from(WRONG),
    lambda inner: st.builds(container_of, st.lists(inner, max_size=3), SPACE, st.booleans()),
    max_leaves=6,
)
ELEMENT = TEXT | st.builds(
    lambda number, inner: b'{"id":%d, "v": %b}' % (number, inner), st.integers(0, 99), TEXT
)


@st.composite
def files(draw):
    """Draw a list file as hostile as they come.

    Any spacing, values only Python reads, and damage anywhere.
    """
    before = draw(SPACE)
    behind = draw(SPACE)
    text = (
        b"["
        + before
        + (behind + b"," + before).join(draw(st.lists(ELEMENT, max_size=8)))
        + behind
        + b"]"
    )
    text = draw(st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf", b"\n", b"x"])) + text
    text += draw(st.sampled_from([b"", b"", b"\n", b" x", b"]"]))
    offset = draw(st.integers(0, len(text)))
    harm = draw(st.sampled_from(["none", "none", "cut", "insert", "replace"]))
    if harm == "cut":
        return text[:offset]
    if harm != "none":
        rest = text[offset + (harm == "replace") :]
        return (
            text[:offset]
            + draw(
                st.sampled_from([b'"', b"\\", b",", b"}", b"]", b"{", b"[", b"\xff", b" ", b"1"])
            )
            + rest
        )
    return text


@settings(max_examples=examples(300), deadline=None)
@given(files(), st.integers(0, 120), st.integers(1, 80))
@example(b'["x"",{"k":1},{"k":1}]', 0, 1)
@example(b'[1,"\x00",{"id":0, "v": 1}]', 0, 1)
def test_ranges_give_the_elements_of_the_whole_file(tmp_path_factory, text, size, piece):
    path = tmp_path_factory.mktemp("ranges") / "x.json"
    path.write_bytes(text)
    same(path, size, piece)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(JSON, max_size=6), st.integers(1, 60), st.sampled_from([None, 1]), st.booleans())
def test_ranges_give_the_values_that_were_written(
    tmp_path_factory, values, size, indent, ascii_only
):
    path = tmp_path_factory.mktemp("values") / "x.json"
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    path.write_text(text, encoding="utf-8")
    ranges = list_ranges(path, size)
    elements = [element for part in ranges for element in iter_list(path, part)]
    expected = [(n, v, None) for n, v in enumerate(values)]
    assert [(element.ordinal, element.value, element.problem) for element in elements] == expected


@pytest.mark.slow
def test_the_end_of_a_broken_file_is_not_loaded(tmp_path):
    """A range that could not be cut is read in bounded memory, and so is a whole file."""
    path = tmp_path / "big.json"
    records = ",".join(json.dumps({"n": n, "text": "x" * 500}) for n in range(8_000))
    path.write_text(f'["no record",{records}')
    (part,) = list_ranges(path)
    for given_part in (part, None):
        tracemalloc.start()
        count = sum(1 for _ in iter_list(path, given_part))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count == 8_002
        status = path.stat()
        assert peak < status.st_size
