"""A sample in the terminal and in Markdown."""

import io
import json

import pytest

from gradestack import Report
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.markdown import MarkdownReporter
from gradestack_plugins.pages.show import Style, sample_texts
from tests.core.outcomes import data
from tests.golden.pages import check_golden_file


def report_of(*rows):
    buffer = io.BytesIO("".join(f"{json.dumps(row)}\n" for row in rows).encode())
    return Report(
        path=None, header={}, summary={"suite": "rail", "gates_passed": None}, row_buffer=buffer
    )


def text_of(row, max_text=1000):
    report = report_of(row)
    (entry,) = index_of(report).entries
    style = Style(80, False, max_text)
    return next(sample_texts(report, [(entry, row)], style))


def shown_rows():
    """Read the rows; the name of each is its id, and its grade its only one where it has one."""
    for name, row in data(__file__, "samples.yaml").items():
        if "grade" in row:
            grades = {"grades": {"partial": row["grade"]}}
        else:
            grades = {}
        yield {"sample": {"id": name}, **grades, **row}


@pytest.mark.slow
def test_golden_page_of_samples_on_a_terminal():
    """Conversations, pairs of calls, states, reasons, and whatever else may stand in a row."""
    texts = map(text_of, shown_rows())
    page = "\n".join(texts)
    check_golden_file("samples.txt", page)


def test_golden_page_of_samples_in_markdown(tmp_path):
    rows = [{"passed": False, "state": "graded", **row} for row in shown_rows()]
    markdown_reporter = MarkdownReporter(max_samples=100)
    report = report_of(*rows)
    (path,) = markdown_reporter.write(report, tmp_path)
    text = path.read_text(encoding="utf-8")
    check_golden_file("samples.md", text)


def test_long_conversations_are_cut_and_counted():
    message = {"role": "user", "content": "a"}
    trajectory = [[message] * 150, [message] * 150]
    row = {"trajectory": trajectory}
    sample_text = text_of(row)
    assert sample_text.count("user\n") == 200
    assert "100 more messages" in sample_text
    long = {"role": "user", "content": "x" * 5000}
    text = text_of({"trajectory": [[long]]})
    assert "… 4,000 more characters" in text


def test_many_calls_are_cut_and_counted():
    expected = {"calls": [{"name": "a"}] * 70}
    predicted = {"calls": [None] * 65}
    calls = {"expected": expected, "predicted": predicted}
    text = " ".join(text_of(calls).split())
    assert "✗ a not called other calls made:" in text
    assert "60 (no name) 15 more calls" in text
