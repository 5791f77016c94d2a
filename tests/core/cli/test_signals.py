"""SIGTERM and Ctrl-C in the middle of a grade that does not end: the run does, and what is on record is kept."""

import signal
import subprocess
import sys
import time

import pytest

import gradestack
from tests.conftest import ON_RECORD

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
FINISHING = "interrupted: what is being graded is finished first; Ctrl-C once more ends the run now\n"
KEPT = "interrupted: partial results were kept; --resume grades the rest\n"
PATTERN = """
import re
from pathlib import Path

HERE = Path(__file__).parent


def grade(sample, submission):
    if sample.facets["held"]:
        (HERE / "held-1").touch()
        re.match("(a+)+$", "a" * 60 + "b")
    return 1.0
"""
STUBBORN = """
import time
from pathlib import Path

HERE = Path(__file__).parent


def grade(sample, submission):
    while sample.facets["held"]:
        try:
            (HERE / "held-1").touch()
            time.sleep(1)
        except BaseException:
            pass
    return 1.0
"""


@pytest.fixture
def hanging(held):
    def start(grader=None):
        if grader is not None:
            (held.place / "grader.py").write_text(grader)
        run = held.start("-o", "out", "--engine", "serial", program=("-c", ON_RECORD))
        held.stand_still(run, "out")
        return run

    return start


@pytest.mark.parametrize("grader", [None, PATTERN], ids=["sleep", "pattern"])
def test_the_first_sigterm_ends_the_grade_at_hand(held, hanging, grader):
    """And the run, as a second Ctrl-C does: what was graded before is kept, and the rest can be graded."""
    run = hanging(grader)
    run.send_signal(signal.SIGTERM)
    assert run.communicate() == ("", KEPT)
    assert run.returncode == 130
    report = gradestack.load_report(held.place / "out")
    assert report.metrics["total"] == held.free
    assert report.states["g"]["failed"] == 0


def test_a_second_ctrl_c_ends_the_grade_at_hand(held, hanging):
    """The first one says so, so that it does not look ignored."""
    run = hanging(PATTERN)
    run.send_signal(signal.SIGINT)
    assert run.stderr.readline() == FINISHING
    run.send_signal(signal.SIGINT)
    assert run.communicate() == ("", KEPT)
    assert run.returncode == 130


@pytest.mark.faults
def test_a_grader_that_takes_no_notice(held, hanging):
    run = hanging(STUBBORN)
    begun = time.monotonic()
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate()
    assert time.monotonic() - begun < 60
    assert run.returncode == 130
    assert said.startswith("interrupted: the run did not come to its end within 5 s and was ended")
    (held.place / "grader.py").write_text("def grade(sample, submission):\n    return 1.0\n")
    held.open()
    again = held.start("-o", "out", "--engine", "serial", program=("-c", ON_RECORD))
    assert again.communicate() == (
        "",
        "out: what an unfinished run had left is removed; --resume would have continued it\n",
    )


def test_a_child_of_a_grader_that_is_ended_is_not_the_run(tmp_path):
    (tmp_path / "forks.py").write_text(
        "import os, signal, time\n\n"
        "def grade(sample):\n"
        "    ready, there = os.pipe()\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        os.write(there, b'x')\n"
        "        time.sleep(1000)\n"
        "    os.read(ready, 1)\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "    return float(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM)\n"
    )
    (tmp_path / "runs.jsonl").write_text('{"id": "a", "predicted": "x"}\n{"id": "b", "predicted": "x"}\n')
    command = [sys.executable, "-m", "gradestack.cli", "grade", "runs.jsonl", "-o", "out", "--allow-code", "--quiet"]
    command += ["--grader", "forks.py:grade", "--set", "reports=[]", "--engine", "serial"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert gradestack.load_report(tmp_path / "out").metrics["avg_score_total"] == 1.0


IN_VAIN = """
import signal
import click
from gradestack.cli import commands

def echo(*_, **__):
    signal.raise_signal(signal.SIGINT)

def interrupted(*_, **__):
    click.echo = echo
    raise KeyboardInterrupt

commands.cli.main = interrupted
commands.main()
"""
IN_A_DESTRUCTOR = """
import signal
import time
from gradestack.cli import commands

class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def destroys(*_, **__):
    Last()
    time.sleep(60)

commands.cli.main = destroys
commands.main()
"""
AT_THE_END = """
import os
import signal
import sys
import threading
import time
from gradestack.cli import commands

def ends(*_, **__):
    def later():
        main = threading.main_thread().ident
        while sys._current_frames()[main].f_code.co_name != "_shutdown":
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
    threading.Thread(target=later).start()

commands.cli.main = ends
commands.main()
"""


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [(IN_VAIN, 130, ""), (IN_A_DESTRUCTOR, 130, "interrupted\n"), (AT_THE_END, 0, "")],
    ids=["twice", "in a destructor", "at the end"],
)
def test_no_ctrl_c_prints_a_traceback(script, code, said):
    """Neither one while another is dealt with, nor one that arrives where nothing can be raised, or after the end."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)
