"""Reader `letta`: files and directories are known as results although some of their lines are not."""

from __future__ import annotations

import json

import pytest

from gradestack import BadRecord, Sample, discover
from gradestack.suites.recognition import recognise
from gradestack_plugins.letta.reader import Letta

REGISTRY = discover(limit="")
ERROR = {"category": "target", "exception_type": "TimeoutError", "message": "boom"}
SUITE = {"suite": "s", "config": {}, "samples": [{"id": 0, "input": "q0"}, {"id": 1, "input": "q1"}]}
GIVEN = pytest.mark.parametrize("given", [None, "letta"])


def later(letta, identifier, **fields):
    said = {"trajectory": [[letta.spoken("a")]], "grades": {"e": {"score": 1.0}}}
    return {"sample_id": identifier, "agent_id": "x"} | said | fields


def taken_whole(path, given=None):
    found = recognise([path], REGISTRY, given)
    return (found.reader, found.paths, found.ignored) == ("letta", [path], [])


@GIVEN
@pytest.mark.parametrize(
    "first",
    [
        {"sample_id": 0, "trajectory": [], "error": ERROR},
        {"sample_id": 0, "error": ERROR},
        {"sample_id": 0, "agent_id": "x"},
        "{",
    ],
)
def test_a_first_sample_that_failed(letta, tmp_path, given, first):
    (tmp_path / "suite.json").write_text(json.dumps(SUITE), encoding="utf-8")
    letta.write(tmp_path / "a.jsonl", [first, later(letta, 1)])
    letta.write(tmp_path / "b.jsonl", [later(letta, 0)])
    letta.write(tmp_path / "c" / "run_10.jsonl", [first, later(letta, 1)])
    letta.write(tmp_path / "c" / "run_2.jsonl", [first, later(letta, 1)])
    assert taken_whole(tmp_path, given)
    found = [(each.model, each.run, each.id) for each in letta.read(tmp_path) if isinstance(each, Sample)]
    whole = [("a", 1, "0"), ("a", 1, "1"), ("b", 1, "0"), ("c", 2, "0"), ("c", 2, "1"), ("c", 10, "0"), ("c", 10, "1")]
    damaged = [] if isinstance(first, dict) else [("a", 1, "0"), ("c", 2, "0"), ("c", 10, "0")]
    assert found == [each for each in whole if each not in damaged]
    assert taken_whole(tmp_path / "a.jsonl", given)


@GIVEN
def test_nothing_but_failures(letta, tmp_path, given):
    """suite.json with its samples is enough to know a directory whose lines say little."""
    (tmp_path / "suite.json").write_text(json.dumps(SUITE), encoding="utf-8")
    letta.write(tmp_path / "default.jsonl", [{"sample_id": 0}])
    assert taken_whole(tmp_path, given)
    (tmp_path / "suite.json").write_text('{"graders": {}}', encoding="utf-8")
    assert Letta.sniff(tmp_path, b"") == 0.0


@GIVEN
@pytest.mark.parametrize(
    "line", ['{"sample": {"id":', "", "null", '{"sample": {"input": "x"}, "trajectory": []}', "{}"]
)
@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_damaged_first_line(letta, tmp_path, given, line, kind):
    file = letta.write(tmp_path / "out" / "results.jsonl", [line, letta.result(1)])
    path = file if kind == "file" else file.parent
    assert taken_whole(path, given)
    *bad, sample = letta.read(path)
    assert sample.id == "1"
    assert [each.source.line for each in bad if isinstance(each, BadRecord)] == ([1] if line else [])


@GIVEN
def test_a_long_first_line(letta, tmp_path, given):
    long = letta.result(0, sample={"input": "q" * 70_000})
    file = letta.write(tmp_path / "out" / "results.jsonl", [long, letta.result(1)])
    assert taken_whole(file.parent, given)
    assert taken_whole(file)
    wrapped = [{"type": "header", "config": "q" * 70_000}, letta.wrapped(long)]
    assert taken_whole(letta.write(tmp_path / "two" / "results.jsonl", wrapped).parent, given)


def test_a_long_last_line_without_an_end(letta, tmp_path):
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps(letta.result(0, sample={"input": "q" * 70_000})), encoding="utf-8")
    assert Letta.sniff(file, file.read_bytes()[: 64 * 1024]) == 0.95


@GIVEN
@pytest.mark.parametrize("first", [[], ["{"], [{"type": "header"}]])
def test_a_first_run_without_a_sound_line(letta, tmp_path, given, first):
    letta.write(tmp_path / "run_1" / "results.jsonl", first)
    for number in (10, 2):
        letta.write(tmp_path / f"run_{number}" / "results.jsonl", [letta.result(0)])
    assert taken_whole(tmp_path, given)
    assert [each.run for each in letta.read(tmp_path) if isinstance(each, Sample)] == [2, 10]


@GIVEN
def test_nothing_but_damage(letta, tmp_path, given):
    """Result lines of which none is whole are known by the name of their samples, so that they are reported."""
    letta.write(tmp_path / "results.jsonl", ['{"sample": {"id":'])
    assert taken_whole(tmp_path, given)
    (bad,) = letta.read(tmp_path)
    assert isinstance(bad, BadRecord)
    letta.write(tmp_path / "results.jsonl", ['{"uuid": "'])
    assert Letta.sniff(tmp_path, b"") == 0.0


def test_results_among_other_objects(letta, tmp_path):
    """A result behind objects of another form is little more than a guess; none is none."""
    others = [{"id": "a", "expected": []}, {"x": {"sample": 1}}, {"sample_id": 1, "error": "no"}]
    file = letta.write(tmp_path / "data.jsonl", [*others, letta.result(0)])
    assert Letta.sniff(file, file.read_bytes()) == 0.3
    file = letta.write(tmp_path / "data.jsonl", [others[0], letta.result(0)])
    assert Letta.sniff(file, file.read_bytes()) == 0.3
