"""JSON in and out: the standard library's values, record by record, in bounded memory."""

import json
import math
import re
import tracemalloc
from functools import partial
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack.jsonio import (
    JsonProblem,
    Range,
    compact,
    dumps,
    iter_records,
    line_ranges,
    loads,
    whole_line,
)
from tests.conftest import examples
from tests.core.outcomes import data

DATA = data(__file__, "values_and_lines.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: Expecting value at character 0"),
        ('{"a": }', "not JSON: Expecting value at character 6"),
        (b'{"a": "\xff"}', "not UTF-8: byte 7"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "^a whole number of more than 4300 digits is not read$"),
    ],
)
def test_what_cannot_be_read_is_one_kind_of_problem(text, message):
    with pytest.raises(JsonProblem, match=message):
        loads(text)


JSON_TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(
    ["\ud800", "\udfff\ud800", "\x00", "\x7f", "é"]
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from([1e16, -0.0, 5e-324, 2**63, 2**64, -(2**63) - 1, 10**400])
    | JSON_TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(JSON_TEXTS, inner, max_size=4),
    max_leaves=12,
)
PIECES = rb'NaN -Infinity 1e999 -0 1.0E+5 01 "\ud800" { ] , \ {"a":1,"a":[]} " true nul'.split()
PIECES += [b"\xff", b"\xed\xa0\x80", b"\x00", b"\n", b"\xef\xbb\xbf", b"'", b"\xa0", b"9" * 30]


def outcome(read, data):
    """Read a text, and return the repr of its value, or "refused"."""
    try:
        return repr(read(data))
    except (ValueError, RecursionError):
        return "refused"


def agrees(data):
    """Check that our reading and the standard library's are one, and that a refusal is a
    JsonProblem.
    """
    expected = outcome(json.loads, data)
    if expected == "refused":
        with pytest.raises(JsonProblem):
            loads(data)
    else:
        document = loads(data)
        shown = repr(document)
        assert shown == expected


@settings(max_examples=examples(150), deadline=None)
@given(value=JSON_VALUES, escaped=st.booleans(), indent=st.sampled_from([None, 1]))
def test_any_value_reads_as_the_standard_library_reads_it(value, escaped, indent):
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    agrees(text)
    agrees(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=examples(60), deadline=None)
@given(
    value=JSON_VALUES,
    encoding=st.sampled_from(
        ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"]
    ),
)
def test_other_encodings_read_as_the_standard_library_reads_them(value, encoding):
    text = json.dumps(value, ensure_ascii=False)
    agrees(text.encode(encoding, "surrogatepass"))


@settings(max_examples=examples(200), deadline=None)
@given(data=st.data(), value=JSON_VALUES)
def test_spoilt_bytes_are_refused_or_read_alike(data, value):
    booleans = st.booleans()
    text = json.dumps(value, ensure_ascii=data.draw(booleans))
    encoded = text.encode("utf-8", "surrogatepass")
    start = data.draw(st.integers(0, len(encoded)))
    end = data.draw(st.integers(start, min(len(encoded), start + 3)))
    piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=3))
    agrees(encoded[:start] + piece + encoded[end:])


@pytest.mark.parametrize("text", DATA["odd_texts_read_as_the_standard_library_reads_them"])
def test_odd_texts_read_as_the_standard_library_reads_them(text):
    agrees(text)
    agrees(text.encode("utf-8", "surrogatepass"))


@given(value=JSON_VALUES)
def test_indented_json_is_laid_out_as_the_standard_library_does_it(value):
    value = json.loads(dumps(value))  # without NaN
    unescaped, escaped = (
        json.dumps(value, indent=2, sort_keys=True, ensure_ascii=is_ascii)
        for is_ascii in (False, True)
    )
    text = dumps(value, indent=2)
    match = re.search("[\ud800-\udfff]", unescaped)
    expected = escaped if match else unescaped
    assert text == expected


@given(
    st.dictionaries(
        st.text(max_size=4),
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        max_size=4,
    )
)
def test_flat_objects_are_written_the_same(value):
    """One on a line is what it is as an item of a list, which is written another way."""
    text = dumps(value)
    expected = dumps([value])[1:-1]
    assert text == expected


@given(st.floats())
def test_floats_read_back_equal(number):
    text = dumps([number])
    document = loads(text)
    back = document[0]
    if math.isfinite(number):
        assert back == number
        assert math.copysign(1, back) == math.copysign(1, number)
    else:
        expected = {True: "NaN", False: "Infinity" if number > 0 else "-Infinity"}[
            math.isnan(number)
        ]
        assert back == expected


def test_compact_keeps_the_order_and_never_raises():
    loop = []
    loop.append(loop)
    assert compact({"b": 1, "a": "é"}) == '{"b": 1, "a": "é"}'
    assert compact({1, 2}) == "{1, 2}"
    assert compact(loop) == "[[...]]"


def lines(path, *part):
    records = iter_records(path, Range(*part), "lines", lambda data: data)
    return [(record.line, record.value) for record in records]


def test_blank_lines_are_left_out_and_counted(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbf1\r\n\n  \n2")
    assert lines(path) == [(1, b"1\r"), (4, b"2")]


def test_ranges_hold_whole_lines(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"aaaa\nbb\ncccccccc\nd")
    assert list(line_ranges(path, 6)) == [(0, 8, 1), (8, 17, 3), (17, 18, 4)]
    (tmp_path / "empty").touch()
    empty_folder = tmp_path / "empty"
    assert list(line_ranges(empty_folder)) == []


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"", b"bb\r", b"  ", b"\xc3\xa9" * 5]), max_size=8),
    st.integers(1, 30),
    st.booleans(),
    st.integers(1, 12),
)
def test_any_cut_reads_the_same_lines(tmp_path_factory, parts, size, ended, long):
    path = tmp_path_factory.mktemp("cut") / "x"
    path.write_bytes(b"\n".join(parts) + (b"\n" if ended else b""))
    uncut_lines = lines(path)
    with patch("gradestack.jsonio.files._LONG", long):
        assert lines(path) == uncut_lines
        pieces = [line for part in line_ranges(path, size) for line in lines(path, *part)]
    assert pieces == uncut_lines


@settings(deadline=None)
@given(st.binary(max_size=40), st.integers(1, 12))
def test_whole_lines_are_the_file(tmp_path_factory, content, long):
    """Short and long lines come with their ends, the last one as it is."""
    path = tmp_path_factory.mktemp("lines") / "x"
    path.write_bytes(content)
    with patch("gradestack.jsonio.files._LONG", long), path.open("rb") as file:
        read = list(iter(partial(whole_line, file), b""))
    assert b"".join(read) == content
    assert all(line.endswith(b"\n") for line in read[:-1])
    expected = len(content.split(b"\n")) - content.endswith(b"\n") - (content == b"")
    assert len(read) == expected


def test_a_long_line_takes_its_size_once(tmp_path):
    """It is read in one piece, and only looked at for its end where files are cut into ranges."""
    path = tmp_path / "x"
    size = 8_000_000
    path.write_bytes(b"a\n" + b"x" * size + b"\nb\n")
    tracemalloc.start()
    try:
        assert list(line_ranges(path, 10)) == [(0, size + 3, 1), (size + 3, size + 5, 3)]
        _, cutting = tracemalloc.get_traced_memory()
        records = iter_records(path, decode=len)
        assert [record.value for record in records] == [1, size, 1]
        _, reading = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cutting < 0.5 * size
    assert reading < 1.5 * size
