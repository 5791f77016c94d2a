"""Rows of a file that changed after their places were noted."""

import pytest

from gradestack import DataError, Report
from gradestack_plugins.pages.rows import RowPlaces


def test_a_row_that_is_no_longer_there_is_an_error(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n')
    places = RowPlaces(Report(path=tmp_path, header={}, summary={}))
    assert places.line(1) == b'{"a": 2}\n'
    for text in ('x{"a": 1}\n{"a": 2}\n', '{"a": 1}\n'):
        path.write_text(text)
        with pytest.raises(DataError, match="2: not JSON"):
            places.line(1)
