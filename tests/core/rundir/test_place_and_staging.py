"""Run directories: never in anybody's way, never half done."""

import json
from datetime import UTC, datetime

import pytest

from gradestack import ConfigError, is_run
from gradestack.run_files import GENERATOR, HEADER
from gradestack.rundir.place import Staging, check_place, default_place, link_latest

NOON = datetime(2031, 2, 3, 12, 0, 5, tzinfo=UTC)


def make_run(path, **files):
    path.mkdir(parents=True)
    (path / HEADER).write_text(json.dumps({"generator": GENERATOR}))
    for name, text in files.items():
        (path / name).write_text(text)
    return path


@pytest.mark.parametrize("header", [None, "", "[]", "{", '{"generator": "other"}', "[" * 10_000])
def test_only_our_own_directories_are_runs(tmp_path, header):
    if header is not None:
        (tmp_path / HEADER).write_text(header)
    assert not is_run(tmp_path)
    assert is_run(make_run(tmp_path / "run"))
    assert not is_run(tmp_path / "gone")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("airline", "airline"),
        ("a b/c:d", "a-b-c-d"),
        ("../..", "run"),
        ("", "run"),
        ("été", "été"),
        ("x" * 300, "x" * 100),
    ],
)
def test_the_default_place_is_safe(tmp_path, monkeypatch, name, folder):
    monkeypatch.chdir(tmp_path)
    assert default_place(name, NOON).as_posix() == f"gradestack-runs/{folder}/20310203T120005Z"


def test_two_runs_within_a_second_both_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    default_place("x", NOON).mkdir(parents=True)
    assert default_place("x", NOON).name == "20310203T120005Z-2"
    default_place("x", NOON).mkdir()
    assert default_place("x", NOON).name == "20310203T120005Z-3"


def test_free_places(tmp_path):
    (tmp_path / "empty").mkdir()
    make_run(tmp_path / "run")
    for name in ("new", "deep/er/new", "empty", "run"):
        check_place(tmp_path / name)


def test_a_directory_that_may_not_be_written(tmp_path, monkeypatch):
    """Said before any work is done (the check is simulated: root may write anywhere)."""
    monkeypatch.setattr("gradestack.rundir.place.os.access", lambda *_: False)
    with pytest.raises(ConfigError, match="can be written to"):
        check_place(tmp_path / "new")


def test_nothing_is_at_the_place_until_all_is_done(tmp_path):
    staging = Staging(tmp_path / "out/run")
    (staging.parts / "piece").touch()
    staging.write_json("x.json", {"b": 1, "a": "é"})
    assert not (tmp_path / "out/run").exists()
    assert staging.commit() == tmp_path / "out/run"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run"]
    assert [path.name for path in (tmp_path / "out/run").iterdir()] == ["x.json"]
    assert (tmp_path / "out/run/x.json").read_bytes() == '{\n  "a": "é",\n  "b": 1\n}\n'.encode()
    assert (tmp_path / "out/run").stat().st_mode & 0o777 == 0o755


def test_latest_points_at_the_last_run(tmp_path):
    for name in ("one", "two"):
        link_latest(make_run(tmp_path / name))
    assert (tmp_path / "latest").resolve() == tmp_path / "two"
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").mkdir()
    link_latest(tmp_path / "one")
    assert (tmp_path / "latest").is_dir()
    assert not (tmp_path / "latest").is_symlink()
