"""The instrument of golden runs records, compares and finds a planted change."""

import shutil
import sys
from pathlib import Path

from tests.golden.golden import compare_engines, compare_recordings, record


def test_a_planted_change_is_found(tmp_path, monkeypatch):
    """Two recordings are equal, engines agree, and one changed digit is named with its file."""
    program = Path(sys.executable).parent / "gradestack"
    monkeypatch.delenv("GRADESTACK_REFERENCE_DATA", raising=False)
    before, after = tmp_path / "before", tmp_path / "after"
    assert record(before, program, ["mixed-states"]) == 2
    assert compare_engines(before) == []
    shutil.copytree(before, after)
    assert compare_recordings(before, after) == []
    summary = after / "serial/mixed-states/files/out/summary.json"
    summary.write_text(summary.read_text().replace("0.5", "0.6", 1))
    (difference,) = compare_recordings(before, after)
    assert difference.startswith("serial/mixed-states/files/out/summary.json: -")
