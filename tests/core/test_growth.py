"""Twice the tasks, twice the work.

What grows with the square of its input is never done for a large one.
"""

import io
import json
import math
import random
import time

import pytest

import gradestack
from gradestack.report import Report
from gradestack.suites.recognition import name_inputs

pytestmark = pytest.mark.slow

MOST = 2.5
"""What twice as much may take; four times it is with the square."""


def grows(work, small):
    """Measure how many times more processor time twice the input takes.

    Of each size the least time of up to three counts, as other processes may disturb.
    """
    least = {small: math.inf, 2 * small: math.inf}
    for _ in range(3):
        for size, before in least.items():
            begun = time.process_time()
            work(size)
            least[size] = min(before, time.process_time() - begun)
        if least[2 * small] < MOST * least[small]:
            break
    return least[2 * small] / least[small]


def called(rng, task):
    expected, made = (
        [{"name": tool_name, "arguments": {"n": task % 5}}] for tool_name in ("f", rng.choice("fg"))
    )
    return {"id": f"t{task}", "expected": expected, "predicted": made}


@pytest.fixture
def graded(tmp_path):
    """Return a function that grades two runs of so many tasks with the default stack."""

    def grade(size):
        for name in "ab":
            rng = random.Random(f"{name}{size}")  # noqa: S311 - test data
            lines = (json.dumps(called(rng, task)) + "\n" for task in range(size))
            (tmp_path / f"{name}{size}.jsonl").write_text("".join(lines))
            records_file = tmp_path / f"{name}{size}.jsonl"
            output = tmp_path / f"{name}{size}"
            gradestack.grade_files(records_file, output=output, overrides=["reports=[]"])
        return tmp_path / f"a{size}", tmp_path / f"b{size}"

    return grade


def test_runs_are_compared_in_time_by_their_tasks(graded):
    """With the figures of the headline, which are computed without each task in turn."""
    runs = {size: graded(size) for size in (500, 1000)}
    assert grows(lambda size: gradestack.compare(*runs[size]), 500) < MOST


def test_files_of_a_directory_are_named_in_time_by_their_number(tmp_path):
    folders = []
    for number in range(80):
        folders.append(tmp_path / f"{number:03}")
    for folder in folders:
        folder.mkdir()
    files = [folder / f"{number}.jsonl" for number in range(100) for folder in folders]
    for file in files:
        file.touch()
    names = name_inputs(files)
    name_count = len({name.name for name in names})
    shown_count = len({name.shown for name in names})
    assert name_count == shown_count == 8000
    assert names[0].shown == "000/0.jsonl"
    assert grows(lambda size: name_inputs(files[:size]), 4000) < MOST


def test_calls_of_a_sample_become_a_table_in_time_by_their_number():
    def row(size):
        calls = []
        for number in range(size):
            calls.append({"name": f"f{number}"})
        items = [
            {"outcome": "graded", "score": 1.0, "metadata": {"call": at}} for at in range(size)
        ]
        record = {
            "sample": {"id": "a"},
            "expected": {"calls": calls},
            "predicted": {"calls": calls},
        }
        line = json.dumps({**record, "grade": {"state": "graded", "score": 1.0, "items": items}})
        bytes_io = io.BytesIO(line.encode())
        return Report(path=None, header={}, summary={}, row_buffer=bytes_io)

    runs = {size: row(size) for size in (2000, 4000)}
    table = runs[2000].table("calls")
    matched = table["matched"]
    expected = [*range(2000), *range(2000)]
    assert matched == expected
    assert grows(lambda size: runs[size].table("calls"), 2000) < MOST
