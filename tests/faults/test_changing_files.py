"""Files that change while they are read.

What was planned is graded, or the run says that it cannot be.
"""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradestack
from gradestack import DataError
from gradestack.grading import loop
from tests.core.outcomes import data, some_of

DATA = data(__file__, "changing_files.yaml")


EXAMPLES = Path(__file__).parents[2] / "examples"
ENGINES = ["serial", {"kind": "processes", "workers": 2}]


@pytest.fixture
def meanwhile(monkeypatch):
    """Return a function that has an action happen between planning and reading."""
    planned = loop.shards_of

    def after_planning(action):
        def plan(reader, inputs):
            shards = planned(reader, inputs)
            action()
            return shards

        monkeypatch.setattr(loop, "shards_of", plan)

    return after_planning


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """A file of 200 records in about ten shards."""
    path = tmp_path / "runs.jsonl"
    call = {"name": "f", "arguments": {"a": 1}}
    records = []
    for n in range(200):
        predicted = [call] * (n % 3)
        records.append({"id": f"t{n}", "expected": [call], "predicted": predicted})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    status = path.stat()
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", status.st_size // 10)
    return path


def _run(path, engine, tmp_path, name):
    paths = [str(path)]
    suite = {
        "name": "x",
        "target": {"paths": paths},
        "graders": {"q": "tau_partial"},
        "reports": [],
    }
    output = tmp_path / name
    return gradestack.run({**suite, "engine": engine}, output=output)


@pytest.mark.parametrize("engine", ENGINES, ids=["serial", "processes"])
def test_a_file_removed_meanwhile_ends_the_run(lines, tmp_path, engine, meanwhile):
    meanwhile(lines.unlink)
    with pytest.raises(DataError, match=r"runs\.jsonl: cannot be read: No such file"):
        _run(lines, engine, tmp_path, "removed")


@pytest.mark.parametrize("engine", ENGINES, ids=["serial", "processes"])
def test_a_list_cut_short_meanwhile_is_not_taken_for_whole(
    tmp_path, engine, meanwhile, monkeypatch
):
    """A JSON list has records missing at its end only with a word about it."""
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 2000)
    path = tmp_path / "results.json"
    call = {"name": "f", "kwargs": {"a": 1}}
    record = {"reward": 1.0, "info": {"task": {"actions": [call]}}, "traj": [], "trial": 0}
    text = json.dumps([{"task_id": n, **record} for n in range(200)], indent=1)
    path.write_text(text)
    status = path.stat()
    bytes_kept = status.st_size // 2

    def cut():
        with path.open("r+") as file:
            file.truncate(bytes_kept)

    meanwhile(cut)
    try:
        report = _run(path, engine, tmp_path, "cut")
    except DataError as error:
        assert "cut short" in str(error)  # noqa: PT017 - either is right
    else:
        bad_records = report.summary["bad_records"]
        assert bad_records["count"] >= 1
        listed = report.summary["bad_records"]["listed"]
        reason = listed[0]["reason"]
        assert "cut off" in reason


CHANGES = DATA["changes"]
APPEND = 'with path.open(\'a\') as file: file.write(\'{"id": "late", "predicted": "x"}\\n{"half\')'
GRADER = DATA["grader"]


