"""The instrument of golden runs finds a planted change, and runs are what is committed."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from gradestack.cli.commands import main
from tests.golden.golden import (
    COMMITTED,
    ENVIRONMENT,
    compare_engines,
    compare_recordings,
    keep_committed,
    read_cases,
    record,
    record_case,
)

CASES = [case for case in read_cases(None) if "committed" in case]


@pytest.mark.slow
def test_a_planted_change_is_found(tmp_path, monkeypatch):
    """Two recordings are equal, engines agree, and one changed digit is named with its file."""
    executable_path = Path(sys.executable)
    program = executable_path.parent / "gradestack"
    monkeypatch.delenv("GRADESTACK_REFERENCE_DATA", raising=False)
    before = tmp_path / "before"
    after = tmp_path / "after"
    assert record(before, program, ["mixed-states"]) == 2
    assert compare_engines(before) == []
    shutil.copytree(before, after)
    assert compare_recordings(before, after) == []
    summary = after / "serial/mixed-states/files/out/summary.json"
    text = summary.read_text().replace("0.5", "0.6", 1)
    summary.write_text(text)
    (difference,) = compare_recordings(before, after)
    assert difference.startswith("serial/mixed-states/files/out/summary.json: -")


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Return a function that runs the command line in this process."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GRADESTACK_REFERENCE_DATA", raising=False)

    def run(words, folder):
        """Run the command in this process; return its exit code, output and errors."""
        monkeypatch.chdir(folder)
        capsys.readouterr()
        code = 0
        try:
            main(words)
        except SystemExit as ended:
            code = ended.code or 0
        return code, *capsys.readouterr()

    yield run
    monkeypatch.chdir(COMMITTED.parent)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_run_prints_and_writes_what_is_committed(case, run_here, tmp_path):
    """Console, exit codes and files; GRADESTACK_REWRITE=1 writes them again."""
    record_case(case, "serial", run_here, tmp_path)
    recorded = tmp_path / case["name"]
    committed = COMMITTED / case["name"]
    keep_committed(case, recorded)
    if os.environ.get("GRADESTACK_REWRITE"):
        shutil.rmtree(committed, ignore_errors=True)
        shutil.copytree(recorded, committed)
    assert compare_recordings(committed, recorded) == []
