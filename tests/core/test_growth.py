"""Twice the tasks, twice the work.

What grows with the square of its input is never done for a large one.
"""

import json
import random
import time

import pytest

import gradestack
from gradestack.suites.recognition import name_inputs
from tests.core.outcomes import some_of

MOST = 2.5
"""What twice as much may take; four times it is with the square."""


def grows(work, small):
    """Return how much more processor time twice as much takes.

    The least of three trials, as others may disturb.
    """
    found = []
    for _ in range(3):
        times = []
        for size in (small, 2 * small):
            begun = time.process_time()
            work(size)
            times.append(time.process_time() - begun)
        found.append(times[1] / times[0])
        if found[-1] < MOST:
            break
    return min(found)


def logged(rng, task):
    """Return a conversation with a few calls, some of which fail."""
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": rng.choice("fgh"), "arguments": f'{{"q": {n}}}'},
        }
        for n in range(rng.randrange(1, 4))
    ]
    answers = [
        {"role": "tool", "tool_call_id": c["id"], "content": rng.choice(["ok", "Error: no"])}
        for c in calls
    ]
    asked, called = (
        {"role": "user", "content": f"do {task}"},
        {"role": "assistant", "content": None},
    )
    said = {"role": "assistant", "content": "Done."}
    return {"id": f"t{task}", "messages": [asked, called | {"tool_calls": calls}, *answers, said]}


def called(rng, task):
    expected, made = (
        [{"name": each, "arguments": {"n": task % 5}}] for each in ("f", rng.choice("fg"))
    )
    return {"id": f"t{task}", "expected": expected, "predicted": made}


@pytest.fixture
def graded(tmp_path):
    """Return a function that grades two runs of so many tasks with the default stack."""

    def grade(record, size):
        for name in "ab":
            rng = random.Random(f"{name}{size}")  # noqa: S311 - test data
            lines = (json.dumps(record(rng, task)) + "\n" for task in range(size))
            (tmp_path / f"{name}{size}.jsonl").write_text("".join(lines))
            given = tmp_path / f"{name}{size}.jsonl"
            gradestack.grade_files(
                given, output=tmp_path / f"{name}{size}", overrides=["reports=[]"]
            )
        return tmp_path / f"a{size}", tmp_path / f"b{size}"

    return grade


@pytest.mark.parametrize(
    ("record", "size"), some_of([pytest.param(called, 500), pytest.param(logged, 500)], 2)
)
def test_runs_are_compared_in_time_by_their_tasks(graded, record, size):
    """With the figures of the headline, which are computed without each task in turn."""
    runs = {each: graded(record, each) for each in (size, 2 * size)}
    assert grows(lambda each: gradestack.compare(*runs[each]), size) < MOST


def test_files_of_a_directory_are_named_in_time_by_their_number(tmp_path):
    folders = [tmp_path / f"{number:03}" for number in range(80)]
    for folder in folders:
        folder.mkdir()
    files = [folder / f"{number}.jsonl" for number in range(100) for folder in folders]
    for file in files:
        file.touch()
    names = name_inputs(files)
    assert len({each.name for each in names}) == len({each.shown for each in names}) == 8000
    assert names[0].shown == "000/0.jsonl"
    assert grows(lambda size: name_inputs(files[:size]), 4000) < MOST
