"""A report directory: journal, header, staging, what it takes in memory."""

import errno
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

import gradestack
from gradestack import ConfigError, Input, Shard, replace
from gradestack.outcome.pages import rewrite_pages
from gradestack.registry import discover
from gradestack.report import GENERATOR, HEADER
from gradestack.rundir import place
from gradestack.rundir.header import differences, range_mark
from gradestack.rundir.place import (
    GrowingFile,
    Staging,
    check_place,
    default_place,
    filling,
    link_latest,
)
from gradestack.rundir.recorder import EndOfRows
from tests.core.outcomes import data

DATA = data(__file__, "journal.yaml")


def test_what_changed_is_named():
    old = {"same": 1, "version": "1", "grader a": {"x": 1}, "gone": 1}
    new = {"same": 1, "version": "2", "grader a": {"x": 2}, "more": 1}
    assert differences(old, new) == DATA["what_changed_is_named"]
    assert differences(old, old) == []


def test_the_mark_of_a_range(tmp_path):
    """Depends on what it is and on both its ends, not on its middle or what is around it."""
    path = tmp_path / "f"
    path.write_bytes(b"a" * 300_000)
    shard = Shard(ordinal=0, input=Input(path=path, name="f", shown="f"), start=1000, end=299_000)
    mark = range_mark(shard)
    expected = range_mark(replace(shard, ordinal=1))
    assert mark != expected
    for at, same in ((0, True), (1000, False), (150_000, True), (298_999, False), (299_000, True)):
        data = bytearray(b"a" * 300_000)
        data[at] = ord("b")
        path.write_bytes(data)
        assert (range_mark(shard) == mark) is same


def test_only_the_shard_whose_turn_it_is_writes_at_the_end_of_the_rows(tmp_path):
    """Another try of it, and a shard that is early, have files of their own."""
    rows = GrowingFile(tmp_path / "results.jsonl")
    end = EndOfRows(rows, 0)
    source = Input(path=tmp_path, name="f", shown="f")
    shards = [Shard(ordinal=number, input=source) for number in range(2)]
    assert not end.claim(shards[1])
    assert end.claim(shards[0])
    assert not end.claim(shards[0])
    end.writelines([b"of a try ", b"that broke\n"])
    own = tmp_path / "own"
    own.write_bytes(b"first\n")
    written = rows.append(own)
    assert written == 6
    end.pass_on(1)
    assert end.claim(shards[1])
    end.writelines([b"second\n", memoryview(b"long\n")])
    accepted = rows.accept()
    rows.close()
    assert accepted == 12
    assert rows.path.read_bytes() == b"first\nsecond\nlong\n"


def test_two_runs_cannot_share_a_place(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "PATIENCE", 0.1)
    monkeypatch.setattr(place.lock, "__defaults__", (0.1,))
    out_folder = tmp_path / "out"
    first = Staging(out_folder)
    with pytest.raises(ConfigError, match="another run is writing it"):
        Staging(tmp_path / "out")
    first.write_json("x.json", 1)
    commit = first.commit()
    assert commit == tmp_path / "out"
    assert (tmp_path / "out/x.json").is_file()


@pytest.mark.parametrize("write", ["report", "compare"])
def test_pages_are_not_written_where_a_run_is(write, tmp_path, monkeypatch):
    """Neither the other way round: who writes into a directory has it alone."""
    monkeypatch.setattr(place, "PATIENCE", 0.1)
    monkeypatch.setattr(place.lock, "__defaults__", (0.1,))
    out = tmp_path / "out"
    sample = {"id": "a", "predicted": "x", "expected": "x"}
    report = gradestack.grade([sample], {"g": "exact_match"}, output=out)
    if write == "report":
        pages = partial(rewrite_pages, report, discover(), ["markdown"], out)
    else:
        out = tmp_path / "comparison"
        pages = partial(gradestack.compare, report, report, output=out)
    with place.reserve(out):
        with pytest.raises(ConfigError, match="another run is writing it"):
            pages()
        with pytest.raises(ConfigError, match="another run is writing it"):
            Staging(out)
    pages()
    unfinished = place.unfinished(out)
    assert not unfinished.exists()


def test_somebody_elses_hidden_directory_is_left_alone(tmp_path):
    (tmp_path / ".out.unfinished").mkdir()
    (tmp_path / ".out.unfinished/thesis.tex").touch()
    with pytest.raises(ConfigError, match=r"holds thesis\.tex, which is not ours"):
        Staging(tmp_path / "out")
    assert (tmp_path / ".out.unfinished/thesis.tex").exists()


def test_an_earlier_run_is_back_when_replacing_it_was_killed(tmp_path):
    """Between the two renames the place is empty for a moment."""
    old = tmp_path / ".out.unfinished/old"
    old.mkdir(parents=True)
    header_path = old / "header.json"
    text = json.dumps({"generator": "gradestack"})
    header_path.write_text(text)
    out_folder = tmp_path / "out"
    Staging(out_folder).discard()
    assert (tmp_path / "out/header.json").is_file()


@pytest.fixture
def suite(write_lines, record, tmp_path):
    """Write two files of one record each, and return a suite over both."""
    (tmp_path / "d").mkdir()
    one = write_lines([record("a", 1.0)], "d/one.jsonl")
    two = write_lines([record("b", 1.0)], "d/two.jsonl")
    paths = [str(one), str(two)]
    return {
        "name": "x",
        "target": {"paths": paths},
        "graders": {"q": "toy"},
        "reader": "jsonl",
        "reports": [],
    }


