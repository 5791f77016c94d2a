"""A table of grades that would not fit is refused before memory is gone."""

import platform
import re
import resource
from pathlib import Path

import pytest

import gradestack
from gradestack import ConfigError
from gradestack.outcome.pages import Pages
from gradestack.rundir import recorder
from tests.core.outcomes import data


@pytest.fixture
def run(tmp_path, write_lines, record, registry, monkeypatch):
    """Return a function that grades 500 samples in shards of about ten, with an engine of this process."""
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 600)
    path = write_lines([record(f"task number {number}", 1.0) for number in range(500)])
    suite = {"name": "x", "target": {"paths": [str(path)]}, "graders": {"q": "toy"}, "reports": [], "reader": "jsonl"}

    def call(**more):
        return gradestack.run(suite | more, output=tmp_path / "out", registry=registry, engine="serial")

    return call


def test_what_fits_is_graded(run, monkeypatch):
    monkeypatch.setattr(recorder, "free_memory", lambda: 10**9)
    assert run().metrics["total"] == 500
    monkeypatch.setattr(recorder, "free_memory", lambda: None)
    assert run().metrics["total"] == 500


def test_what_does_not_fit_is_refused(run, monkeypatch, tmp_path):
    monkeypatch.setattr(recorder, "free_memory", lambda: 20_000)
    with pytest.raises(ConfigError) as caught:
        run()
    message, *advice = str(caught.value).splitlines()
    said = r"the grades of about 5\d\d samples need 0\.\d\d MiB more memory for their figures, and 0\.02 MiB are free"
    assert re.fullmatch(said, message)
    assert "metrics that look at items, reasons or metadata" in advice[0]
    assert "--set max_samples=N" in advice[1]
    assert [path.name for path in tmp_path.iterdir()] == ["runs.jsonl"]


def test_the_advice_helps(run, monkeypatch):
    """Another metric in its place, which looks at scores alone, takes less."""
    monkeypatch.setattr(recorder, "free_memory", lambda: 105_000)
    with pytest.raises(ConfigError):
        run()
    report = run(metrics={"toy_count": {"kind": "mean", "of": "q"}})
    assert report.aggregates["q"]["toy_count"]["mean"] == 1.0


@pytest.mark.parametrize(("files", "expected"), data(__file__, "memory.yaml")["free"])
def test_available_memory(tmp_path, monkeypatch, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(recorder, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(recorder, "_GROUPS", tmp_path / "group")
    assert recorder.free_memory() == expected


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only this library gives memory back when asked")
def test_memory_that_was_let_go_of_is_given_back():
    texts = [f"{number} {'x' * 3000}" for number in range(10_000)]
    kept = texts[::100]
    del texts
    before = _resident()
    recorder.give_back_memory()
    assert _resident() < before - 20_000_000
    assert len(kept) == 100


def test_pages_are_written_without_what_grading_has_let_go_of(run, monkeypatch):
    happened = []
    monkeypatch.setattr("gradestack.runner.give_back_memory", lambda: happened.append("given back"))
    monkeypatch.setattr("gradestack.runner.write_pages", lambda *_: happened.append("pages") or Pages())
    run()
    assert happened == ["given back", "pages"]


def _resident():
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
