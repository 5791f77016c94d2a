"""Worker processes whose run is gone."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")
SCRIPT = """
from pathlib import Path
from gradestack import Input, Shard
from gradestack_plugins.engines.pool import Member

shard = Shard(ordinal=0, input=Input(path=Path("x"), name="x", shown="x"))
member = Member(str, [shard], None)
assert member.take() is None
member.line.close()
member._process.join(60)
print(member.exit_code)
"""


def test_a_worker_whose_line_is_cut_ends_in_silence():
    """As it is when the run is interrupted twice in a moment, and forgets the worker before it has ended it."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
