"""Workers that are killed from outside cost their shards, not the run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_at_random.py")


@pytest.mark.skipif(sys.platform != "linux", reason="looks its victims up in /proc")
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 60), marks=pytest.mark.faults)], ids=str)
def test_a_worker_killed_at_a_random_moment_changes_nothing(recording, tmp_path, seeds):
    """Rows and figures are those of the serial engine, byte for byte, whenever and whichever worker is killed."""
    arguments = [recording.place / "grader.py", recording.place / "*.jsonl", tmp_path / "out", *seeds]
    command = [sys.executable, SCRIPT, *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["seed"] for each in told] == list(seeds)
    assert [each["seed"] for each in told if not each["same"]] == []
    assert [each["seed"] for each in told if not each["killed"]] == []
    assert done.stderr == ""
