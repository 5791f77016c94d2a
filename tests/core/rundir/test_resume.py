"""Runs that end before their time are continued, and end in the bytes of a run that was not disturbed."""

import errno
import functools
import json
import os
import random
import subprocess

import pytest

import gradestack
from gradestack import ConfigError, DataError
from gradestack.rundir import journal
from gradestack.rundir.place import RowsFile
from tests.core.outcomes import files_but_headers as files_of

RECORDS = 400


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Shards of some ten records, everything put on record at once."""
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 900)
    monkeypatch.setattr(journal, "PAUSE", -1.0)


@pytest.fixture
def suite(write_lines, record, tmp_path, monkeypatch):
    """A recording with bad and repeated records and several models, graded by a toy with native files."""
    monkeypatch.chdir(tmp_path)
    choose = random.Random(3)  # noqa: S311 - a seed is wanted
    lines = []
    for number in range(RECORDS):
        name = number if choose.random() > 0.05 else number // 2
        recorded = {"do": choose.choice(["skip", "raise", "", "", ""]), "score": choose.random()}
        lines.append(record(f"t{name}", recorded=recorded, model=choose.choice("ab"), run=None))
        if choose.random() < 0.05:
            lines.append('{"id": broken')
    write_lines(lines)
    return {"name": "x", "target": {"paths": ["runs.jsonl"]}, "graders": {"toy": "toy"}, "reader": "jsonl"}


@pytest.fixture
def registry(make_registry_, toys):
    """The toys, and an exporter that writes every record back."""
    return make_registry_(toys.component("exporter", "echo", "Echo"))


@pytest.fixture
def run(suite, registry):
    """Return a function that runs the suite."""

    def call(output="out", **more):
        options = {name: more.pop(name) for name in ("resume", "rows", "engine", "workers", "say") if name in more}
        options = {"engine": "serial"} | options
        return gradestack.run({**suite, **more}, output=output, registry=registry, **options)

    return call


@pytest.fixture
def fill(monkeypatch):
    """Return a function that lets the disk be full from the n-th piece of rows on."""

    def after(pieces):
        count = [0]
        append = RowsFile.append

        def full(self, part):
            count[0] += 1
            if count[0] > pieces:
                os.write(self._to, part.read_bytes()[:50])  # what still fitted
                raise OSError(errno.ENOSPC, "No space left on device", "results.jsonl")
            return append(self, part)

        monkeypatch.setattr(RowsFile, "append", full)
        return lambda: monkeypatch.setattr(RowsFile, "append", append)

    return after


# a full disk


@pytest.mark.parametrize(
    "pieces", [7, pytest.param(1, marks=pytest.mark.proof), pytest.param(30, marks=pytest.mark.proof)]
)
@pytest.mark.parametrize("rows", [True, False], ids=["rows", "no rows"])
def test_a_full_disk_keeps_what_is_finished(run, fill, tmp_path, pieces, rows, monkeypatch):
    """Exit 3 and one message; continued, the bytes of an undisturbed run, and nothing is graded twice."""
    run("whole", rows=rows)
    if rows:
        empty = fill(pieces)
    else:
        note, count = journal.Journal.note, [0]

        def full(self, *arguments):
            count[0] += 1
            if count[0] > pieces:
                raise OSError(errno.ENOSPC, "No space left on device", "journal")
            note(self, *arguments)

        monkeypatch.setattr(journal.Journal, "note", full)
        empty = functools.partial(monkeypatch.setattr, journal.Journal, "note", note)
    with pytest.raises(DataError, match="No space left on device") as caught:
        run(rows=rows)
    assert caught.value.problems == ("what was graded so far is kept: continue with --resume",)
    assert not (tmp_path / "out").exists()
    assert (tmp_path / ".out.unfinished/journal.jsonl").read_bytes().count(b"\n") == 1 + pieces
    empty()
    report = run(rows=rows, resume=True, engine="serial")
    assert report.header["resumed"] == pieces
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")
    assert not list(tmp_path.glob(".out*"))


def test_several_ends_and_other_engines(run, fill, tmp_path):
    run("whole")
    for pieces in (3, 4, 5):
        empty = fill(pieces)
        with pytest.raises(DataError):
            run(resume=True)
        empty()
    report = run(resume=True, engine="processes", workers=2)
    assert report.header["resumed"] == 12
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_was_not_written_to_its_end(run, fill, tmp_path, cut):
    """Counts for nothing; so do rows beyond what is on record, and a record whose rows are lost."""
    run("whole")
    empty = fill(9)
    with pytest.raises(DataError):
        run()
    empty()
    journal = tmp_path / ".out.unfinished/journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    rows = tmp_path / ".out.unfinished/run/results.jsonl"
    if cut == 40:
        os.truncate(rows, rows.stat().st_size // 2)
    report = run(resume=True)
    assert report.header["resumed"] == (8 if cut == 1 else report.header["resumed"])
    assert 1 < report.header["resumed"] < 9
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_pages_are_written_to_a_full_disk(run, tmp_path, monkeypatch):
    from gradestack_plugins.pages.html import HtmlReporter

    run("whole")
    write = HtmlReporter.write

    def full(self, report, out):
        raise OSError(errno.ENOSPC, "No space left on device", str(out / "report.html"))

    monkeypatch.setattr(HtmlReporter, "write", full)
    with pytest.raises(DataError, match="No space left"):
        run()
    monkeypatch.setattr(HtmlReporter, "write", write)
    journal = (tmp_path / ".out.unfinished/journal.jsonl").read_bytes()
    report = run(resume=True)
    assert report.header["resumed"] == journal.count(b"\n") - 1
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_a_short_run_waits_for_no_disk(run, tmp_path, monkeypatch, fill):
    """Under a second nothing is synchronised; when the disk is full it is, and the run can be continued anyway."""
    monkeypatch.setattr(journal, "PAUSE", 1_000.0)
    synchronised = []
    monkeypatch.setattr(os, "fsync", synchronised.append)
    run()
    assert synchronised == []
    empty = fill(5)
    with pytest.raises(DataError, match="continue with --resume"):
        run("other")
    assert len(synchronised) > 2
    empty()
    assert run("other", resume=True).header["resumed"] == 5
    assert files_of(tmp_path / "other") == files_of(tmp_path / "out")


def test_a_disk_that_is_really_full(run, suite, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        with pytest.raises(DataError, match="No space left on device") as caught:
            run("small/out", reports=[])
        assert caught.value.problems == ("what was graded so far is kept: continue with --resume",)
        subprocess.run(["mount", "-o", "remount,size=20m", str(small)], check=True)
        report = run("small/out", reports=[], resume=True)
        assert report.header["resumed"] > 0
        run("whole", reports=[])
        assert files_of(small / "out") == files_of(tmp_path / "whole")
    finally:
        subprocess.run(["umount", str(small)], check=True)


# what has changed


def unfinished(run, fill):
    empty = fill(6)
    with pytest.raises(DataError):
        run()
    empty()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"graders": {"toy": {"kind": "toy", "factor": 0.5}}}, "grader toy: changed"),
        ({"max_samples": 3}, "suite: changed"),
        ({"name": "y"}, "suite's name: was x, is y"),
        ({"rows": False}, "options: changed"),
        ("touch", "input runs.jsonl: changed"),
        ("__version__", "gradestack: was 0.0, is "),
        ("FORM", "form of the table of grades: was 0.0, is "),
    ],
)
def test_a_change_is_told_and_nothing_is_reused(run, fill, tmp_path, change, told, monkeypatch):
    """Exit 2 with what changed; the unfinished run stays until it is begun anew without --resume."""
    with monkeypatch.context() as before:
        if change in ("__version__", "FORM"):
            before.setattr(f"gradestack.rundir.header.{change}", "0.0")
        unfinished(run, fill)
    if change == "touch":
        os.utime("runs.jsonl", (1, 1))
    with pytest.raises(ConfigError) as caught:
        run(resume=True, **(change if isinstance(change, dict) else {}))
    assert told in str(caught.value)
    assert caught.value.problems[-1] == "run without --resume to start anew"
    said = []
    report = run(say=said.append, **(change if isinstance(change, dict) else {}))
    assert said == ["out: what an unfinished run had left is removed; --resume would have continued it"]
    assert "resumed" not in report.header
    assert not list(tmp_path.glob(".out*"))


def test_an_input_that_has_become_small(run, fill, tmp_path):
    """A single range needs no journal, but what is on record of the run before is still compared."""
    unfinished(run, fill)
    path = tmp_path / "runs.jsonl"
    path.write_text(path.read_text().splitlines()[0])
    with pytest.raises(ConfigError, match=r"input runs\.jsonl: changed"):
        run(resume=True)


def test_a_range_changed_behind_its_time_stamp(run, fill, tmp_path):
    """Same size, same time, other content: the checksum of the range tells."""
    path = tmp_path / "runs.jsonl"
    stat = path.stat()
    unfinished(run, fill)
    path.write_bytes(path.read_bytes().replace(b'"t0"', b'"u0"'))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ConfigError, match=r"out: cannot be continued, runs\.jsonl has changed"):
        run(resume=True)


def test_code_a_grader_imports_counts(fill, tmp_path, write_lines, record, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def judge(sample, submission):\n    return 1.0\n")
    write_lines([{"id": str(n), "expected": "x", "predicted": "x"} for n in range(200)])
    suite = {
        "name": "x",
        "target": {"paths": ["runs.jsonl"]},
        "graders": {"q": {"kind": "tool", "function": "mine.py:judge"}},
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    call = functools.partial(gradestack.run, "suite.yaml", output="out", allow_code=True, engine="serial")
    empty = fill(3)
    with pytest.raises(DataError):
        call()
    empty()
    (tmp_path / "mine.py").write_text("def judge(sample, submission):\n    return 0.5\n")
    with pytest.raises(ConfigError, match="grader q: changed"):
        call(resume=True)


def test_nothing_to_continue_is_begun_anew(run, tmp_path):
    """And said, so that scripts may always say --resume."""
    said = []
    run("whole")
    assert "resumed" not in run(resume=True, say=said.append).header
    assert said == ["out: there is no unfinished run to continue, it is begun anew"]
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_the_default_place(run, fill, tmp_path):
    """The newest unfinished run of the suite is continued in its own place; without --resume it is mentioned."""
    run("whole")
    for _ in range(2):
        empty = fill(5)
        with pytest.raises(DataError):
            run(None)
        empty()
    left = sorted(path.name for path in (tmp_path / "gradestack-runs/x").glob(".*"))
    assert len(left) == 2
    said = []
    fresh = run(None, say=said.append)
    assert len(said) == 1
    assert "an unfinished run of x is left: continue it with --resume, or remove gradestack-runs/x/" in said[0]
    report = run(None, resume=True)
    assert report.header["resumed"] == 5
    assert f".{report.path.name}.unfinished" in left
    assert report.path != fresh.path
    assert len(list((tmp_path / "gradestack-runs/x").glob(".*"))) == 1
    assert files_of(report.path) == files_of(tmp_path / "whole")
