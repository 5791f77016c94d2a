"""Lines of CSV files."""

import csv
import io

import pytest

from gradestack import csv_line


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x.y","a")'])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_formula_becomes_a_text(text, delimiter):
    """No cell begins with what a spreadsheet calculates, and the text behind the mark is whole."""
    file = io.StringIO(csv_line("id", text, delimiter=delimiter) + csv_line(text, 1, delimiter=delimiter), newline="")
    assert list(csv.reader(file, delimiter=delimiter)) == [["id", f"'{text}"], [f"'{text}", "1"]]


def test_other_values_stay():
    assert csv_line("", "a=1", "'x", -1, -0.5, None, True, "1-2") == ",a=1,'x,-1,-0.5,,True,1-2\n"
    line = csv_line('a\n=1,"b"', "c")
    assert list(csv.reader(io.StringIO(line, newline=""))) == [['a\n=1,"b"', "c"]]
