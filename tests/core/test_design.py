"""Every file, function and class that the design page names is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/design.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", PAGE)))
ROWS = {
    title: [line for line in text.splitlines() if line.startswith("|")][2:]
    for title, _, text in (part.partition("\n") for part in PAGE.split("\n## ")[1:])
}


def source_of(path):
    if path.startswith(("tests/", "gradestack/")):
        return ROOT / path.replace("gradestack/", "core/gradestack/", 1)
    folder = "plugins" if path.startswith("gradestack_plugins/") else "core/gradestack"
    return ROOT / folder / path


@cache
def names_in(path):
    """Return the functions and classes of a file, methods with their class."""
    names = set()

    def visit(body, prefix):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
                visit(node.body, f"{prefix}{node.name}.")

    visit(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return names


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_what_the_design_page_names_is_there(path, name):
    source = source_of(path)
    assert source.is_file()
    assert not name or name in names_in(source)


def test_there_are_names_to_look_for():
    assert len(NAMES) > 60


def test_the_tables_are_whole():
    """Each row names its place in the code."""
    assert len(ROWS["How a record becomes a page"]) >= 20
    assert len(ROWS["Where to change what"]) >= 20
    rows = ROWS["How a record becomes a page"] + ROWS["Where to change what"]
    assert [row for row in rows if ".py:" not in row] == []


def test_the_picture_shows_every_room():
    """Files and folders of the core, but the version and what compares in Python."""
    picture = PAGE.split("```")[1]
    rooms = {path.stem for path in (ROOT / "core/gradestack").iterdir()}
    shown = set(re.findall(r"[a-z_]+", picture))
    left_out = {"__init__", "__pycache__", "_version", "py", "python_compare", "python_add"}
    assert rooms - shown - left_out == set()
