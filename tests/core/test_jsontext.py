"""JSON in and out: the standard library's values, record by record, in bounded memory."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import jsontext
from gradestack.errors import DataError
from gradestack.jsontext import Element, JsonProblem, compact, dumps, iter_lines, iter_list, line_ranges, loads

ODD = '[NaN, -Infinity, Infinity, 1e16, 1e400, 12345678901234567890123, "\\ud800", "\\ud83d\\ude00", -0.0, 1E+2, "é"]'


def elements(path, text, window=None, monkeypatch=None):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if window is not None:
        monkeypatch.setattr(jsontext, "_WINDOW", window)
    return list(iter_list(path))


def shown(found):
    return [(each.ordinal, each.line, repr(each.value), each.problem, each.fatal) for each in found]


# loads


def test_values_are_those_of_the_standard_library():
    """NaN, infinities, lone surrogates and big integers read as json reads them."""
    assert repr(loads(ODD)) == repr(json.loads(ODD))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: Expecting value at character 0"),
        ('{"a": }', "not JSON: Expecting value at character 6"),
        (b'{"a": "\xff"}', "not UTF-8: byte 7"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "4300 digits"),
    ],
)
def test_what_cannot_be_read_is_one_kind_of_problem(text, message):
    """Every refusal is a JsonProblem that says what and where."""
    with pytest.raises(JsonProblem, match=message):
        loads(text)


# dumps


def test_keys_are_sorted_and_text_is_kept():
    """Our files have one form: sorted keys, compact or indented, non-ASCII as it is."""
    assert dumps({"b": "é", "a": [1, 2.0, None, True]}) == '{"a":[1,2.0,null,true],"b":"é"}'
    assert dumps({"b": 1, "a": {}}, indent=2) == '{\n  "a": {},\n  "b": 1\n}'


def test_non_finite_numbers_become_texts():
    """The output is strict JSON at any depth, mappings and tuples included."""
    value = {"a": [math.nan, (math.inf, {"b": -math.inf})], "c": 1e16}
    assert dumps(value) == '{"a":["NaN",["Infinity",{"b":"-Infinity"}]],"c":1e+16}'


def test_lone_surrogates_are_escaped_so_that_the_text_is_utf8():
    """Only a value that holds one is escaped, and it reads back equal."""
    text = dumps({"é": "\ud800"})
    assert text.encode() == b'{"\\u00e9":"\\ud800"}'
    assert loads(text) == {"é": "\ud800"}


@given(st.floats())
def test_floats_read_back_equal(number):
    """Numbers are written as Python writes them."""
    back = loads(dumps([number]))[0]
    if math.isfinite(number):
        assert (back, math.copysign(1, back)) == (number, math.copysign(1, number))
    else:
        assert back == {True: "NaN", False: "Infinity" if number > 0 else "-Infinity"}[math.isnan(number)]


def test_compact_keeps_the_order_and_never_raises():
    """Messages show values in their own key order, anything else by its repr."""
    loop = []
    loop.append(loop)
    assert compact({"b": 1, "a": "é"}) == '{"b": 1, "a": "é"}'
    assert compact({1, 2}) == "{1, 2}"
    assert compact(loop) == "[[...]]"


# lines


def lines(path, **options):
    return [(line.number, line.data) for line in iter_lines(path, **options)]


def test_blank_lines_are_left_out_and_counted(tmp_path):
    """A byte-order mark, CRLF and a missing last line end are no trouble."""
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbf1\r\n\n  \n2")
    assert lines(path) == [(1, b"1\r\n"), (4, b"2")]


def test_ranges_hold_whole_lines(tmp_path):
    """Ranges of a small size meet end to end, cut at line ends, with the number of their first line."""
    path = tmp_path / "x"
    path.write_bytes(b"aaaa\nbb\ncccccccc\nd")
    ranges = list(line_ranges(path, 6))
    assert ranges == [(0, 8, 1), (8, 17, 3), (17, 18, 4)]
    pieces = [lines(path, start=start, end=end, first_line=line) for start, end, line in ranges]
    assert [line for piece in pieces for line in piece] == lines(path)
    (tmp_path / "empty").touch()
    assert list(line_ranges(tmp_path / "empty")) == []


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"", b"bb\r", b"  ", b"\xc3\xa9" * 5]), max_size=8),
    st.integers(1, 30),
    st.booleans(),
)
def test_any_cut_reads_the_same_lines(tmp_path_factory, parts, size, ended):
    """Whatever the size of the ranges, the lines and their numbers are those of the whole file."""
    path = tmp_path_factory.mktemp("cut") / "x"
    path.write_bytes(b"\n".join(parts) + (b"\n" if ended else b""))
    pieces = [
        line
        for start, end, first in line_ranges(path, size)
        for line in lines(path, start=start, end=end, first_line=first)
    ]
    assert pieces == lines(path)


# lists


def test_a_list_is_read_element_by_element(tmp_path):
    """Ordinals count from 0, lines from 1, values are json's."""
    found = elements(tmp_path / "x.json", '\ufeff[\n {"a": 1},\r\n\n [2],\n"x"]\n')
    assert found == [Element(0, 2, {"a": 1}), Element(1, 4, [2]), Element(2, 5, "x")]
    assert elements(tmp_path / "x.json", " [ ] ") == []


