"""SECURITY.md: each of its sentences has a test that is there, and no command is run."""

import ast
import re
from functools import cache

import pytest

from tests.core.toy_components import ROOT

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
TEST = re.compile(r"`(test_\w+|tests/[\w./]+)`")
PROGRAMS = ("core", "plugins", "templates")
STARTS = {
    "plugins/gradestack_plugins/engines/dask_local.py",  # Python, on a module of ours
    "core/gradestack/testing/components.py",  # Python, on our own command and a package under test
}
"""Files that start a program."""
RUNS_CODE = {"core/gradestack/suites/code.py"}
"""Files that run code: of a suite, where --allow-code is given."""
STARTING = {"subprocess", "pty", "commands", "popen2"}
STARTING_OF_OS = ("system", "popen", "exec", "spawn", "posix_spawn", "startfile")


@cache
def names_of_tests():
    """The names of all test functions, and the paths of their files."""
    tests_folder = ROOT / "tests"
    paths = tests_folder.rglob("*.py")
    files = [path for path in paths if "__pycache__" not in path.parts]
    texts = [path.read_text(encoding="utf-8") for path in files]
    return frozenset(
        name for text in texts for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)
    )


@pytest.mark.parametrize("name", sorted(set(TEST.findall(TEXT))))
def test_a_test_that_the_list_names_is_there(name):
    assert name in names_of_tests() or (ROOT / name).is_file()


def rows():
    """Yield the rows of the tables that have a column of tests."""
    lines = iter(TEXT.splitlines())
    for line in lines:
        if line.startswith("|") and line.endswith("| test |"):
            next(lines)
            for row in lines:
                if not row.startswith("|"):
                    break
                yield row


@pytest.mark.parametrize("row", list(rows()))
def test_each_row_of_the_list_names_its_test(row):
    last = row.rstrip("| ").rpartition(" | ")[2]
    match = TEST.search(last)
    assert match or last == "the same two", row


def program_files():
    paths = [path for part in PROGRAMS for path in (ROOT / part).rglob("*.py")]
    assert len(paths) > 200
    return paths


def started_by(tree):
    """Yield the names in a module that start a program, or run a text as code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            origin = node.module if isinstance(node, ast.ImportFrom) else None
            if origin == "os":
                yield from (name for name in names if name.startswith(STARTING_OF_OS))
            elif origin is not None:
                names = [origin]
            yield from (name for name in names if name.partition(".")[0] in STARTING)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr.startswith(STARTING_OF_OS):
                yield f"os.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in {"eval", "exec", "compile", "__import__"}:
                yield node.func.id
        elif isinstance(node, ast.keyword) and node.arg == "shell":
            yield "shell"


def test_nothing_runs_a_command():
    """The files that start a program or run code are those above; none goes through a shell."""
    commands_run = {}
    for path in program_files():
        relative_path = path.relative_to(ROOT)
        shown = relative_path.as_posix()
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        started = started_by(tree)
        names = set(started)
        if shown in STARTS:
            names -= {"subprocess"}
        if shown in RUNS_CODE:
            names -= {"exec", "compile"}
        if names:
            commands_run[shown] = names
    assert commands_run == {}
