"""Files that change while they are read: what was planned is graded, or the run says that it cannot be."""

import json

import pytest

import gradestack
from gradestack import DataError
from gradestack.grading import loop

ENGINES = ["serial", {"kind": "processes", "workers": 2}]


@pytest.fixture
def meanwhile(monkeypatch):
    planned = loop.shards_of

    def after_planning(action):
        def plan(reader, inputs):
            found = planned(reader, inputs)
            action()
            return found

        monkeypatch.setattr(loop, "shards_of", plan)

    return after_planning


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """A file of 200 records in about ten shards."""
    path = tmp_path / "runs.jsonl"
    call = {"name": "f", "arguments": {"a": 1}}
    records = [{"id": f"t{n}", "expected": [call], "predicted": [call] * (n % 3)} for n in range(200)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", path.stat().st_size // 10)
    return path


def _run(path, engine, tmp_path, name):
    suite = {"name": "x", "target": {"paths": [str(path)]}, "graders": {"q": "tau_partial"}, "reports": []}
    return gradestack.run({**suite, "engine": engine}, output=tmp_path / name)


def _bytes(report):
    return {name: (report.path / name).read_bytes() for name in ("results.jsonl", "summary.json")}


@pytest.mark.parametrize("engine", ENGINES, ids=["serial", "processes"])
def test_lines_added_meanwhile_are_left_for_the_next_run(lines, tmp_path, engine, meanwhile):
    """The results are those of the file as it was when the run began, whole lines and half ones alike."""
    before = _bytes(_run(lines, "serial", tmp_path, "before"))

    def grow():
        with lines.open("a") as file:
            file.write(lines.read_text()[:5000])

    meanwhile(grow)
    assert _bytes(_run(lines, engine, tmp_path, "grown")) == before


@pytest.mark.parametrize("share", [0.0, 0.3, 0.55, 0.999])
@pytest.mark.parametrize("engine", ENGINES, ids=["serial", "processes"])
def test_a_file_cut_short_meanwhile_ends_the_run(lines, tmp_path, engine, share, meanwhile):
    """Wherever it is cut, the message says so; nothing is written that would look complete."""
    size = lines.stat().st_size
    kept = int(size * share)

    def cut():
        with lines.open("r+") as file:
            file.truncate(kept)

    meanwhile(cut)
    with pytest.raises(DataError, match=r"runs\.jsonl: was cut short while it was read: it held \d+ bytes, now"):
        _run(lines, engine, tmp_path, "cut")
    assert not (tmp_path / "cut" / "summary.json").exists()


@pytest.mark.parametrize("engine", ENGINES, ids=["serial", "processes"])
def test_a_file_removed_meanwhile_ends_the_run(lines, tmp_path, engine, meanwhile):
    meanwhile(lines.unlink)
    with pytest.raises(DataError, match=r"runs\.jsonl: No such file or directory"):
        _run(lines, engine, tmp_path, "removed")


@pytest.mark.parametrize("engine", ENGINES, ids=["serial", "processes"])
def test_a_list_cut_short_meanwhile_is_not_taken_for_whole(tmp_path, engine, meanwhile, monkeypatch):
    """A JSON list has records missing at its end only with a word about it."""
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 2000)
    path = tmp_path / "results.json"
    call = {"name": "f", "kwargs": {"a": 1}}
    record = {"reward": 1.0, "info": {"task": {"actions": [call]}}, "traj": [], "trial": 0}
    path.write_text(json.dumps([{"task_id": n, **record} for n in range(200)], indent=1))
    kept = path.stat().st_size // 2

    def cut():
        with path.open("r+") as file:
            file.truncate(kept)

    meanwhile(cut)
    try:
        report = _run(path, engine, tmp_path, "cut")
    except DataError as error:
        assert "cut short" in str(error)  # noqa: PT017 - either is right
    else:
        assert report.summary["bad_records"]["count"] >= 1
        assert "cut off" in report.summary["bad_records"]["listed"][0]["reason"]
