"""Every file, function and class that the design page names is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/design.md").read_text(encoding="utf-8")
PLACE = re.compile(r"`([\w/]+\.(?:py|html|css|js|md))(?::([\w.]+))?`")
NAMES = sorted(set(PLACE.findall(PAGE)))
ROWS = {
    title: [line for line in text.splitlines() if line.startswith("| ")]
    for title, _, text in (part.partition("\n") for part in PAGE.split("\n## ")[1:])
}
HEADS = ("| step | by |", "| to change | look at |")
FOLDERS = {"gradestack_plugins": "plugins", "gradestack_templates": "templates"}


def source_of(path):
    if path in ("SECURITY.md", "CONTRIBUTING.md"):
        return ROOT / path
    if path.startswith(("tests/", "gradestack/")):
        return ROOT / path.replace("gradestack/", "core/gradestack/", 1)
    return ROOT / FOLDERS.get(path.partition("/")[0], "core/gradestack") / path


@cache
def names_in(path):
    """Return the functions, classes and values of a file, methods with their class."""
    names = set()

    def visit(body, prefix):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                if isinstance(node, ast.Assign):
                    targets = node.targets
                else:
                    targets = [node.target]
                named = [name for target in targets for name in getattr(target, "elts", [target])]
                names.update(prefix + name.id for name in named if isinstance(name, ast.Name))

    text = path.read_text(encoding="utf-8")
    if path.suffix == ".js":
        return set(re.findall(r"\bfunction (\w+)", text))
    visit(ast.parse(text).body, "")
    return names


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_what_the_design_page_names_is_there(path, name):
    source = source_of(path)
    assert source.is_file()
    assert not name or name in names_in(source)


def test_there_are_names_to_look_for():
    assert len(NAMES) > 120


def test_the_tables_are_whole():
    """Each row names its place in the code."""
    steps = ROWS["How a record becomes a page"]
    changes = ROWS["Where to change what"]
    assert len(steps) > 20
    assert len(changes) > 50
    rows = [row for row in steps + changes if row not in HEADS]
    assert [row for row in rows if not PLACE.search(row)] == []


def test_the_picture_shows_every_room():
    """Files and folders of the core, but the version and what compares in Python."""
    picture = PAGE.split("```")[1]
    paths = (ROOT / "core/gradestack").iterdir()
    rooms = {path.stem for path in paths}
    matches = re.findall(r"[a-z_]+", picture)
    shown = set(matches)
    left_out = {"__init__", "__pycache__", "_version", "py", "python_compare", "python_add"}
    assert rooms - shown - left_out == set()
