"""Folders of many small files: what is worked on together does not tell in the results."""

import json

import pytest

import gradestack
from gradestack import DataError
from gradestack.api import Input, Shard
from gradestack.grading import reading
from gradestack.rundir import journal, recorder
from tests.core.outcomes import files_but_headers as files_of

FILES = 200


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Files of a record each: every seventh is broken, every eleventh repeats another."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs"
    folder.mkdir()
    for number in range(FILES):
        if number % 11 == 0:
            task = number // 2
        else:
            task = number
        expected = "x" if number % 3 else "y"
        record = {"id": f"t{task}", "input": f"{task}?", "predicted": "x", "expected": expected}
        text = json.dumps(record)
        broken = number and number % 7 == 0
        (folder / f"{number:03}.jsonl").write_text(f"{text}\n" + '{"id": broken\n' * bool(broken))
    return folder


@pytest.fixture
def run():
    """Return a function that runs a suite over the folder of runs."""

    def call(output, **more):
        engine = more.pop("engine", "serial")
        suite = {
            "name": "x",
            "target": {"paths": ["runs"]},
            "reader": "jsonl",
            "graders": {"text": "exact_match"},
            "reports": ["markdown"],
            "engine": engine,
        }
        return gradestack.run(suite, output=output, **more)

    return call


def test_bundles_leave_every_byte_as_it_is(run, tmp_path, monkeypatch):
    run("together")
    run("by processes", engine={"kind": "processes", "workers": 2})
    monkeypatch.setattr(reading, "_MOST_SHARDS", 1)
    run("alone")
    together_folder = tmp_path / "together"
    files = files_of(together_folder)
    alone_folder = tmp_path / "alone"
    assert files == files_of(alone_folder)
    by_processes_folder = tmp_path / "by processes"
    assert files_of(by_processes_folder) == files_of(tmp_path / "alone")


def test_a_run_is_continued_behind_a_bundle(run, tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr(journal, "SECONDS_BETWEEN_WRITES", -1.0)
    run("whole")
    full_disk(5, lambda: run("out"))
    resumed = run("out", resume=True).header["resumed"]
    assert resumed == 5
    out_folder = tmp_path / "out"
    files = files_of(out_folder)
    expected = files_of(tmp_path / "whole")
    assert files == expected


def test_a_file_of_a_bundle_that_was_edited_is_named(run, folder, monkeypatch):
    grade = recorder.RowFile.save_rows

    def edit(self, *arguments):
        (folder / "150.jsonl").write_text('{"id": "other"}\n')
        return grade(self, *arguments)

    monkeypatch.setattr(recorder.RowFile, "save_rows", edit)
    with pytest.raises(DataError, match=r"runs/150\.jsonl|^150\.jsonl"):
        run("out")


@pytest.mark.parametrize("number", [0, 1, 127, 128, 129, 5000])
def test_bundles_hold_each_shard_once_in_order(tmp_path, number):
    inputs = []
    for at in range(number):
        path = tmp_path / f"{at}"
        shown = f"{at}"
        inputs.append(Input(path=path, name=f"{at}", shown=shown))
    shards = [Shard(ordinal=at, input=input_file, end=10) for at, input_file in enumerate(inputs)]
    bundles = reading.bundle_shards(shards)
    assert [shard for bundle in bundles for shard in reading.shards_in(bundle)] == shards
    expected = list(range(len(bundles)))
    ordinals = [bundle.ordinal for bundle in bundles]
    assert ordinals == expected
    assert len(bundles) >= min(number, 64)
    assert len(bundles) <= max(128, number / 50)


def test_large_shards_are_not_bundled(tmp_path):
    large = reading._MOST_BYTES // 2 + 1
    large_input = Input(path=tmp_path, name="x", shown="x")
    shards = []
    for at in range(500):
        shard = Shard(ordinal=at, input=large_input, end=large)
        shards.append(shard)
    bundle_shards = reading.bundle_shards(shards)
    assert len(bundle_shards) == 500