@pytest.fixture
def command(tmp_path):
    """Return a function that grades five samples of a file, and does something to the file
    meanwhile.
    """
    rows = [f'{{"id": "t{number}", "predicted": "x"}}\n' for number in range(5)]
    other_path = tmp_path / "other.jsonl"
    other_path.write_text("".join(rows[::-1]))
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text("".join(rows))
    os.utime(tmp_path / "runs.jsonl", (1000, 1000))

    def run(change, engine, *files):
        own_path = tmp_path / "own.py"
        grader = GRADER.replace("{change}", change)
        own_path.write_text(grader)
        options = [
            "--allow-code",
            "--grader",
            "own.py:grade",
            "--engine",
            engine,
            "-o",
            "out",
            "--set",
            "reports=[]",
        ]
        command = [
            sys.executable,
            "-m",
            "gradestack.cli",
            "grade",
            *(files or ["runs.jsonl"]),
            *options,
        ]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    ("engine", "change"),
    some_of(
        [pytest.param(engine, change) for change in CHANGES for engine in ("serial", "processes")],
        3,
    ),
)
def test_a_file_that_changes_while_it_is_graded_is_refused(command, tmp_path, change, engine):
    """No figures of a mixture: exit 3, and nothing is written.

    What looks is the same for every engine.
    """
    code, message = CHANGES[change]
    done = command(code, engine)
    assert (done.returncode, message in done.stderr) == (3, True), done.stderr
    out_folder = tmp_path / "out"
    assert not out_folder.exists()


FILES = {
    "jsonl": ("".join(f'{{"id": "t{number}", "predicted": "x"}}\n' for number in range(5)), 5),
    "openai": ('{"role": "user", "content": "q"}\n{"role": "assistant", "content": "a"}\n', 1),
    "when2call": (
        "".join(
            f'{{"uuid": "t{number}", "predicted_label": "tool_call"}}\n' for number in range(5)
        ),
        5,
    ),
}


@pytest.mark.parametrize(
    ("reader", "engine"),
    some_of(
        [
            pytest.param(file_kind, engine)
            for file_kind in FILES
            for engine in ("serial", "processes")
        ],
        3,
    ),
)
def test_appended_lines_are_not_graded_and_a_warning_says_so(command, tmp_path, engine, reader):
    """The header's checksum is of the lines that were read.

    A chat log is one sample, of the lines there were.
    """
    text, samples = FILES[reader]
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(text)
    done = command(APPEND, engine, "runs.jsonl", "--reader", reader)
    assert done.returncode == 0, done.stderr
    assert (
        "Warning: runs.jsonl: 39 bytes were appended while it was read and are not graded"
        in done.stdout
    )
    path = tmp_path / "out"
    report = gradestack.load_report(path)
    (entry,) = report.header["inputs"]
    assert entry["bytes"] == len(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert entry["sha256"] == digest
    total = report.metrics["total"]
    assert total == samples
    bad_records = report.summary["bad_records"]
    assert bad_records["count"] == 0


def test_a_packed_file_that_is_replaced_after_it_was_unpacked_is_refused(command, tmp_path):
    """Its copy would be graded, and the header would have the checksum of another."""
    packed = tmp_path / "runs.jsonl.gz"
    runs_path = tmp_path / "runs.jsonl"
    compressed = gzip.compress(runs_path.read_bytes())
    packed.write_bytes(compressed)
    done = command(f"Path({str(packed)!r}).write_bytes(b'other')", "serial", packed)
    assert (done.returncode, "runs.jsonl.gz: has changed while it was read" in done.stderr) == (
        3,
        True,
    ), done.stderr


def test_a_file_of_a_directory_that_changes_is_refused(command, tmp_path):
    """Also one that is read beside the results."""
    recorded_folder = EXAMPLES / "letta/recorded"
    shutil.copytree(recorded_folder, tmp_path / "recorded")
    done = command("(HERE / 'recorded/summary.json').write_text('{}')", "serial", "recorded")
    assert (done.returncode, "recorded/summary.json: was cut short while it" in done.stderr) == (
        3,
        True,
    ), done.stderr


def test_samples_handed_over_one_by_one_end_when_their_file_changes(lines, tmp_path):
    """Who takes them as they come is told, too."""
    stream = gradestack.stream(lines, graders={"q": "tau_partial"})
    next(stream)
    lines.write_bytes(lines.read_bytes().replace(b"t1", b"u1"))
    with pytest.raises(DataError, match=r"runs\.jsonl: was edited while it was read"):
        list(stream)
