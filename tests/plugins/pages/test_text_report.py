"""Samples as a terminal shows them."""

import re

import pytest

from gradestack import terminal_line
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.show import Style, sample_texts

HOSTILE = (
    "x ::error::y\n::error::z\n  ::warning::w ##[error]v ##vso[a]b "
    "\x1b[31mred\x1b]0;t\x07\u202e\u2066\r\x9b1m"
    "[bold]b[/bold] [link=x]y[/link] :smile: aa ::error::c bbbb ::error::d ccc "
    "::error::e\t::error::f \ud83d"
)
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def hostile(value):
    if isinstance(value, dict):
        fixed = {"state", "status", "role", "score", "passed", "outcome", "pointer"}
        return {key: entry if key in fixed else hostile(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [hostile(entry) for entry in value]
    if isinstance(value, str):
        return f"{value} {HOSTILE}"
    return value


def only_sample(fake, row, width=80, colour=False):
    report = fake.make_report([row])
    index = index_of(report)
    rows = rows_at(report, [0])
    ((entry,), (row_found,)) = index.entries, rows
    style = Style(width, colour, 1000)
    return next(sample_texts(report, [(entry, row_found)], style))


@pytest.mark.parametrize("width", [20, 33, 80])
def test_every_line_does_nothing(fake, width):
    graded_row = fake.graded_row(3, 1, "m")
    for row in (
        hostile(graded_row),
        hostile(fake.ungraded_row(2, 1, "m", "failed")),
    ):
        text = only_sample(fake, row, width=width)
        lines = text.splitlines()
        assert len(lines) > 40
        assert [line for line in lines if terminal_line(line) != line] == []
        loud = only_sample(fake, row, width=width, colour=True)
        assert COLOUR.search(loud)
        assert COLOUR.sub("", loud) == text
    sample = only_sample(fake, row, width=200)
    assert "[bold]b[/bold]" in sample
