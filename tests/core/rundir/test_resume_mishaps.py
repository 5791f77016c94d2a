"""What becomes of the work done when a run ends in less usual ways."""

import json

import pytest

import gradestack
from gradestack import ConfigError, DataError, LostEngineError
from gradestack.rundir import journal
from gradestack_plugins.readers import jsonl
from tests.core.outcomes import files_but_headers

RECORDS = 60


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    """Shards of some ten records, everything put on record at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 600)
    monkeypatch.setattr(journal, "PAUSE", -1.0)


@pytest.fixture
def registry(toys):
    """The toys, and what goes wrong."""
    return toys.make_registry(
        toys.component("engine", "fading", "Fading"),
        toys.component("reporter", "interrupted", "Interrupting"),
    )


@pytest.fixture
def run(write_lines, record, registry):
    """Return a function that grades a recording of several ranges."""
    write_lines([record(f"t{number}", number / RECORDS) for number in range(RECORDS)])

    def call(output="out", *, resume=False, say=None, **suite):
        content = {"name": "x", "target": {"paths": ["runs.jsonl"]}, "graders": {"toy": "toy"}, "reader": "jsonl"}
        content |= {"reports": [], "engine": "serial"} | suite
        return gradestack.run(content, output=output, registry=registry, resume=resume, say=say)

    return call


def test_machines_that_are_gone_cost_nothing(run, tmp_path):
    run("whole")
    with pytest.raises(LostEngineError, match="gone") as caught:
        run(engine={"kind": "fading", "after": 3})
    assert caught.value.problems == ("wait", "what was graded so far is kept: continue with --resume")
    assert caught.value.exit_code == 2
    with pytest.raises(LostEngineError):
        run(engine={"kind": "fading", "after": 1}, resume=True)
    assert run(resume=True).header["resumed"] == 4
    assert files_but_headers(tmp_path / "out") == files_but_headers(tmp_path / "whole")
    assert not list(tmp_path.glob(".out*"))


def test_an_interrupt_while_pages_are_written_loses_no_grade(run, tmp_path):
    run("whole", reports=["markdown"])
    broken_off = run(reports=["interrupted"])
    assert broken_off.exit_code == 130
    report = run(reports=["markdown"], resume=True)
    assert report.header["resumed"] == (tmp_path / "runs.jsonl").stat().st_size // 600
    assert report.exit_code == 0
    assert files_but_headers(tmp_path / "out") == files_but_headers(tmp_path / "whole")
    assert not list(tmp_path.glob(".out*"))


def _stop(run):
    with pytest.raises(LostEngineError):
        run(engine={"kind": "fading", "after": 4})


@pytest.mark.parametrize(
    ("line", "damage", "kept"),
    [
        (0, lambda line: b"{}\n", 0),
        (0, lambda line: line.replace(b"fingerprint", b"fingerprinu"), 0),
        (0, lambda line: b"\xff\x00\n", 0),
        (2, lambda line: b"{}\n", 1),
        (2, lambda line: line.replace(b'"samples":', b'"samples":1'), 1),
        (3, lambda line: line[:-9] + b"\n", 2),
        (3, lambda line: b"\n", 2),
    ],
)
def test_a_damaged_record_counts_for_nothing(run, tmp_path, line, damage, kept):
    run("whole")
    _stop(run)
    journal = tmp_path / ".out.unfinished/journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[line] = damage(lines[line])
    journal.write_bytes(b"".join(lines))
    said = []
    report = run(resume=True, say=said.append)
    assert report.header.get("resumed", 0) == kept
    assert said == ([] if kept else ["out: what was on record of the unfinished run is damaged, it is begun anew"])
    assert files_but_headers(tmp_path / "out") == files_but_headers(tmp_path / "whole")


def test_every_line_of_the_record_is_json(run, tmp_path):
    _stop(run)
    lines = (tmp_path / ".out.unfinished/journal.jsonl").read_bytes().splitlines()
    contents = [json.loads(line) for line in lines]
    assert all("check" in content for content in contents)
    assert ["table" in content for content in contents] == [False, True, True, True, True]


def test_a_refused_attempt_leaves_nothing_behind(run, tmp_path):
    _stop(run)
    before = sorted(path.name for path in (tmp_path / ".out.unfinished").iterdir())
    for _ in range(3):
        with pytest.raises(ConfigError, match="cannot be continued"):
            run(resume=True, profile="upstream")
    assert sorted(path.name for path in (tmp_path / ".out.unfinished").iterdir()) == before


def test_an_input_that_fails_a_continued_run_does_not_cost_its_record(run, tmp_path, monkeypatch):
    _stop(run)
    monkeypatch.setattr(jsonl.JsonLines, "blocks", _unseen)
    with pytest.raises(DataError, match="not to be seen"):
        run(resume=True)
    monkeypatch.undo()
    assert len((tmp_path / ".out.unfinished/journal.jsonl").read_bytes().splitlines()) == 5


def _unseen(self, shard, index):
    msg = "runs.jsonl: not to be seen here"
    raise DataError(msg)
