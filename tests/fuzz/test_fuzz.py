"""Mutated files of every format and mutated suites: no traceback, no exit code of its own, no hang, no record lost."""

import shutil

import pytest
from hypothesis import strategies as st

from tests.fuzz import mutation, subjects

SUBJECTS = subjects.subjects()
OTHER = b'{"id": "a", "expected": "x", "predicted": "x"}\n[\n {"task_id": 1}\n]'


@st.composite
def contents(draw, subject):
    """Draw a file of a format: changed as JSON, then as bytes, then as a whole."""
    form = draw(mutation.forms)
    layout = form if form in ("list", "lines", "indented") else subject.layout
    records = mutation.changed(subject.records, draw(mutation.tree_edits))
    content = mutation.edited(mutation.written(records, layout), draw(mutation.byte_edits))
    return mutation.formed(content, form, OTHER), draw(st.integers(0, 63))


def options_of(drawn):
    """Return the options a number stands for: mostly none, sometimes each of those that change the way."""
    options = ["--quiet", "--engine", "serial"]
    if drawn % 8:
        options += ["--set", "reports=[]"]
    options += {3: ["--profile", "upstream"], 5: ["--strict"], 6: ["--rows", "slim"]}.get(drawn // 8, [])
    return options


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda each: f"{each.reader} {each.name}")
def test_a_mutated_file_ends_in_figures_or_in_an_error(tmp_path, ended, fuzz, subject):
    """Whoever reads it: an exit code of the table, no traceback, in time, and every record a sample or a bad one."""

    def look(drawn):
        content, choice = drawn
        path = tmp_path / subject.name
        path.write_bytes(content)
        given = [path] if subject.beside is None else [subject.beside, "--dataset", path]
        reader = [] if subject.beside is not None or choice % 4 == 1 else ["--reader", subject.reader]
        found = ended("grade", *given, *reader, *subject.options, *options_of(choice), "-o", "out")
        expected = subject.count(mutation.unpacked(content)) if reader else None
        if found.records is not None and expected is not None:
            least, most = expected
            assert least <= found.records <= most

    fuzz(contents(subject), look)


@pytest.mark.parametrize("path", subjects.suites(), ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_mutated_suite_ends_in_figures_or_in_an_error(tmp_path, ended, fuzz, path):
    """Whatever its bytes are, checked only and run."""
    place = tmp_path / "suite"
    shutil.copytree(path.parent, place)
    text = path.read_bytes()

    def look(drawn):
        edits, choice = drawn
        (place / path.name).write_bytes(mutation.edited(text, edits, mutation.YAML_TOKENS))
        if choice % 3:
            ended("validate", place / path.name)
        else:
            ended("run", place / path.name, "--quiet", "--engine", "serial", "--set", "reports=[]", "-o", "out")

    fuzz(st.tuples(mutation.byte_edits, st.integers(0, 5)), look)
