"""Files of others are opened in one way: as regular files, of a size that is meant."""

import ast
import os
import sys
from pathlib import Path

import pytest

from gradestack.regular_files import append_regular, open_regular, read_bounded

ROOTS = [Path("core/gradestack"), Path("plugins/gradestack_plugins")]
OWN = {
    "core/gradestack/regular_files.py",
    "core/gradestack/installed.py",  # what installers wrote
    "core/gradestack/runner.py",  # what it has just written
    "core/gradestack/outcome/pages.py",
    "core/gradestack/rundir/place.py",
    "core/gradestack/suites/code.py",  # code that was allowed
    "core/gradestack/testing/components.py",  # an author's own files
    "core/gradestack/testing/case_files.py",
    "core/gradestack/testing/packages.py",
    "core/gradestack/testing/samples.py",
    "core/gradestack/testing/lines.py",
    "core/gradestack/testing/upgrade.py",
    "plugins/gradestack_plugins/deepfabric/evaluation.py",
    "plugins/gradestack_plugins/engines/dask_local.py",
    "plugins/gradestack_plugins/engines/machine.py",  # what the system says
    "plugins/gradestack_plugins/engines/memory.py",
    "plugins/gradestack_plugins/judges/grader.py",  # a text of the distribution
    "plugins/gradestack_plugins/readers/jsonl_form.py",
    "plugins/gradestack_plugins/reporters/new_plugin.py",
}
"""Files that read what the program itself, its distribution or the system wrote."""


def reads_by_itself(node):
    """Return whether a call reads a file without ``open_regular``."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
    else:
        name = getattr(node.func, "id", "")
    if name in {"read_bytes", "read_text"}:
        return isinstance(node.func, ast.Attribute)
    modes = []
    for argument in node.args:
        if isinstance(argument, ast.Constant):
            modes.append(argument.value)
    is_path = isinstance(node.func, ast.Attribute) and (not node.args or modes == ["rb"])
    keywords = {keyword.arg for keyword in node.keywords}
    return name == "open" and is_path and (modes == ["rb"] or bool(keywords & {"encoding"}))


def test_files_are_opened_by_one_function():
    collected = set()
    for path in (path for root in ROOTS for path in root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        shards = ast.walk(tree)
        if any(map(reads_by_itself, shards)):
            collected.add(path.as_posix())
    assert collected - OWN == set()


def test_a_file_is_read_as_far_as_is_meant(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"a" * 2**20)
    bounded = read_bounded(path, 2**20)
    assert len(bounded) == 2**20
    path.write_bytes(b"a" * (2**20 + 1))
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read_bounded(path, 2**20)


@pytest.mark.skipif(sys.platform == "win32", reason="there are none")
def test_a_file_of_holes_is_not_opened(tmp_path):
    x_folder = tmp_path / "x"
    with (x_folder).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="bytes of holes, of which the disk holds hardly any"):
        open_regular(tmp_path / "x")


@pytest.mark.skipif(sys.platform == "win32", reason="there are none")
def test_a_file_in_proc_is_read_as_far_as_is_meant():
    path = Path(f"/proc/{os.getpid()}/status")
    assert read_bounded(path, 2**20)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("put", ["link", "pipe"])
def test_a_journal_is_not_written_through_a_link(tmp_path, put):
    mine = tmp_path / "mine"
    part = tmp_path / "J.jsonl.part"
    mine.write_text("mine")
    if put == "link":
        part.symlink_to(mine)
    else:
        os.mkfifo(part)
    with pytest.raises(OSError):
        append_regular(part)
    text = mine.read_text()
    assert text == "mine"
