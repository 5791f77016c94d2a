"""Runs that are killed, interrupted or stopped by the system are continued by the real command."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest

import gradestack
from tests.core.outcomes import files_but_headers as files_of

SCRIPT = """
import sys
from gradestack.rundir import journal
from gradestack.cli.commands import main
from gradestack.jsonio import records
records.SHARD_BYTES = 40_000
journal.PAUSE = -1.0
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Some forty ranges, and what they come to undisturbed."""
    here = tmp_path_factory.mktemp("killed")
    choose = random.Random(5)  # noqa: S311 - a seed is wanted
    with (here / "runs.jsonl").open("w") as file:
        for number in range(15_000):
            call = [{"name": "f", "arguments": {"a": number}}]
            other = call if choose.random() < 0.7 else []
            file.write(json.dumps({"id": f"t{number // 2}", "expected": call, "predicted": other}) + "\n")
    begun = time.monotonic()
    done = _command(here, "whole")
    assert done.communicate() == (None, b"")
    return here, files_of(here / "whole"), time.monotonic() - begun


def _command(here, output, *more):
    arguments = ["grade", "runs.jsonl", "-o", output, "--set", "reports=[markdown]", "--quiet", *more]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_time_and_continued(recording, seed):
    """SIGKILL of the parent, again and again, until a run is finished: its bytes are those of the undisturbed one."""
    here, expected, duration = recording
    choose = random.Random(seed)  # noqa: S311 - a seed is wanted
    engine = ("--engine", "serial") if seed % 2 else ("--engine", "processes", "--workers", "2")
    output, taken_up = f"out{seed}", 0
    for attempt in range(12):
        process = _command(here, output, "--resume", *engine)
        if attempt < 6:
            time.sleep(choose.uniform(0.3, 1.1) * duration / (1 + attempt % 2))
            process.send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, err
        journal = here / f".{output}.unfinished/journal.jsonl"
        lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
        complete = (here / output).exists() and files_of(here / output) == expected  # killed while tidying up
        assert lines >= taken_up or complete  # nothing on record is ever lost
        taken_up = lines
    assert process.returncode == 0
    assert files_of(here / output) == expected
    assert not list(here.glob(f".{output}*"))


@pytest.mark.parametrize(
    ("engine", "number"),
    [
        ("serial", signal.SIGINT),
        ("serial", signal.SIGHUP),
        ("processes", signal.SIGINT),
        ("processes", signal.SIGTERM),
    ],
)
def test_partial_results_can_be_completed(recording, number, engine):
    """Ctrl-C, SIGTERM and SIGHUP keep partial results in their place (exit 130); --resume grades the rest."""
    here, expected, _ = recording
    output = f"{engine}{number}"
    process = _command(here, output, "--engine", engine)
    journal, deadline = here / f".{output}.unfinished/journal.jsonl", time.monotonic() + 60
    while not journal.exists() or journal.read_bytes().count(b"\n") < 6:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"interrupted: partial results were kept; --resume grades the rest\n")
    partial = gradestack.load_report(here / output)
    assert "incomplete" in partial.summary
    assert partial.metrics["total"] == sum(1 for _ in partial.rows())
    process = _command(here, output, "--engine", engine, "--resume")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert files_of(here / output) == expected
    assert not list(here.glob(f".{output}*"))


def test_a_limit_on_file_sizes(recording):
    """What the system refuses to write ends the run with one message and exit 3; with more room it is continued."""
    here, expected, _ = recording
    script = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))\n" + SCRIPT
    )
    command = ["grade", "runs.jsonl", "-o", "limited", "--set", "reports=[markdown]", "--quiet", "--engine", "serial"]
    done = subprocess.run(
        [sys.executable, "-c", script, *command], cwd=here, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    head, advice = done.stderr.splitlines()
    assert head.startswith("error: ")
    assert "File too large" in head
    assert advice == "  - what was graded so far is kept: continue with --resume"
    process = _command(here, "limited", "--resume")
    assert process.communicate(timeout=60)[1] == b""
    assert files_of(here / "limited") == expected
