"""JSON lists in files: the standard library's values, element by element, in bounded memory."""

import pytest

from gradestack import DataError
from gradestack.jsonio import Element, iter_list, iter_records, records
from tests.core.outcomes import data


def elements(path, text, window=None, monkeypatch=None):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if window is not None:
        monkeypatch.setattr(records, "_PIECE", window)
    return list(iter_list(path))


def test_a_list_is_read_element_by_element(tmp_path):
    path = tmp_path / "x.json"
    elements_read = elements(path, '\ufeff[\n {"a": 1},\r\n\n [2],\n"x"]\n')
    element = Element(0, 2, {"a": 1})
    expected = [element, Element(1, 4, [2]), Element(2, 5, "x")]
    assert elements_read == expected
    x_path = tmp_path / "x.json"
    assert elements(x_path, " [ ] ") == []


@pytest.mark.parametrize(("text", "message"), data(__file__, "broken.yaml")["no_lists"])
def test_what_is_no_list_is_refused(tmp_path, text, message):
    with pytest.raises(DataError) as caught:
        elements(tmp_path / "x.json", text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "values", "problem"), data(__file__, "broken.yaml")["broken_lists"]
)
def test_a_broken_list_keeps_what_came_before(tmp_path, text, values, problem):
    path = tmp_path / "x.json"
    *good, last = elements(path, text)
    assert [element.value for element in good] == values
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
    path = tmp_path / "x.json"
    text = f'[{{"a": 1}},\n{bad},\n{{"b": 2}}]'
    elements_read = elements(path, text)
    assert [element.value for element in elements_read] == [{"a": 1}, None, {"b": 2}]
    assert problem in elements_read[1].problem
    fatals = [element.fatal for element in elements_read]
    assert fatals == [False, False, False]
    assert elements_read[1].line == 2


def test_bytes_that_are_not_utf8_cost_their_element_only(tmp_path):
    path = tmp_path / "x.json"
    elements_read = elements(path, b'[{"a": "\xff"}, {"b": "\xc3\xa9"}]')
    element = Element(0, 1, problem="not UTF-8: byte 7 cannot be decoded")
    expected = [
        element,
        Element(1, 1, {"b": "é"}),
    ]
    assert elements_read == expected


@pytest.mark.parametrize(("text", "values", "bad"), data(__file__, "broken.yaml")["stretches"])
def test_a_bad_stretch_counts_by_the_records_in_it(tmp_path, text, values, bad):
    path = tmp_path / "x.json"
    path.write_text(text)
    records_read = list(iter_records(path))
    assert [record.value for record in records_read if record.problem is None] == values
    count = sum(record.problem is not None for record in records_read)
    assert count == bad
