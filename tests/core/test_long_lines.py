"""What a line of many megabytes costs."""

import json
from pathlib import Path

import pytest

SIZE = 40_000_000
TEXT = "x" * SIZE
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
    print("peak", next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
PROCESS = Path("/proc/self/status")
"""Where the system says what a process took; what resource says is at least what the process before it took."""


@pytest.fixture
def peak(spawn, tmp_path):
    """Return a function that returns the most memory a run takes, in bytes."""
    if not PROCESS.exists():
        pytest.skip("this system does not say what a process takes")

    def measure(name, records):
        (tmp_path / name).write_text("".join(json.dumps(each) + "\n" for each in records))
        arguments = ["grade", name, "-o", f"out-{name}", "--engine", "serial", "--quiet"]
        said = spawn(*arguments, program=["-c", MEASURED])
        assert said.code == 0, said.err
        return int(said.out.rpartition("peak ")[2]) * 1024

    return measure


@pytest.mark.parametrize("form", ["an answer", *(pytest.param(form, marks=pytest.mark.proof) for form in [*FORMS][1:])])
def test_a_line_that_is_one_long_text_takes_seven_times_its_size_at_most(peak, form):
    """Read, graded, written as a row that may hold the text three times, read back whole and shown on a page."""
    small = {"id": "small", "expected": "x", "predicted": "x"}
    usual = peak("usual.jsonl", [small])
    assert peak("long.jsonl", [small, {"id": "long", **FORMS[form]}]) - usual <= 7 * SIZE
