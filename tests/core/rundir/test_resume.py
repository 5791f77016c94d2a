"""Runs that were interrupted or killed, resumed."""

import errno
import functools
import json
import os
import random
import shutil
import signal
import sys

import pytest

import gradestack
from gradestack import ConfigError, DataError, LostEngineError
from gradestack.rundir import journal
from gradestack_plugins.readers import jsonl
from tests.conftest import ON_RECORD
from tests.core.outcomes import data, some_of
from tests.core.outcomes import files_but_headers as files_of

pytestmark = pytest.mark.slow

DATA = data(__file__, "resume.yaml")

RECORDS = 400
PAGES = ["html", "markdown"]
KEPT = "what was graded so far is kept: continue with --resume"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Shards of some ten records, everything put on record at once."""
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 900)
    monkeypatch.setattr(journal, "SECONDS_BETWEEN_WRITES", -1.0)


@pytest.fixture
def suite(write_lines, record, tmp_path, monkeypatch):
    """A recording with bad and repeated records and several models, graded by a toy with native
    files.
    """
    monkeypatch.chdir(tmp_path)
    choose = random.Random(3)  # noqa: S311 - a seed is wanted
    lines = []
    for number in range(RECORDS):
        if choose.random() > 0.05:
            name = number
        else:
            name = number // 2
        recorded = {"do": choose.choice(["skip", "raise", "", "", ""]), "score": choose.random()}
        model = choose.choice("ab")
        lines.append(record(f"t{name}", recorded=recorded, model=model, run=None))
        if choose.random() < 0.05:
            lines.append('{"id": broken')
    write_lines(lines)
    suite = {
        "name": "x",
        "target": {"paths": ["runs.jsonl"]},
        "graders": {"toy": "toy"},
        "reader": "jsonl",
    }
    return {**suite, "reports": ["markdown"]}


@pytest.fixture(scope="module")
def registry(make_registry_, toys):
    """The toys, an exporter that writes every record back, and what goes wrong."""
    component = toys.component("exporter", "echo", "Echo")
    return make_registry_(
        component,
        toys.component("engine", "fading", "Fading"),
        toys.component("reporter", "interrupted", "Interrupting"),
    )


@pytest.fixture
def run(suite, registry):
    """Return a function that runs the suite, in one process unless told otherwise."""

    def call(output="out", **more):
        options = {}
        for name in ("resume", "rows", "workers", "echo"):
            if name in more:
                options[name] = more.pop(name)
        return gradestack.run(
            {**suite, "engine": "serial", **more}, output=output, registry=registry, **options
        )

    return call


@pytest.mark.parametrize(
    "pieces",
    [7, pytest.param(1, marks=pytest.mark.proof), pytest.param(30, marks=pytest.mark.proof)],
)
@pytest.mark.parametrize("rows", ["full", "compressed", "none"])
def test_a_full_disk_keeps_what_is_finished(run, full_disk, tmp_path, pieces, rows, monkeypatch):
    """Exit 3 and one message.

    Continued, the bytes of an undisturbed run, and nothing is graded twice.
    """
    run("whole", rows=rows, reports=PAGES)
    note = journal.Journal.note
    left = [pieces]

    def full(self, *arguments):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device", "journal")
        left[0] -= 1
        note(self, *arguments)

    with monkeypatch.context() as disk:
        if rows == "none":
            disk.setattr(journal.Journal, "note", full)
        error = full_disk(pieces, lambda: run(rows=rows, reports=PAGES))
    assert error.problems == (KEPT,)
    out_folder = tmp_path / "out"
    assert not out_folder.exists()
    journal_path = tmp_path / ".out.unfinished/journal.jsonl"
    assert journal_path.read_bytes().count(b"\n") == 1 + pieces
    report = run(rows=rows, reports=PAGES, resume=True)
    assert report.header["resumed"] == pieces
    files = files_of(tmp_path / "out")
    expected = files_of(tmp_path / "whole")
    assert files == expected
    paths = tmp_path.glob(".out*")
    assert not list(paths)


def test_a_disk_that_is_full_before_anything_is_finished(run, full_disk, tmp_path):
    """There is nothing to continue, and the message says why."""
    error = full_disk(0, run)
    assert error.problems == (
        "nothing is kept for --resume: no range of 8 MiB of the input was finished",
    )
    paths = tmp_path.glob(".out*")
    assert not list(paths)


def test_several_ends_and_other_engines(run, full_disk, tmp_path):
    run("whole")
    for pieces in (3, 4, 5):
        full_disk(pieces, lambda: run(resume=True))
    report = run(resume=True, engine="processes", workers=2)
    assert report.header["resumed"] == 12
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    expected = files_of(tmp_path / "whole")
    assert files == expected


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_was_not_written_to_its_end(run, full_disk, tmp_path, cut):
    """Counts for nothing; so do rows beyond what is on record, and a record whose rows are lost."""
    run("whole")
    full_disk(9, run)
    journal = tmp_path / ".out.unfinished/journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    rows = tmp_path / ".out.unfinished/run/results.jsonl"
    if cut == 40:
        status = rows.stat()
        os.truncate(rows, status.st_size // 2)
    report = run(resume=True)
    resumed = report.header["resumed"]
    if cut == 1:
        expected = 8
    else:
        expected = report.header["resumed"]
    assert resumed == expected
    assert 1 < report.header["resumed"] < 9
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    assert files == files_of(tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "expected_message"), some_of(DATA["a_change_is_told_and_nothing_is_reused"], 2)
)
def test_a_change_is_told_and_nothing_is_reused(
    run, full_disk, tmp_path, change, expected_message, monkeypatch
):
    """Exit 2 with what changed.

    The unfinished run stays until it is begun anew without --resume.
    """
    with monkeypatch.context() as before:
        if change in ("__version__", "FORM"):
            before.setattr(f"gradestack.rundir.header.{change}", "0.0")
        full_disk(6, run)
    if change == "touch":
        os.utime("runs.jsonl", (1, 1))
    with pytest.raises(ConfigError) as caught:
        run(resume=True, **(change if isinstance(change, dict) else {}))
    assert expected_message in str(caught.value)
    last_problem = caught.value.problems[-1]
    assert last_problem == "run without --resume to start anew"
    messages = []
    report = run(echo=messages.append, **(change if isinstance(change, dict) else {}))
    assert messages == [
        "out: what an unfinished run had left is removed; --resume would have continued it"
    ]
    assert "resumed" not in report.header
    paths = tmp_path.glob(".out*")
    assert not list(paths)


def test_a_range_changed_behind_its_time_stamp(run, full_disk, tmp_path):
    """Same size, same time, other content: the checksum of the range tells."""
    path = tmp_path / "runs.jsonl"
    stat = path.stat()
    full_disk(6, run)
    path.write_bytes(path.read_bytes().replace(b'"t0"', b'"u0"'))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ConfigError, match=r"out: cannot be continued, runs\.jsonl has changed"):
        run(resume=True)


def test_nothing_to_continue_is_begun_anew(run, tmp_path):
    """And said, so that scripts may always say --resume."""
    messages = []
    run("whole")
    expected = run(resume=True, echo=messages.append).header
    assert "resumed" not in expected
    assert messages == ["out: there is no unfinished run to continue, it is begun anew"]
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    assert files == files_of(tmp_path / "whole")


def test_the_default_place(run, full_disk, tmp_path):
    """The newest unfinished run of the suite is continued in its own place.

    Without --resume it is mentioned.
    """
    run("whole")
    for _ in range(2):
        full_disk(5, lambda: run(None))
    paths = (tmp_path / "gradestack-runs/x").glob(".*")
    left = sorted(path.name for path in paths)
    assert len(left) == 2
    messages = []
    fresh = run(None, echo=messages.append)
    assert len(messages) == 1
    assert (
        "an unfinished run of x is left: continue it with --resume, or remove gradestack-runs/x/"
        in messages[0]
    )
    report = run(None, resume=True)
    assert report.header["resumed"] == 5
    expected_text = f".{report.path.name}.unfinished"
    assert expected_text in left
    assert report.path != fresh.path
    x_folder = tmp_path / "gradestack-runs/x"
    path_count = len(list(x_folder.glob(".*")))
    assert path_count == 1
    files = files_of(report.path)
    expected = files_of(tmp_path / "whole")
    assert files == expected


def test_machines_that_are_gone_cost_nothing(run, tmp_path):
    run("whole")
    with pytest.raises(LostEngineError, match="gone") as caught:
        run(engine={"kind": "fading", "after": 3})
    assert caught.value.problems == ("wait", KEPT)
    assert caught.value.exit_code == 2
    with pytest.raises(LostEngineError):
        run(engine={"kind": "fading", "after": 1}, resume=True)
    resumed = run(resume=True).header["resumed"]
    assert resumed == 4
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    expected = files_of(tmp_path / "whole")
    assert files == expected
    paths = tmp_path.glob(".out*")
    assert not list(paths)


def test_an_interrupt_while_pages_are_written_loses_no_grade(run, tmp_path):
    run("whole", reports=["markdown"])
    broken_off = run(reports=["interrupted"])
    assert broken_off.exit_code == 130
    report = run(reports=["markdown"], resume=True)
    assert report.header["resumed"] > 30
    assert report.exit_code == 0
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    expected = files_of(tmp_path / "whole")
    assert files == expected
    paths = tmp_path.glob(".out*")
    assert not list(paths)


@pytest.mark.parametrize(
    ("line", "damage", "kept_records"),
    [
        (0, lambda line: line.replace(b"fingerprint", b"fingerprinu"), 0),
        (2, lambda line: line.replace(b'"samples":', b'"samples":1'), 1),
        (3, lambda line: line[:-9] + b"\n", 2),
    ],
)
def test_a_damaged_record_counts_for_nothing(run, full_disk, tmp_path, line, damage, kept_records):
    run("whole")
    full_disk(4, run)
    journal = tmp_path / ".out.unfinished/journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[line] = damage(lines[line])
    journal.write_bytes(b"".join(lines))
    messages = []
    report = run(resume=True, echo=messages.append)
    resumed = report.header.get("resumed", 0)
    assert resumed == kept_records
    assert messages == (
        []
        if kept_records
        else ["out: what was on record of the unfinished run is damaged, it is begun anew"]
    )
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    expected = files_of(tmp_path / "whole")
    assert files == expected


def test_an_input_that_fails_a_continued_run_does_not_cost_its_record(
    run, full_disk, tmp_path, monkeypatch
):
    full_disk(4, run)

    def unseen(*_):
        raise DataError("runs.jsonl: not to be seen here")

    with monkeypatch.context() as patch:
        patch.setattr(jsonl.JsonLines, "blocks", unseen)
        with pytest.raises(DataError, match="not to be seen"):
            run(resume=True)
    journal_path = tmp_path / ".out.unfinished/journal.jsonl"
    lines = journal_path.read_bytes().splitlines()
    line_count = len(lines)
    assert line_count == 5


ENGINES = {
    "serial": ("--engine", "serial"),
    "processes": ("--engine", "processes", "--workers", "2"),
}
FINISHING = "interrupted: what is being graded is finished first; Ctrl-C once more ends the run now"


@pytest.mark.parametrize(
    ("engine", "number"),
    some_of(
        map(
            pytest.param,
            ["serial", "serial", "processes"],
            [signal.SIGINT, signal.SIGHUP, signal.SIGTERM],
        ),
        3,
    ),
)
def test_partial_results_can_be_completed(stalled_run, number, engine):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(
            "the tests were started with this signal ignored (nohup), and so is what they start"
        )
    run = functools.partial(
        stalled_run.start,
        *ENGINES[engine],
        "--set",
        "reports=[markdown]",
        program=("-c", ON_RECORD),
    )
    process = run("-o", "out")
    engine_count = len(ENGINES[engine])
    workers = engine_count // 2
    stalled_run.stand_still(process, "out", workers=workers)
    process.send_signal(number)
    if engine == "serial":
        stalled_run.open()  # the sample at hand is finished
    waits = engine == "serial" and number == signal.SIGINT
    messages = [FINISHING] * waits + [
        "interrupted: partial results were kept; --resume grades the rest"
    ]
    output = process.communicate()
    assert output == ("", "".join(f"{line}\n" for line in messages))
    assert process.returncode == 130
    path = stalled_run.folder / "out"
    partial = gradestack.load_report(path)
    assert "incomplete" in partial.summary
    rows = partial.rows()
    expected = sum(1 for _ in rows)
    total = partial.metrics["total"]
    assert total == expected == stalled_run.free + (engine == "serial")
    stalled_run.open()
    for options in (("-o", "out", "--resume"), ("-o", "whole")):
        process = run(*options)
        assert process.communicate() == ("", "")
        assert process.returncode == 0
    out_folder = stalled_run.folder / "out"
    files = files_of(out_folder)
    assert files == files_of(stalled_run.folder / "whole")
    paths = stalled_run.folder.glob(".out*")
    assert not list(paths)


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_hidden_directory_that_was_removed(stalled_run, engine):
    run = stalled_run.start(
        "-o",
        "out",
        "--engine",
        engine,
        "--workers=1" if engine == "processes" else "-q",
        program=("-c", ON_RECORD),
    )
    stalled_run.stand_still(run, "out")
    shutil.rmtree(stalled_run.folder / ".out.unfinished")
    stalled_run.open()
    out, err = run.communicate()
    assert (run.returncode, out) == (3, "")
    folder = stalled_run.folder / ".out.unfinished"
    assert (
        err
        == f"error: {folder}: was removed while the run was writing there; nothing is left of it\n"
    )


GRADER = DATA["grader"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such timer")
def test_grades_that_took_too_long_are_done_again(tmp_path, monkeypatch):
    """With --resume, also by another limit.

    Ranges before the first of them are taken over, the others are not.
    """
    monkeypatch.setattr(journal, "SECONDS_BETWEEN_WRITES", -1.0)
    (tmp_path / "grader.py").write_text(GRADER)
    for file in range(5):
        rows = []
        for number in range(4):
            text = json.dumps({"id": f"t{4 * file + number}", "predicted": "x"})
            rows.append(text)
        (tmp_path / f"{file}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    grader_path = tmp_path / "grader.py"
    grader = {"kind": "python_function", "file": str(grader_path), "name": "grade"}
    paths = [str(tmp_path / "*.jsonl")]
    target = {"paths": paths}
    suite = {
        "name": "x",
        "target": target,
        "graders": {"g": grader},
        "reports": [],
    }

    def run(output, *overrides, resume=False):
        options = {"engine": "serial", "allow_code": True, "overrides": overrides, "resume": resume}
        return gradestack.run(suite, output=tmp_path / output, **options)

    for mark in ("slow", "stop"):
        (tmp_path / mark).touch()
    first = run("out", "limits.seconds_per_grade=0.2")
    assert first.exit_code == 130
    timed_out = first.header["timed_out"]
    assert timed_out == 1
    failed = first.states["g"]["failed"]
    assert failed == 1
    for mark in ("slow", "stop"):
        (tmp_path / mark).unlink()
    second = run("out", "limits.seconds_per_grade=60", resume=True)
    assert second.exit_code == 0
    assert second.header["resumed"] == 1
    assert second.states["g"]["failed"] == 0
    assert "timed_out" not in second.header
    run("whole", "limits.seconds_per_grade=60")
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    expected = files_of(tmp_path / "whole")
    assert files == expected
