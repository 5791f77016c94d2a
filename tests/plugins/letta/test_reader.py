"""Readers of Letta: results, messages, recognition."""

import json

import pytest

from gradestack import BadRecord, DataError, Inputs, Sample, discover, testing
from gradestack.suites.recognition import name_inputs, recognise
from gradestack_plugins.letta.reader import Letta
from tests.core.outcomes import at, data

DATA = data(__file__, "reader.yaml")
REGISTRY = discover(limit="")


@pytest.mark.parametrize("line", ["bare", "wrapped"])
def test_reader_keeps_the_contract(letta, tmp_path, line):
    records = [letta.result(n) for n in range(3)]
    file = letta.write(
        tmp_path / "results.jsonl", map(letta.wrapped, records) if line == "wrapped" else records
    )
    testing.check_reader(Letta(), file, scratch=tmp_path)


@pytest.mark.parametrize("form", ["documented", "program"])
@pytest.mark.parametrize("layout", ["directory", "file"])
def test_both_layouts_are_recognised_and_read_alike(letta, tmp_path, form, layout):
    """The document's bare lines and the program's wrapped ones, with or without header and summary,
    as dir or file.
    """
    records = [letta.result("a", "Oslo", model_name="m"), letta.failure(7)]
    out = tmp_path / "out"
    if form == "program":
        letta.write(out / "results.jsonl", map(letta.wrapped, records))
        (out / "header.json").write_text(
            '{"type": "header", "suite": "s", "config": {}}', encoding="utf-8"
        )
        (out / "summary.json").write_text('{"type": "summary", "metrics": {}}', encoding="utf-8")
    else:
        letta.write(out / "results.jsonl", records)
    path = out if layout == "directory" else out / "results.jsonl"
    recognised = recognise([path], REGISTRY, None)
    assert (recognised.reader, recognised.paths) == ("letta", [path])
    first, second = letta.read(path)
    known = [
        (sample.id, sample.model, sample.run, sample.text, sample.status)
        for sample in (first, second)
    ]
    assert known == [("a", "m", 1, "Oslo", "ok"), ("7", None, 1, None, "failed")]
    shown = "out/results.jsonl" if layout == "directory" else "results.jsonl"
    assert (first.source.file, first.source.line, second.source.ordinal) == (shown, 1, 1)


@pytest.mark.parametrize("content", DATA["other_formats_are_left_alone"])
def test_other_formats_are_left_alone(tmp_path, content):
    file = tmp_path / "results.jsonl"
    file.write_text(content, encoding="utf-8")
    assert Letta.sniff(file, file.read_bytes()) == 0.0
    assert Letta.sniff(tmp_path, b"") == 0.0


def test_directories_without_results_are_not_recognised(tmp_path):
    assert Letta.sniff(tmp_path, b"") == 0.0
    with pytest.raises(DataError, match=r"neither results\.jsonl nor run_N"):
        recognise_and_plan(tmp_path)


def recognise_and_plan(path):
    inputs = Inputs(data=name_inputs([path]))
    reader = Letta()
    return list(reader.plan(inputs, reader.index(inputs)))


def test_a_broken_suite_json_ends_the_run(letta, tmp_path):
    """Without the samples the lines point at, a directory of the later layout cannot be read."""
    (tmp_path / "suite.json").write_text("{", encoding="utf-8")
    letta.write(tmp_path / "m.jsonl", [{"sample_id": 0, "trajectory": [], "grades": {}}])
    with pytest.raises(DataError, match=r"suite\.json: cannot be read"):
        letta.read(tmp_path)


@pytest.mark.parametrize("case", data(__file__, "results.yaml"))
def test_a_result(letta, tmp_path, case):
    if "failure" in case:
        record = letta.failure(0) | case["failure"]
    else:
        record = letta.result(0, **case["result"])
    (sample,) = letta.read(letta.write(tmp_path / "results.jsonl", [record]))
    assert {path: at(sample, path) for path in case["sample"]} == case["sample"]


SUITE = {
    "suite": "s",
    "config": {},
    "samples": [{"id": 0, "input": "q0"}, {"id": 1, "input": "q1"}],
}
GIVEN = pytest.mark.parametrize("reader", [None, "letta"])


def later(letta, identifier, **fields):
    record = {"trajectory": [[letta.spoken("a")]], "grades": {"e": {"score": 1.0}}}
    return {"sample_id": identifier, "agent_id": "x"} | record | fields


