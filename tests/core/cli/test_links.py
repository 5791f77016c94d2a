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
    (home / "mine" / "kept.txt").write_text("kept")
    (home / "mine.txt").write_text("mine")
    with chdir(home):
        for name, passes in (("runs", 2), ("more", 3)):
            lines = [
                {"id": str(n), "expected": "x", "predicted": "x" if n < passes else "y"}
                for n in range(4)
            ]
            write_records(Path(f"{name}.jsonl"), lines)
            gradestack.grade_files(
                f"{name}.jsonl", output=name, overrides=["reports=[html]"], engine="serial"
            )
        gradestack.compare("runs", "more", output="compared")
    return home


@pytest.fixture
def graded(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "home")


def put(path, kind):
    """Put something that leads elsewhere where a file is going to be written."""
    home = next(parent for parent in path.parents if (parent / "mine.txt").exists())
    path.parent.mkdir(exist_ok=True)
    if path.is_file() or path.is_symlink():
        path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "other_name":
        path.hardlink_to(home / "mine.txt")
    else:
        leads = {
            "file": home / "mine.txt",
            "folder": home / "mine",
            "dangling": home / "nowhere",
            "full": "/dev/full",
        }
        path.symlink_to(leads[kind])


def unharmed(home):
    """Return whether all that lies outside is as it was."""
    assert (home / "mine.txt").read_text() == "mine"
    assert [path.name for path in (home / "mine").iterdir()] == ["kept.txt"]
    assert not (home / "nowhere").exists()
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
    assert not [path.name for path in (graded / "runs").iterdir() if path.name.startswith(".")]


def test_folders_of_a_run_that_are_links_are_replaced(graded, call):
    for name in ("tables", "report_data"):
        (graded / "runs" / name).symlink_to(graded / "mine")
    (graded / "header.json").write_text(json.dumps(header(graded, {"max_bytes": 0})))
    (graded / "header.json").replace(graded / "runs" / "header.json")
    call("report", "runs")
    call("report", "runs", "--format", "csv")
    assert unharmed(graded)
    for name, file in (("tables", "samples.csv"), ("report_data", "chunk-1.js")):
        assert not (graded / "runs" / name).is_symlink()
        assert (graded / "runs" / name / file).is_file()


def header(graded, options):
    content = read_json(graded / "runs" / "header.json")
    for component in content["components"]:
        component["options"] |= (
            options if (component["kind"], component["name"]) == ("reporter", "html") else {}
        )
    return content


@pytest.mark.parametrize("kind", ["pipe", "file_itself"])
def test_a_folder_that_is_something_else_is_named(graded, call, kind):
    """A pipe or a file in the place of ``tables`` is nobody's to remove."""
    tables = graded / "runs" / "tables"
    if kind == "pipe":
        os.mkfifo(tables)
    else:
        tables.write_text("mine")
    assert "tables: cannot be written: File exists" in call(
        "report", "runs", "--format", "csv", code=2
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_for_somewhere_else_is_written_over_a_link(graded, call, kind):
    """Into a directory that is no run, where only a page of ours is replaced.

    The others are named.
    """
    put(graded / "pages" / "report.html", kind)
    refused = kind != "dangling"
    result = call("report", "runs", "-o", "pages", code=2 if refused else 0)
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
    put(graded / "compared" / name, kind)
    refused = name == "comparison.json" and kind != "dangling"
    call("compare", "runs", "more", "-o", "compared", code=2 if refused else 0)
    assert unharmed(graded)
    assert refused or not (graded / "compared" / name).is_symlink()


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_is_not_written_through_a_link(graded, call, kind):
    put(graded / "index.html", kind)
    call("index", ".", code=0 if kind == "dangling" else 2)
    assert unharmed(graded)


def test_a_run_replaces_a_directory_full_of_links(graded, call):
    for name in [*EVERY, "results.jsonl", "summary.json", "native/x.json"]:
        put(graded / "runs" / name, "file")
    call("grade", "runs.jsonl", "-o", "runs", "--quiet")
    assert unharmed(graded)
    assert not [path for path in (graded / "runs").rglob("*") if path.is_symlink()]


def test_a_directory_may_be_a_link_of_the_users_own(graded, call):
    """A run, its pages, a comparison and an index are written to another disk that way."""
    (graded / "disk").mkdir()
    (graded / "link").symlink_to("disk")
    call("grade", "runs.jsonl", "-o", "link", "--quiet")
    call("report", "link", "--format", "junit")
    call("index", "link")
    assert (graded / "link").is_symlink()
    assert {"results.jsonl", "junit.xml", "index.html"} <= {
        path.name for path in (graded / "disk").iterdir()
    }


@pytest.mark.parametrize(("name", "kind"), DATA["an_unfinished_run_of_links_is_not_continued"])
def test_an_unfinished_run_of_links_is_not_continued(graded, call, name, kind):
    """Continuing would cut off and write on the files its journal and rows lead to.

    Begun anew, the run replaces them.
    """
    folder = graded / ".new.unfinished"
    if name:
        folder.mkdir()
        (folder / "journal.jsonl").write_text("{}\n")
    put(folder / name, kind)
    result = call("grade", "runs.jsonl", "-o", "new", "--resume", "--quiet", code=2)
    assert "is a link" in result
    assert unharmed(graded)
    call("grade", "runs.jsonl", "-o", "new", "--quiet", code=0 if name else 2)
    assert unharmed(graded)
