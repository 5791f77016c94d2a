"""Ctrl-C and a killed run: what was graded is kept, and neither processes nor files stay behind."""

import subprocess
import sys

import pytest

from tests.core.outcomes import data

DATA = data(__file__, "interruption.yaml")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
ENGINES = ["processes", pytest.param("dask", marks=pytest.mark.faults)]
LEAST = {
    "dask": 1
}  # rows there are when both workers stand still: dask may put a free range behind a held one


@pytest.fixture
def started(stalled_run, scratch, marked):
    """Return a function that starts a run on two workers and returns it once both stand still."""

    def start(engine):
        run = stalled_run.start("-o", "out", "--engine", engine, "--workers", 2)
        least = LEAST.get(engine)
        stalled_run.stand_still(run, "out", workers=2, least=least)
        return run

    return start


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_go_when_the_run_is_killed(started, engine, marked, until):
    """Whatever they are at, and without a word."""
    run = started(engine)
    assert len(marked()) >= 3
    run.kill()
    _, printed = run.communicate()
    assert printed == ""
    until(lambda: marked() == [])


SECOND = DATA["second"]
PARTIAL = "interrupted: partial results were kept\n"


@pytest.mark.faults
def test_ctrl_c_again_while_a_dask_cluster_is_closed(tmp_path, scratch):
    """The system hands it to one of dask's threads.

    The cluster was left half closed and told about it later.
    """
    pytest.importorskip("distributed")
    grader = (
        "import os, signal\n\ndef grade(sample):\n    os.kill(os.getppid(), signal.SIGINT)\n "
        "   return 1.0\n"
    )
    own_path = tmp_path / "own.py"
    own_path.write_text(grader)
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text('{"id": "a", "predicted": "x"}\n')
    options = [
        "--allow-code",
        "--grader",
        "own.py:grade",
        "--engine",
        "dask",
        "-o",
        "out",
        "--set",
        "reports=[]",
        "-q",
    ]
    command = [sys.executable, "-c", SECOND, "grade", "runs.jsonl", *options]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 130
    assert result.stdout == ""
    assert result.stderr in ("interrupted\n", "interrupted: nothing was graded yet\n", PARTIAL)
    paths = list(scratch.iterdir())
    assert paths == []
