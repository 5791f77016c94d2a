"""The reporter `text`: samples as a terminal shows them."""

import re

import pytest

from gradestack import terminal_line
from gradestack_plugins.pages.rows import row_names, samples_at
from gradestack_plugins.pages.show import TextReporter

HOSTILE = (
    "x ::error::y\n::error::z\n  ::warning::w ##[error]v ##vso[a]b \x1b[31mred\x1b]0;t\x07\u202e\u2066\r\x9b1m"
    "[bold]b[/bold] [link=x]y[/link] :smile: aa ::error::c bbbb ::error::d ccc ::error::e\t::error::f \ud83d"
)
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def hostile(value):
    if isinstance(value, dict):
        fixed = {"state", "status", "role", "score", "passed", "outcome", "pointer"}
        return {key: each if key in fixed else hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return f"{value} {HOSTILE}" if isinstance(value, str) else value


def only_sample(fake, row, **options):
    report = fake.make_report([row])
    (name,) = row_names(report)
    ((entry, found),) = samples_at(report, [(name.position, name.place)])
    return TextReporter(**options).sample(report, entry, found)


@pytest.mark.parametrize("width", [20, 33, 80])
def test_every_line_does_nothing(fake, width):
    for row in (hostile(fake.graded_row(3, 1, "m")), hostile(fake.ungraded_row(2, 1, "m", "failed"))):
        text = only_sample(fake, row, width=width)
        lines = text.splitlines()
        assert len(lines) > 40
        assert [line for line in lines if terminal_line(line) != line] == []
        loud = only_sample(fake, row, width=width, colour=True)
        assert COLOUR.search(loud)
        assert COLOUR.sub("", loud) == text
    assert "[bold]b[/bold]" in only_sample(fake, row, width=200)


def test_what_became_of_a_sample_is_said_in_words(fake):
    for state, words in (("failed", "broken"), ("skipped", "skipped"), ("missing", "missing")):
        text = only_sample(fake, fake.ungraded_row(2, 1, "north-1", state))
        assert text.splitlines()[0] == f"journey-2  trial 1  north-1  {words}"
        assert f"  partial  {state}\n" in text
    assert "Recorded run failed: target recorded_error (TimeoutError): no answer in 60 s" in only_sample(
        fake, fake.ungraded_row(2, 1, "north-1", "failed")
    )


def test_reasoning_and_how_calls_went_are_shown(fake):
    row = fake.graded_row(3, 1, "m")
    row["trajectory"] = [[{"role": "assistant", "content": "Done.", "reasoning": "The rules allow it."}]]
    for call in row["predicted"]["calls"]:
        call |= {"status": "error", "error": "no such seat", "seconds": 2.5}
    text = only_sample(fake, row)
    assert "  assistant\n    reasoning: The rules allow it.\n    Done.\n" in text
    assert text.count("no such seat") == len(row["predicted"]["calls"])


def test_the_worst_samples_are_written(fake, tmp_path):
    report = fake.make_report(fake.realistic_rows(tasks=4, trials=2))
    (path,) = TextReporter(max_samples=3).write(report, tmp_path)
    text = path.read_text()
    assert text.count("of results.jsonl") == 3
    assert text.startswith("journey-2  trial 1  north-1  broken\n")
    assert text.endswith("\n13 more samples\n")
    assert max(map(len, text.splitlines())) <= 80


def test_a_run_without_samples_has_a_page_all_the_same(fake, tmp_path):
    (path,) = TextReporter().write(fake.make_report([]), tmp_path)
    assert path.read_text() == "No samples.\n"
