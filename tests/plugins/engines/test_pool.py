"""Worker processes whose run is gone."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts workers by a server")
SCRIPT = """
import threading
from pathlib import Path
from gradestack import Input, Shard
from gradestack_plugins.engines.processes import Member

def run():
    shard = Shard(ordinal=0, input=Input(path=Path("x"), name="x", shown="x"))
    member = Member(str, [shard], None)
    assert member.take() is None
    member.line.close()
    member._process.join(60)
    print(member.exit_code)

thread = threading.Thread(target=run)  # so that the worker is not forked, and has no end of the line but its own
thread.start()
thread.join()
"""


def test_a_worker_whose_line_is_cut_ends_in_silence():
    """As it is when the run is interrupted twice in a moment, and forgets the worker before it has ended it."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
