"""Directories that come from a stranger, whose names are links.

Nothing is written where these lead to.
"""

import json
import os
import shutil
import signal
from contextlib import chdir
from pathlib import Path

import pytest

import gradestack
from tests.core.outcomes import data, read_json, some_of, write_records

DATA = data(__file__, "links.yaml")

PAGES = DATA["pages"]
"""Reporter -> files it writes."""
EVERY = [name for names in PAGES.values() for name in names]
KINDS = ["file", "other_name", "folder", "dangling", "full", "pipe"]


@pytest.fixture
def call(command, monkeypatch, graded):
    """Return a function that runs a command, checks its code and returns its text."""
    monkeypatch.chdir(graded)

    def fail_late(*_):
        pytest.fail("it took more than twenty seconds")

    def run(*arguments, code=0):
        before = signal.signal(signal.SIGALRM, fail_late)
        signal.alarm(20)
        try:
            done = command(*arguments)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        assert done.code == code, done
        return done.out + done.err

    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two finished runs and their comparison beside a file and a folder of the user's own."""
    home = tmp_path_factory.mktemp("finished")
    (home / "mine").mkdir()
    mine_folder = home / "mine"
    kept_path = mine_folder / "kept.txt"
    kept_path.write_text("kept")
    mine_path = home / "mine.txt"
    mine_path.write_text("mine")
    with chdir(home):
        for name, passes in (("runs", 2), ("more", 3)):
            lines = []
            for n in range(4):
                predicted = "x" if n < passes else "y"
                lines.append({"id": str(n), "expected": "x", "predicted": predicted})
            path = Path(f"{name}.jsonl")
            write_records(path, lines)
            paths = f"{name}.jsonl"
            gradestack.grade_files(
                paths, output=name, overrides=["reports=[html]"], engine="serial"
            )
        gradestack.compare("runs", "more", output="compared")
    return home


@pytest.fixture
def graded(finished, tmp_path):
    home_folder = tmp_path / "home"
    return shutil.copytree(finished, home_folder)


def put(path, kind):
    """Put something that leads elsewhere where a file is going to be written."""
    home = next(parent for parent in path.parents if (parent / "mine.txt").exists())
    path.parent.mkdir(exist_ok=True)
    if path.is_file() or path.is_symlink():
        path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "other_name":
        mine_path = home / "mine.txt"
        path.hardlink_to(mine_path)
    else:
        file = home / "mine.txt"
        folder = home / "mine"
        dangling = home / "nowhere"
        leads = {
            "file": file,
            "folder": folder,
            "dangling": dangling,
            "full": "/dev/full",
        }
        path.symlink_to(leads[kind])


def unharmed(home):
    """Return whether all that lies outside is as it was."""
    mine_path = home / "mine.txt"
    text = mine_path.read_text()
    assert text == "mine"
    mine_folder = home / "mine"
    paths = mine_folder.iterdir()
    names = [path.name for path in paths]
    assert names == ["kept.txt"]
    nowhere_folder = home / "nowhere"
    assert not nowhere_folder.exists()
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_pages_of_a_run_are_written_over_links_not_through_them(graded, call, kind):
    for name in EVERY:
        put(graded / "runs" / name, kind)
    page_options = [part for name in PAGES for part in ("--format", name)]
    call("report", "runs", *page_options)
    assert unharmed(graded)
    for name in EVERY:
        path = graded / "runs" / name
        assert (path.is_file(), path.is_symlink(), path.stat().st_size > 0) == (
            True,
            False,
            True,
        ), name
    runs_folder = graded / "runs"
    paths = runs_folder.iterdir()
    names = [path.name for path in paths if path.name.startswith(".")]
    assert not names


def test_folders_of_a_run_that_are_links_are_replaced(graded, call):
    for name in ("tables", "report_data"):
        mine_folder = graded / "mine"
        (graded / "runs" / name).symlink_to(mine_folder)
    header_path = graded / "header.json"
    text = json.dumps(header(graded, {"max_bytes": 0}))
    header_path.write_text(text)
    runs_folder = graded / "runs"
    (graded / "header.json").replace(runs_folder / "header.json")
    call("report", "runs")
    call("report", "runs", "--format", "csv")
    assert unharmed(graded)
    for name, file in (("tables", "samples.csv"), ("report_data", "chunk-1.js")):
        assert not (graded / "runs" / name).is_symlink()
        assert (graded / "runs" / name / file).is_file()


