"""SIGTERM and Ctrl-C in the middle of a grade that does not end.

The run does, and what is on record is kept.
"""

import signal
import subprocess
import sys
import time

import pytest

import gradestack
from tests.conftest import ON_RECORD
from tests.core.outcomes import data

DATA = data(__file__, "signals.yaml")


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
FINISHING = (
    "interrupted: what is being graded is finished first; Ctrl-C once more ends the run now\n"
)
KEPT = "interrupted: partial results were kept; --resume grades the rest\n"
PATTERN = DATA["pattern"]
STUBBORN = DATA["stubborn"]


@pytest.fixture
def hanging(stalled_run):
    """Return a function that starts a run and waits until its grader stands still."""

    def start(grader=None):
        if grader is not None:
            grader_path = stalled_run.folder / "grader.py"
            grader_path.write_text(grader)
        run = stalled_run.start("-o", "out", "--engine", "serial", program=("-c", ON_RECORD))
        stalled_run.stand_still(run, "out")
        return run

    return start


@pytest.mark.parametrize("grader", [None, PATTERN], ids=["sleep", "pattern"])
def test_the_first_sigterm_ends_the_grade_at_hand(stalled_run, hanging, grader):
    """And the run, as a second Ctrl-C does.

    What was graded before is kept, and the rest can be graded.
    """
    run = hanging(grader)
    run.send_signal(signal.SIGTERM)
    output = run.communicate()
    assert output == ("", KEPT)
    assert run.returncode == 130
    path = stalled_run.folder / "out"
    report = gradestack.load_report(path)
    total = report.metrics["total"]
    assert total == stalled_run.free
    failed = report.states["g"]["failed"]
    assert failed == 0


def test_a_second_ctrl_c_ends_the_grade_at_hand(stalled_run, hanging):
    """The first one says so, so that it does not look ignored."""
    run = hanging(PATTERN)
    run.send_signal(signal.SIGINT)
    assert run.stderr.readline() == FINISHING
    run.send_signal(signal.SIGINT)
    output = run.communicate()
    assert output == ("", KEPT)
    assert run.returncode == 130


@pytest.mark.faults
def test_a_grader_that_takes_no_notice(stalled_run, hanging):
    run = hanging(STUBBORN)
    begun = time.monotonic()
    run.send_signal(signal.SIGTERM)
    _, printed = run.communicate()
    now = time.monotonic()
    assert now - begun < 60
    assert run.returncode == 130
    assert printed.startswith(
        "interrupted: the run did not come to its end within 5 s and was ended"
    )
    grader_path = stalled_run.folder / "grader.py"
    grader_path.write_text("def grade(sample, submission):\n    return 1.0\n")
    stalled_run.open()
    second_run = stalled_run.start("-o", "out", "--engine", "serial", program=("-c", ON_RECORD))
    output = second_run.communicate()
    assert output == (
        "",
        "out: what an unfinished run had left is removed; --resume would have continued it\n",
    )


IN_VAIN = DATA["in_vain"]
IN_A_DESTRUCTOR = DATA["in_a_destructor"]
AT_THE_END = DATA["at_the_end"]


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [(IN_VAIN, 130, ""), (IN_A_DESTRUCTOR, 130, "interrupted\n"), (AT_THE_END, 0, "")],
    ids=["twice", "in a destructor", "at the end"],
)
def test_no_ctrl_c_prints_a_traceback(script, code, message):
    """Neither one while another is dealt with, nor one that arrives where nothing can be raised, or
    after the end.
    """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stderr == message
