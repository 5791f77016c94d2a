"""Ctrl-C and a killed run: what was graded is kept, and neither processes nor files stay behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
ENGINES = [{"kind": "processes", "workers": 2}, {"kind": "dask", "workers": 2}]
NAMES = ["processes", "dask"]


def _until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.fixture
def started(recording, tmp_path, scratch, marked):
    """Return a function that starts a slow run on an engine by the command line and returns it once it is grading."""
    running = []

    def start(engine):
        marker = tmp_path / "grading"
        recording.do(dict.fromkeys(range(recording.count), "sleep"), marker=str(marker))
        path = tmp_path / "suite.yaml"
        path.write_text(yaml.safe_dump(recording.suite(engine)))
        program = Path(sys.executable).with_name("gradestack")
        command = [program, "run", path, "-o", tmp_path / "out", "--allow-code"]
        run = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        running.append(run)
        _until(marker.exists)
        time.sleep(0.3)
        return run

    yield start
    for run in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)


@pytest.mark.parametrize("engine", ENGINES, ids=NAMES)
def test_an_interrupted_run_keeps_what_was_graded(started, engine, tmp_path, scratch, marked):
    """Exit code 130; rows and figures agree; no word of the workers; nothing left but the results."""
    run = started(engine)
    os.killpg(run.pid, signal.SIGINT)  # as the terminal does: to the run and its workers
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "Traceback" not in said
    assert "distributed" not in said
    summary = json.loads((tmp_path / "out/summary.json").read_bytes())
    assert "incomplete" in summary
    with (tmp_path / "out/results.jsonl").open("rb") as rows:
        assert summary["metrics"]["total"] == sum(1 for _ in rows) < 300
    _until(lambda: marked() == [])
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("engine", ENGINES, ids=NAMES)
def test_workers_go_when_the_run_is_killed(started, engine, marked):
    """Within seconds, and without a word."""
    run = started(engine)
    assert len(marked()) >= 3
    run.kill()
    _, said = run.communicate(timeout=60)
    assert said == ""
    _until(lambda: marked() == [])
