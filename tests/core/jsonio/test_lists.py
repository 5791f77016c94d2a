"""JSON lists in files: the standard library's values, element by element, in bounded memory."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import DataError
from gradestack.jsonio import Element, iter_list, records
from tests.conftest import examples
from tests.core.jsonio.test_boundaries import JSON, shown
from tests.core.outcomes import data

DATA = data(__file__, "lists.yaml")

ODD = '[NaN, -Infinity, Infinity, 1e16, 1e400, 12345678901234567890123, "\\ud800", "\\ud83d\\ude00", -0.0, 1E+2, "é"]'


def elements(path, text, window=None, monkeypatch=None):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if window is not None:
        monkeypatch.setattr(records, "_PIECE", window)
    return list(iter_list(path))


def test_a_list_is_read_element_by_element(tmp_path):
    found = elements(tmp_path / "x.json", '\ufeff[\n {"a": 1},\r\n\n [2],\n"x"]\n')
    assert found == [Element(0, 2, {"a": 1}), Element(1, 4, [2]), Element(2, 5, "x")]
    assert elements(tmp_path / "x.json", " [ ] ") == []


def test_odd_values_in_a_list_are_the_standard_librarys(tmp_path):
    assert repr([each.value for each in elements(tmp_path / "x.json", ODD)]) == repr(json.loads(ODD))


@pytest.mark.parametrize(("text", "message"), data(__file__, "broken.yaml")["no_lists"])
def test_what_is_no_list_is_refused(tmp_path, text, message):
    with pytest.raises(DataError) as caught:
        elements(tmp_path / "x.json", text)
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "values", "problem"), data(__file__, "broken.yaml")["broken_lists"])
def test_a_broken_list_keeps_what_came_before(tmp_path, text, values, problem):
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
    found = elements(tmp_path / "x.json", f'[{{"a": 1}},\n{bad},\n{{"b": 2}}]')
    assert [each.value for each in found] == [{"a": 1}, None, {"b": 2}]
    assert problem in found[1].problem
    assert [each.fatal for each in found] == [False, False, False]
    assert found[1].line == 2


def test_bytes_that_are_not_utf8_cost_their_element_only(tmp_path):
    found = elements(tmp_path / "x.json", b'[{"a": "\xff"}, {"b": "\xc3\xa9"}]')
    assert found == [Element(0, 1, problem="holds bytes that are not UTF-8"), Element(1, 1, {"b": "é"})]


BROKEN = DATA["broken"]


@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 16, 17, 33])
def test_the_window_does_not_show(tmp_path, monkeypatch, text, window):
    whole = shown(elements(tmp_path / "x.json", text))
    assert shown(elements(tmp_path / "x.json", text, window, monkeypatch)) == whole


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(JSON, max_size=5), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_any_list_any_window(tmp_path_factory, values, window, indent, ascii_only):
    path = tmp_path_factory.mktemp("list") / "x.json"
    with pytest.MonkeyPatch.context() as patch:
        found = elements(path, json.dumps(values, indent=indent, ensure_ascii=ascii_only), window, patch)
    assert [each.value for each in found] == values
    assert [each.problem for each in found] == [None] * len(values)


def test_a_big_list_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "big.json"
    with path.open("w") as out:
        out.write("[")
        for number in range(10_000):
            out.write(("," if number else "") + json.dumps({"n": number, "text": "x" * 500}))
        out.write("]")
    tracemalloc.start()
    count = sum(1 for _ in iter_list(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 10_000
    assert peak < path.stat().st_size / 1.5