def header(graded, options):
    runs_folder = graded / "runs"
    path = runs_folder / "header.json"
    content = read_json(path)
    for component in content["components"]:
        component["options"] |= (
            options if (component["kind"], component["name"]) == ("reporter", "html") else {}
        )
    return content


@pytest.mark.parametrize("kind", ["pipe", "file_itself"])
def test_a_folder_that_is_something_else_is_named(graded, call, kind):
    """A pipe or a file in the place of ``tables`` is nobody's to remove."""
    runs_folder = graded / "runs"
    tables = runs_folder / "tables"
    if kind == "pipe":
        os.mkfifo(tables)
    else:
        tables.write_text("mine")
    expected = call("report", "runs", "--format", "csv", code=2)
    assert "tables: cannot be written: File exists" in expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_for_somewhere_else_is_written_over_a_link(graded, call, kind):
    """Into a directory that is no run, where only a page of ours is replaced.

    The others are named.
    """
    pages_folder = graded / "pages"
    path = pages_folder / "report.html"
    put(path, kind)
    refused = kind != "dangling"
    code = 2 if refused else 0
    result = call("report", "runs", "-o", "pages", code=code)
    assert ("was not written by gradestack" in result) == refused
    assert unharmed(graded)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", some_of(["comparison.json", "comparison.html", "comparison.md"], 2)
)
def test_a_comparison_is_written_over_links_not_through_them(graded, call, kind, name):
    """In the place of comparison.json they are refused, as anything that is not ours.

    But a link that leads nowhere.
    """
    compared_folder = graded / "compared"
    path = compared_folder / name
    put(path, kind)
    refused = name == "comparison.json" and kind != "dangling"
    code = 2 if refused else 0
    call("compare", "runs", "more", "-o", "compared", code=code)
    assert unharmed(graded)
    assert refused or not (graded / "compared" / name).is_symlink()


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_is_not_written_through_a_link(graded, call, kind):
    path = graded / "index.html"
    put(path, kind)
    code = 0 if kind == "dangling" else 2
    call("index", ".", code=code)
    assert unharmed(graded)


def test_a_run_replaces_a_directory_full_of_links(graded, call):
    for name in [*EVERY, "results.jsonl", "summary.json", "native/x.json"]:
        runs_folder = graded / "runs"
        put(runs_folder / name, "file")
    call("grade", "runs.jsonl", "-o", "runs", "--quiet")
    assert unharmed(graded)
    paths = (graded / "runs").rglob("*")
    assert not [path for path in paths if path.is_symlink()]


def test_a_directory_may_be_a_link_of_the_users_own(graded, call):
    """A run, its pages, a comparison and an index are written to another disk that way."""
    (graded / "disk").mkdir()
    link_folder = graded / "link"
    link_folder.symlink_to("disk")
    call("grade", "runs.jsonl", "-o", "link", "--quiet")
    call("report", "link", "--format", "junit")
    call("index", "link")
    assert (graded / "link").is_symlink()
    disk_folder = graded / "disk"
    paths = disk_folder.iterdir()
    names = {path.name for path in paths}
    assert {"results.jsonl", "junit.xml", "index.html"} <= names


@pytest.mark.parametrize(("name", "kind"), DATA["an_unfinished_run_of_links_is_not_continued"])
def test_an_unfinished_run_of_links_is_not_continued(graded, call, name, kind):
    """Continuing would cut off and write on the files its journal and rows lead to.

    Begun anew, the run replaces them.
    """
    folder = graded / ".new.unfinished"
    if name:
        folder.mkdir()
        journal_path = folder / "journal.jsonl"
        journal_path.write_text("{}\n")
    path = folder / name
    put(path, kind)
    result = call("grade", "runs.jsonl", "-o", "new", "--resume", "--quiet", code=2)
    assert "is a link" in result
    assert unharmed(graded)
    code = 0 if name else 2
    call("grade", "runs.jsonl", "-o", "new", "--quiet", code=code)
    assert unharmed(graded)