def test_odd_values_in_a_list_are_the_standard_librarys(tmp_path):
    """NaN, infinities, surrogates and big integers, the same as json.loads on the whole."""
    assert repr([each.value for each in elements(tmp_path / "x.json", ODD)]) == repr(json.loads(ODD))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.json:1: the file is empty"),
        ("\n \n", "x.json:3: the file is empty"),
        ('\n{"a": 1}', "x.json:2: expected a JSON list, found '{'"),
        ("text", "expected a JSON list, found 't'"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path, text, message):
    """The message has file and line."""
    with pytest.raises(DataError) as caught:
        elements(tmp_path / "x.json", text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "values", "problem"),
    [
        ('[{"a": 1}', [{"a": 1}], "the list is cut off here"),
        ('[{"a": 1}, ', [{"a": 1}], "the list is cut off here: no closing ']'"),
        ('[{"a": 1}, {"b": [1, ', [{"a": 1}], "(the list is cut off here)"),
        ('[{"a": 1}, {"b": "x', [{"a": 1}], "Unterminated string"),
        ('[{"a": 1} {"b": 2}]', [{"a": 1}], "expected ',' or ']' between elements, found '{'"),
        ("[1,]", [1], "Expecting value"),
        ("[1, x, 2]", [1], "Expecting value"),
        ("[1] 2", [1], "text after the end of the list"),
        ("[] []", [], "text after the end of the list"),
    ],
)
def test_a_broken_list_keeps_what_came_before(tmp_path, text, values, problem):
    """The elements before the break are read; the last one says what is wrong, and that nothing can follow."""
    *good, last = elements(tmp_path / "x.json", text)
    assert [each.value for each in good] == values
    assert problem in last.problem
    assert last.fatal


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ('{"a": nope, "s": "{{[[\\" }]"}', "not JSON: Expecting value"),
        ('{"raw\ncontrol": "}"}', "Invalid control character"),
        ('{"a": ' + "9" * 5000 + "}", "4300 digits"),
        ("[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ('{"a": "\\u12"}', "Invalid"),
    ],
)
def test_reading_goes_on_behind_a_bad_element(tmp_path, bad, problem):
    """An element that is not JSON is skipped by its brackets; those inside texts do not count."""
    found = elements(tmp_path / "x.json", f'[{{"a": 1}},\n{bad},\n{{"b": 2}}]')
    assert [each.value for each in found] == [{"a": 1}, None, {"b": 2}]
    assert problem in found[1].problem
    assert [each.fatal for each in found] == [False, False, False]
    assert found[1].line == 2


def test_bytes_that_are_not_utf8_cost_their_element_only(tmp_path):
    """The others are read."""
    found = elements(tmp_path / "x.json", b'[{"a": "\xff"}, {"b": "\xc3\xa9"}]')
    assert found == [Element(0, 1, problem="holds bytes that are not UTF-8"), Element(1, 1, {"b": "é"})]


BROKEN = [
    ODD,
    "[1.5e3, 2, -0.25, 1E+5, 0]",
    '[{"a": 1, "b": [1, 2, {"c": "}]"}]}, {"x": tru}, {"y": "[{"}, 3]',
    '[{"a": nope, "s": "{{{[[[\\" }]"}, {"ok": "\\\\"}]',
    '[{"a": "x\ny", "{": "[[["}, {"b": "}"}]',
    '[{"a":1}{"b":2}]',
    '[{"a": "unended',
    "[ [[[[",
    "[\n\n1,\n2,]",
    '[{"a": ]}, 1]',
]


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 16, 17, 33])
def test_the_window_does_not_show(tmp_path, monkeypatch, text, window):
    """Wherever the text is cut for reading, sound and broken lists give the same elements."""
    whole = shown(elements(tmp_path / "x.json", text))
    assert shown(elements(tmp_path / "x.json", text, window, monkeypatch)) == whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON, max_size=5), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_any_list_any_window(tmp_path_factory, values, window, indent, ascii_only):
    """Elements equal the list that was written, however it was formatted and wherever it was cut."""
    path = tmp_path_factory.mktemp("list") / "x.json"
    with pytest.MonkeyPatch.context() as patch:
        found = elements(path, json.dumps(values, indent=indent, ensure_ascii=ascii_only), window, patch)
    assert [each.value for each in found] == values
    assert [each.problem for each in found] == [None] * len(values)


def test_a_big_list_is_read_in_bounded_memory(tmp_path):
    """A file of many windows never stands in memory whole."""
    import tracemalloc

    path = tmp_path / "big.json"
    with path.open("w") as out:
        out.write("[")
        for number in range(30_000):
            out.write(("," if number else "") + json.dumps({"n": number, "text": "x" * 500}))
        out.write("]")
    tracemalloc.start()
    count = sum(1 for _ in iter_list(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 30_000
    assert path.stat().st_size > 15_000_000
    assert peak < 8_000_000