def test_an_input_that_is_gone_by_the_end_loses_no_run(suite, tmp_path, registry):
    def progress(state):
        if state.phase == "native files":
            paths = suite["target"]["paths"]
            Path(paths[1]).unlink()

    output = tmp_path / "out"
    report = gradestack.run(suite, output=output, registry=registry, progress=progress)
    total = report.metrics["total"]
    assert total == 2
    planned_inputs = report.header["inputs"]
    assert [planned_input["sha256"] is None for planned_input in planned_inputs] == [
        False,
        True,
    ]


NOON = datetime(2031, 2, 3, 12, 0, 5, tzinfo=UTC)


def make_run(path, **files):
    path.mkdir(parents=True)
    (path / HEADER).write_text(json.dumps({"generator": GENERATOR}))
    for name, text in files.items():
        (path / name).write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "folder"), [*DATA["the_default_place_is_safe"], ("x" * 300, "x" * 100)]
)
def test_the_default_place_is_safe(tmp_path, monkeypatch, name, folder):
    monkeypatch.chdir(tmp_path)
    path = default_place(name, NOON).as_posix()
    assert path == f"gradestack-runs/{folder}/20310203T120005Z"


def test_two_runs_within_a_second_both_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    default_place("x", NOON).mkdir(parents=True)
    assert default_place("x", NOON).name == "20310203T120005Z-2"
    default_place("x", NOON).mkdir()
    assert default_place("x", NOON).name == "20310203T120005Z-3"


def test_a_directory_that_may_not_be_written(tmp_path, monkeypatch):
    """Said before any work is done (the check is simulated: root may write anywhere)."""
    monkeypatch.setattr("gradestack.rundir.place.os.access", lambda *_: False)
    with pytest.raises(ConfigError, match="can be written to"):
        check_place(tmp_path / "new")


def test_nothing_is_at_the_place_until_all_is_done(tmp_path):
    staging = Staging(tmp_path / "out/run")
    (staging.parts / "piece").touch()
    staging.write_json("x.json", {"b": 1, "a": "é"})
    run_folder = tmp_path / "out/run"
    assert not run_folder.exists()
    commit = staging.commit()
    assert commit == tmp_path / "out/run"
    staging.discard()
    out_folder = tmp_path / "out"
    names = [path.name for path in out_folder.iterdir()]
    assert names == ["run"]
    paths = (tmp_path / "out/run").iterdir()
    assert [path.name for path in paths] == ["x.json"]
    x_path = tmp_path / "out/run/x.json"
    assert x_path.read_bytes() == '{\n  "a": "é",\n  "b": 1\n}\n'.encode()
    status = (tmp_path / "out/run").stat()
    assert status.st_mode & 0o777 == 0o755


def test_latest_points_at_the_last_run(tmp_path):
    for name in ("one", "two"):
        path = tmp_path / name
        link_latest(make_run(path))
    latest_folder = tmp_path / "latest"
    assert latest_folder.resolve() == tmp_path / "two"
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").mkdir()
    link_latest(tmp_path / "one")
    assert (tmp_path / "latest").is_dir()
    assert not (tmp_path / "latest").is_symlink()


def test_errors_name_files_where_they_were_going_to_be(tmp_path):
    """Not by the name of a directory that is gone when it is read."""
    with pytest.raises(OSError, match="No space") as full, filling(tmp_path) as new:
        raise OSError(errno.ENOSPC, "No space left on device", str(new / "tables" / "samples.csv"))
    tables_folder = tmp_path / "tables"
    samples_path = tables_folder / "samples.csv"
    assert full.value.filename == str(samples_path)
    with pytest.raises(ValueError, match="wrong") as wrong, filling(tmp_path) as new:
        raise ValueError(f"{new}/report.html is wrong")
    expected_text = f"{tmp_path}/report.html is wrong"
    assert str(wrong.value) == expected_text
    paths = tmp_path.iterdir()
    assert not list(paths)


def test_what_was_written_before_an_error_is_not_put_there(tmp_path):
    page_folder = tmp_path / "page"
    page_folder.write_text("before")

    def fill():
        with filling(tmp_path) as new:
            page_folder = new / "page"
            page_folder.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fill()
    paths = tmp_path.iterdir()
    texts_by_name = {path.name: path.read_text() for path in paths}
    assert texts_by_name == {"page": "before"}


def test_files_have_the_rights_of_any_new_file(tmp_path):
    """The directory they are written in is nobody else's, they are not."""
    usual_folder = tmp_path / "usual"
    usual_folder.write_text("")
    with filling(tmp_path) as new:
        status = new.stat()
        assert status.st_mode & 0o077 == 0
        (new / "page").write_text("")
    page_folder = tmp_path / "page"
    assert page_folder.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_folder_in_the_place_of_a_page_is_left_alone(tmp_path):
    (tmp_path / "page").mkdir()
    with pytest.raises(IsADirectoryError) as caught, filling(tmp_path) as new:
        (new / "page").write_text("")
    page_folder = tmp_path / "page"
    assert caught.value.filename2 == str(page_folder)
