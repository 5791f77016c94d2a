"""What is said of unfinished runs: what they leave, what is taken over, and what is done again."""

import json
import shutil
import sys

import pytest

import gradestack
from gradestack import Progress
from gradestack.cli import console
from gradestack.rundir import journal
from tests.conftest import ON_RECORD
from tests.core.outcomes import files_but_headers as files_of


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_hidden_directory_that_was_removed(held, engine):
    run = held.start(
        "-o", "out", "--engine", engine, "--workers=1" if engine == "processes" else "-q", program=("-c", ON_RECORD)
    )
    held.stand_still(run, "out")
    shutil.rmtree(held.place / ".out.unfinished")
    held.open()
    out, err = run.communicate()
    assert (run.returncode, out) == (3, "")
    place = held.place / ".out.unfinished"
    assert err == f"error: {place}: was removed while the run was writing there; nothing is left of it\n"


def test_what_is_taken_over_is_said_once(capsys):
    with console.progress("x", quiet=False) as note:
        for samples, resumed in ((10, 10), (20, 20), (30, 20), (40, 20)):
            note(Progress(samples=samples, resumed=resumed))
    assert capsys.readouterr().err == "20 samples are taken over from the unfinished run\n"
    with console.progress("x", quiet=False) as note:
        note(Progress(samples=20, resumed=20))
        note(Progress(phase="pages", samples=20, resumed=20))
    assert capsys.readouterr().err == "20 samples are taken over from the unfinished run\n"
    with console.progress("x", quiet=False) as note:
        note(Progress(samples=20))
    assert capsys.readouterr().err == ""


GRADER = """
import time
from pathlib import Path

HERE = Path(__file__).parent


def grade(sample, submission):
    slow, stop = (HERE / "slow").exists(), (HERE / "stop").exists()
    if sample.id == "t7" and slow:
        time.sleep(1000)
    if sample.id == "t15" and stop:
        raise KeyboardInterrupt
    return 1.0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such timer")
def test_grades_that_took_too_long_are_done_again(tmp_path, monkeypatch):
    """With --resume, also by another limit: ranges before the first of them are taken over, the others are not."""
    monkeypatch.setattr(journal, "PAUSE", -1.0)
    (tmp_path / "grader.py").write_text(GRADER)
    for file in range(5):
        rows = [json.dumps({"id": f"t{4 * file + number}", "predicted": "x"}) for number in range(4)]
        (tmp_path / f"{file}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    grader = {"kind": "python_function", "file": str(tmp_path / "grader.py"), "name": "grade"}
    suite = {"name": "x", "target": {"paths": [str(tmp_path / "*.jsonl")]}, "graders": {"g": grader}, "reports": []}

    def run(output, *overrides, resume=False):
        options = {"engine": "serial", "allow_code": True, "overrides": overrides, "resume": resume}
        return gradestack.run(suite, output=tmp_path / output, **options)

    for mark in ("slow", "stop"):
        (tmp_path / mark).touch()
    first = run("out", "limits.seconds_per_grade=0.2")
    assert (first.exit_code, first.header["timed_out"], first.states["g"]["failed"]) == (130, 1, 1)
    for mark in ("slow", "stop"):
        (tmp_path / mark).unlink()
    second = run("out", "limits.seconds_per_grade=60", resume=True)
    assert (second.exit_code, second.header["resumed"], second.states["g"]["failed"]) == (0, 1, 0)
    assert "timed_out" not in second.header
    run("whole", "limits.seconds_per_grade=60")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")
