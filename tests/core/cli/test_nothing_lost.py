"""Workers leave nothing behind."""

import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_workers_leave_with_their_parent(stalled_run, until):
    process = stalled_run.start("-o", "out", "--engine", "processes", "--workers", 2)
    stalled_run.stand_still(process, "out", workers=2)
    text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    workers = text.split()
    assert len(workers) >= 2
    process.kill()
    process.communicate()
    until(lambda: not any(Path("/proc", worker).exists() for worker in workers))
    out_folder = stalled_run.folder / "out"
    assert not out_folder.exists()
