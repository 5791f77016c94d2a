"""Lines for terminals, CI logs and CSV files."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import csv_line, terminal_line
from gradestack.output import coloured, traceback_text
from tests.core.outcomes import data


@pytest.mark.parametrize(("text", "shown"), data(__file__, "lines.yaml")["lines"])
def test_what_a_terminal_or_log_would_obey_is_escaped(text, shown):
    """Texts of other people's files cannot add lines, clear the screen, turn lines round or give
    commands.
    """
    assert terminal_line(text) == shown


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("line", "code"), data(__file__, "lines.yaml")["coloured"])
def test_lines_have_colours_on_a_terminal_alone(line, code, monkeypatch):
    """Not in a pipe or a file, not where NO_COLOR is set, nor on a terminal that shows none."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured(line, _Terminal()) == (f"\x1b[{code}m{line}\x1b[0m" if code else line)
    string_io = io.StringIO()
    assert coloured(line, string_io) == coloured(line, None) == line
    for name, value in (("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
        assert coloured(line, _Terminal()) == line


@given(st.text(st.sampled_from(":# [ev\n\r\x1b\u2028\u3000\u202e\ud800")))
def test_any_text_is_one_line_that_does_nothing(text):
    line = terminal_line(text)
    assert line.isprintable()
    assert not line.strip().startswith("::")
    assert "##[" not in line
    assert "##e[" not in line
    assert terminal_line(line) == line


def test_the_lines_of_a_traceback_are_its_own():
    try:
        try:
            raise KeyError("inner")  # noqa: TRY301
        except KeyError as error:
            raise ValueError("bad\n::error::x\x1b[1m\n✓ PASSED") from error
    except ValueError as error:
        lines = traceback_text(error, error.__traceback__).splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert '    raise KeyError("inner")  # noqa: TRY301' in lines
    assert "The above exception was the direct cause of the following exception:" in lines
    assert lines[-3:] == ["ValueError: bad", "  | ::error::x\\x1b[1m", "  | ✓ PASSED"]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x.y","a")']
)
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_formula_becomes_a_text(text, delimiter):
    """No cell begins with what a spreadsheet calculates, and the text behind the mark is whole."""
    file = io.StringIO(
        csv_line("id", text, delimiter=delimiter) + csv_line(text, 1, delimiter=delimiter),
        newline="",
    )
    reader = list(csv.reader(file, delimiter=delimiter))
    expected = [["id", f"'{text}"], [f"'{text}", "1"]]
    assert reader == expected


def test_other_values_stay():
    assert csv_line("", "a=1", "'x", -1, -0.5, None, True, "1-2") == ",a=1,'x,-1,-0.5,,True,1-2\n"
    line = csv_line('a\n=1,"b"', "c")
    string_io = io.StringIO(line, newline="")
    reader = csv.reader(string_io)
    assert list(reader) == [['a\n=1,"b"', "c"]]
