"""Cores and memory of the machine, and limits to both."""

import os
import subprocess
import sys

import pytest

from gradestack_plugins.engines import machine, memory
from tests.core.outcomes import data

DATA = data(__file__, "machine.yaml")


@pytest.mark.parametrize(("text", "size"), DATA["sizes"])
def test_sizes(text, size):
    assert machine.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "2 G iB", "-1", "1e9", "GiB", "0", "0MB", "12 apples"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match=r"expected a size such as 2GiB or 500MB, or none"):
        machine.parse_size(text)


def test_every_worker_gets_an_equal_share(monkeypatch):
    """80 % of what is free, unless a size is given or nothing is known."""
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    memory_share = machine.memory_share(None, 4)
    assert memory_share == 200
    assert machine.memory_share("1kB", 4) == 1000
    assert machine.memory_share("none", 4) is None
    monkeypatch.setattr(machine, "free_memory", lambda: None)
    assert machine.memory_share(None, 4) is None


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("150000 100000", 2), ("50000 100000", 1), ("max 100000", 64), ("", 64), (None, 64)],
)
def test_cores_of_a_container(monkeypatch, tmp_path, limit, cores):
    if limit is not None:
        (tmp_path / "cpu.max").write_text(limit)
    cpu_path = tmp_path / "cpu.max"
    monkeypatch.setattr(machine, "_GROUP_CPUS", cpu_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    usable_cores = machine.usable_cores()
    assert usable_cores == cores


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_a_limit_counts_from_what_is_there():
    script = DATA["script_of_a_limit_counts_from_what_is_there"]
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "no more 500 1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by the system")
def test_own_threads_do_not_count():
    """A thread that only writes files is no reason not to fork.

    Any other is, and one that has ended is none.
    """
    script = DATA["script_of_own_threads_do_not_count"]
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 2 {1}\n"


@pytest.mark.parametrize(("files", "expected"), data(__file__, "memory.yaml")["free"])
def test_available_memory(tmp_path, monkeypatch, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    proc_folder = tmp_path / "proc"
    monkeypatch.setattr(memory, "_PROC", proc_folder)
    group_folder = tmp_path / "group"
    monkeypatch.setattr(memory, "_GROUPS", group_folder)
    free_memory = memory.free_memory()
    assert free_memory == expected
