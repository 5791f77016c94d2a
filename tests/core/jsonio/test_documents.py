"""JSON documents over several lines among records of one line each."""

import json

import pytest

from gradestack.jsonio import SPREAD, iter_records, record_ranges

DOCUMENT = json.dumps([{"a": [1, {}], "b": {"c": None}}] * 3, indent=2)


def found(path):
    """Return (line, value or problem) of every record, over all ranges."""
    records = [each for part in record_ranges(path) for each in iter_records(path, part)]
    return [(each.line, each.value if each.problem is None else each.problem) for each in records]


def test_a_document_is_one_record_that_cannot_be_read(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"n": 1}}\n{DOCUMENT}\n{{"n": 2}}\n{{\n  "a": 1\n}}\n{{"n": 3}}\n')
    after = 3 + DOCUMENT.count("\n")
    assert found(path) == [(1, {"n": 1}), (2, SPREAD), (after, {"n": 2}), (after + 1, SPREAD), (after + 4, {"n": 3})]


@pytest.mark.parametrize("cut", ['{"n": 1, "m":', "  {", "{", '  {"n": 1'])
def test_a_line_that_breaks_off_takes_no_other_with_it(tmp_path, cut):
    """Not even one that is indented, or that holds a bracket only: what is a record behind it is read."""
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"n": 0}}\n{cut}\n{{"n": 2}}\n')
    assert [value for _, value in found(path)][::2] == [{"n": 0}, {"n": 2}]
    path.write_text('  {"n": 0}\n  {"n": 1, "m":\n  {"n": 2}\n')
    assert [value for _, value in found(path)][::2] == [{"n": 0}, {"n": 2}]


def test_a_document_longer_than_a_range_is_said_once_per_range(tmp_path, small_shards):
    """What its first line was is not known there; nothing of it is taken for a record, and none behind it is lost."""
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"n": 1}}\n{DOCUMENT}\n{{"n": 2}}\n')
    small_shards(40)
    told = found(path)
    assert [value for _, value in told if value != SPREAD] == [{"n": 1}, {"n": 2}]
    assert len(told) - 2 <= len(list(record_ranges(path)))
