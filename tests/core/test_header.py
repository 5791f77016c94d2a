"""header.json: checksums computed beside the run, timings, memory."""

import hashlib
import os
import signal
import time

import pytest

import gradestack
import gradestack.rundir.header as header_module
from gradestack.rundir.header import Checksums


@pytest.fixture
def suite(write_lines, record, registry, tmp_path):
    """A resolved suite over two files."""
    (tmp_path / "d").mkdir()
    one, two = write_lines([record("a", 1.0)], "d/one.jsonl"), write_lines([record("b", 1.0)], "d/two.jsonl")
    content = {"name": "x", "target": {"paths": [str(one), str(two)]}, "graders": {"q": "toy"}, "reader": "jsonl"}
    return gradestack.load_suite(content, registry=registry)


def expected(suite):
    paths = [given.path for given in suite.inputs.data]
    return [
        {
            "path": str(path.resolve()),
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in paths
    ]


@pytest.mark.parametrize("large", [0, 10**9], ids=["beside", "at the end"])
def test_checksums(suite, monkeypatch, large):
    """Of large inputs in a process of its own; the same either way."""
    monkeypatch.setattr(header_module, "_LARGE", large)
    checksums = Checksums(suite)
    assert (checksums._process is not None) is (large == 0)
    assert list(checksums.entries()) == expected(suite)
    checksums.close()


def test_checksums_when_their_process_is_killed_or_cannot_be_started(suite, monkeypatch):
    """Then they are computed at the end."""
    monkeypatch.setattr(header_module, "_LARGE", 0)
    checksums = Checksums(suite)
    os.kill(checksums._process.pid, signal.SIGKILL)
    assert list(checksums.entries()) == expected(suite)
    monkeypatch.setattr("gradestack.rundir.header.sys.executable", "/nowhere/python")
    checksums = Checksums(suite)
    assert checksums._process is None
    assert list(checksums.entries()) == expected(suite)


def test_checksums_nobody_needs(suite, monkeypatch, write_lines):
    """Their process ends with the run that failed."""
    monkeypatch.setattr(header_module, "_LARGE", 0)
    monkeypatch.setattr(header_module, "_BESIDE", "import time; time.sleep(60)")
    checksums = Checksums(suite)
    begun = time.monotonic()
    checksums.close()
    checksums.close()
    assert time.monotonic() - begun < 30


def test_timings_and_memory(suite, tmp_path, registry):
    """Seconds in all and by part, per grader, and the most memory; none of it where bytes are promised."""
    from gradestack.runner import run_suite

    found = run_suite(suite, tmp_path / "out").header
    assert set(found["timings"]) == {"seconds", "grading", "merging", "native", "graders"}
    assert 0 <= found["timings"]["merging"] <= found["timings"]["grading"] <= found["timings"]["seconds"]
    assert set(found["timings"]["graders"]) <= {"q"}
    assert found["peak_memory"]["main"] > 1_000_000
    assert found["rows"] is True
