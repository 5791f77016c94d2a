"""Tests of the memory that a line of many megabytes costs."""

from pathlib import Path

import pytest

import gradestack
from tests.core.outcomes import some_of, write_records

SIZE = 20_000_000
TEXT = "x" * SIZE
WOBBLE = 2_000_000
"""Bytes by which runs of one record differ among themselves."""
CALL = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
FORMS = {
    "an answer": {"expected": "x", "predicted": {"text": TEXT}},
    "a tool's result": {
        "expected": [{"name": "f"}],
        "messages": [
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": TEXT},
        ],
    },
    "a bad record": {"expectd": "x", "predicted": {"text": TEXT}},
}
MEASURED = """\
import sys
from gradestack.cli import commands
try:
    commands.main(sys.argv[1:])
finally:
    status = open("/proc/self/status")
    print("peak", next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
GIVEN_BACK = {"MALLOC_TRIM_THRESHOLD_": "131072"}
"""Freed memory goes back to the system at once.

Whether glibc keeps the pieces of a line that was put together, all in all as long as the line,
differs from one version of Python to another.
"""
PROCESS = Path("/proc/self/status")
"""Where the system says what a process took.

What resource says is at least what the process before it took.
"""


@pytest.fixture
def peak(spawn, tmp_path):
    """Return a function that returns the most memory a run takes, in bytes."""
    if not PROCESS.exists():
        pytest.skip("this system does not say what a process takes")

    def measure(name, records, *more):
        path = tmp_path / name
        write_records(path, records)
        arguments = ["grade", name, "-o", f"out-{name}", "--engine", "serial", "--quiet", *more]
        result = spawn(*arguments, program=["-c", MEASURED], **GIVEN_BACK)
        assert result.code == 0, result.err
        number = int(result.out.rpartition("peak ")[2])
        return number * 1024

    return measure


SMALL = {"id": "small", "expected": "x", "predicted": "x"}


@pytest.mark.parametrize(
    ("form", "more"),
    some_of(
        [
            *(pytest.param(form, ()) for form in FORMS),
            pytest.param("an answer", ("--set", "reports=[]")),
        ],
        4,
    ),
)
def test_a_line_that_is_one_long_text_takes_a_few_times_its_size_at_most(peak, form, more):
    """Read, graded and written as a row that may hold the text three times, which is read back for
    pages.
    """
    peak_of_short_lines = peak("usual.jsonl", [SMALL], *more)
    assert (
        peak("long.jsonl", [SMALL, {"id": "long", **FORMS[form]}], *more) - peak_of_short_lines
        <= 4 * SIZE + WOBBLE
    )


@pytest.mark.parametrize("rows", ["full", "compressed"])
@pytest.mark.parametrize("length", [200_000, 262_144, 400_000])
def test_rows_behind_a_long_one_are_where_they_are_said_to_be(tmp_path, rows, length):
    """Whether a row was read whole or by its end, as it stands in the file and as it was held."""
    records = []
    for number in range(3):
        for size in (length, 1):
            predicted = "y" * size
            records.append({"id": f"{size}-{number}", "expected": "x", "predicted": predicted})
    path = tmp_path / "runs.jsonl"
    write_records(path, records)
    paths = tmp_path / "runs.jsonl"
    output = tmp_path / "out"
    report = gradestack.grade_files(paths, output=output, rows=rows)
    for report_read in (report, gradestack.grade(records)):
        lines = report_read.lines()
        places = [(number - 1, offset) for number, offset, _ in lines]
        ids = [
            report_read.row(number, line)["sample"]["id"]
            for number, _, line in report_read.lines(places)
        ]
        expected = [record["id"] for record in records]
        assert ids == expected
    assert (tmp_path / "out/report.html").exists()