def taken_whole(path, reader=None):
    recognised = recognise([path], REGISTRY, reader)
    return (recognised.reader, recognised.paths, recognised.ignored) == ("letta", [path], [])


@GIVEN
@pytest.mark.parametrize(
    "first",
    DATA["a_first_sample_that_failed"],
)
def test_a_first_sample_that_failed(letta, tmp_path, reader, first):
    (tmp_path / "suite.json").write_text(json.dumps(SUITE), encoding="utf-8")
    letta.write(tmp_path / "a.jsonl", [first, later(letta, 1)])
    letta.write(tmp_path / "b.jsonl", [later(letta, 0)])
    letta.write(tmp_path / "c" / "run_10.jsonl", [first, later(letta, 1)])
    letta.write(tmp_path / "c" / "run_2.jsonl", [first, later(letta, 1)])
    assert taken_whole(tmp_path, reader)
    identities = [
        (record.model, record.run, record.id)
        for record in letta.read(tmp_path)
        if isinstance(record, Sample)
    ]
    expected = [
        ("a", 1, "0"),
        ("a", 1, "1"),
        ("b", 1, "0"),
        ("c", 2, "0"),
        ("c", 2, "1"),
        ("c", 10, "0"),
        ("c", 10, "1"),
    ]
    damaged = [] if isinstance(first, dict) else [("a", 1, "0"), ("c", 2, "0"), ("c", 10, "0")]
    assert identities == [identity for identity in expected if identity not in damaged]
    assert taken_whole(tmp_path / "a.jsonl", reader)


@GIVEN
def test_nothing_but_failures(letta, tmp_path, reader):
    """suite.json with its samples is enough to know a directory whose lines say little."""
    (tmp_path / "suite.json").write_text(json.dumps(SUITE), encoding="utf-8")
    letta.write(tmp_path / "default.jsonl", [{"sample_id": 0}])
    assert taken_whole(tmp_path, reader)


@GIVEN
@pytest.mark.parametrize(
    "line", ['{"sample": {"id":', "", "null", '{"sample": {"input": "x"}, "trajectory": []}', "{}"]
)
@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_damaged_first_line(letta, tmp_path, reader, line, kind):
    file = letta.write(tmp_path / "out" / "results.jsonl", [line, letta.result(1)])
    path = file if kind == "file" else file.parent
    assert taken_whole(path, reader)
    *bad, sample = letta.read(path)
    assert sample.id == "1"
    assert [record.source.line for record in bad if isinstance(record, BadRecord)] == (
        [1] if line else []
    )


@GIVEN
@pytest.mark.parametrize("first", [[], ["{"], [{"type": "header"}]])
def test_a_first_run_without_a_sound_line(letta, tmp_path, reader, first):
    letta.write(tmp_path / "run_1" / "results.jsonl", first)
    for number in (10, 2):
        letta.write(tmp_path / f"run_{number}" / "results.jsonl", [letta.result(0)])
    assert taken_whole(tmp_path, reader)
    assert [record.run for record in letta.read(tmp_path) if isinstance(record, Sample)] == [2, 10]


@GIVEN
def test_nothing_but_damage(letta, tmp_path, reader):
    """Result lines of which none is whole are known by the name of their samples, so that they are
    reported.
    """
    letta.write(tmp_path / "results.jsonl", ['{"sample": {"id":'])
    assert taken_whole(tmp_path, reader)
    (bad,) = letta.read(tmp_path)
    assert isinstance(bad, BadRecord)
    letta.write(tmp_path / "results.jsonl", ['{"uuid": "'])
    assert Letta.sniff(tmp_path, b"") == 0.0


@pytest.mark.parametrize("case", data(__file__, "messages.yaml"))
def test_a_trajectory(letta, tmp_path, case):
    record = letta.result(0, trajectory=case["trajectory"])
    (sample,) = letta.read(letta.write(tmp_path / "results.jsonl", [record]))
    if "messages" in case:
        assert [
            [message.role, message.content] for turn in sample.turns for message in turn
        ] == case["messages"]
    if "calls" in case:
        for call, wanted in zip(sample.calls or (), case["calls"], strict=True):
            assert {name: getattr(call, name) for name in wanted} == wanted
    assert [len(turn) for turn in sample.turns] == case.get(
        "turns", [len(turn) for turn in sample.turns]
    )
