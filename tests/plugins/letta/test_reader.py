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
    results_path = tmp_path / "results.jsonl"
    file = letta.write(results_path, map(letta.wrapped, records) if line == "wrapped" else records)
    testing.check_reader(Letta(), file, scratch=tmp_path)


@pytest.mark.parametrize("form", ["documented", "program"])
@pytest.mark.parametrize("layout", ["directory", "file"])
def test_both_layouts_are_recognised_and_read_alike(letta, tmp_path, form, layout):
    """The document's bare lines and the program's wrapped ones, with or without header and summary,
    as dir or file.
    """
    result = letta.result("a", "Oslo", model_name="m")
    failure = letta.failure(7)
    records = [result, failure]
    out = tmp_path / "out"
    if form == "program":
        results_path = out / "results.jsonl"
        letta.write(results_path, map(letta.wrapped, records))
        header_path = out / "header.json"
        header_path.write_text('{"type": "header", "suite": "s", "config": {}}', encoding="utf-8")
        summary_path = out / "summary.json"
        summary_path.write_text('{"type": "summary", "metrics": {}}', encoding="utf-8")
    else:
        letta.write(out / "results.jsonl", records)
    if layout == "directory":
        path = out
    else:
        path = out / "results.jsonl"
    recognised = recognise([path], REGISTRY, None)
    assert recognised.reader == "letta"
    assert recognised.paths == [path]
    first, second = letta.read(path)
    known = []
    for sample in (first, second):
        known.append((sample.id, sample.model, sample.run, sample.text, sample.status))
    assert known == [("a", "m", 1, "Oslo", "ok"), ("7", None, 1, None, "failed")]
    shown = "out/results.jsonl" if layout == "directory" else "results.jsonl"
    assert first.source.file == shown
    assert first.source.line == 1
    assert second.source.ordinal == 1


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
    index = reader.index(inputs)
    return list(reader.plan(inputs, index))


def test_a_broken_suite_json_ends_the_run(letta, tmp_path):
    """Without the samples the lines point at, a directory of the later layout cannot be read."""
    suite_path = tmp_path / "suite.json"
    suite_path.write_text("{", encoding="utf-8")
    m_path = tmp_path / "m.jsonl"
    letta.write(m_path, [{"sample_id": 0, "trajectory": [], "grades": {}}])
    with pytest.raises(DataError, match=r"suite\.json: cannot be read"):
        letta.read(tmp_path)


@pytest.mark.parametrize("case", data(__file__, "results.yaml"))
def test_a_result(letta, tmp_path, case):
    if "failure" in case:
        failure = letta.failure(0)
        record = failure | case["failure"]
    else:
        record = letta.result(0, **case["result"])
    results_path = tmp_path / "results.jsonl"
    (sample,) = letta.read(letta.write(results_path, [record]))
    paths = case["sample"]
    assert {path: at(sample, path) for path in paths} == case["sample"]


SUITE = {
    "suite": "s",
    "config": {},
    "samples": [{"id": 0, "input": "q0"}, {"id": 1, "input": "q1"}],
}
GIVEN = pytest.mark.parametrize("reader", [None, "letta"])


def later(letta, identifier, **fields):
    trajectory = [[letta.spoken("a")]]
    record = {"trajectory": trajectory, "grades": {"e": {"score": 1.0}}}
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
    suite_path = tmp_path / "suite.json"
    text = json.dumps(SUITE)
    suite_path.write_text(text, encoding="utf-8")
    a_path = tmp_path / "a.jsonl"
    letta.write(a_path, [first, later(letta, 1)])
    b_path = tmp_path / "b.jsonl"
    letta.write(b_path, [later(letta, 0)])
    c_folder = tmp_path / "c"
    run_10_path = c_folder / "run_10.jsonl"
    letta.write(run_10_path, [first, later(letta, 1)])
    run_2_path = tmp_path / "c" / "run_2.jsonl"
    letta.write(run_2_path, [first, later(letta, 1)])
    assert taken_whole(tmp_path, reader)
    identities = []
    for record in letta.read(tmp_path):
        if isinstance(record, Sample):
            identities.append((record.model, record.run, record.id))
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
    path = tmp_path / "a.jsonl"
    assert taken_whole(path, reader)


@GIVEN
def test_nothing_but_failures(letta, tmp_path, reader):
    """suite.json with its samples is enough to know a directory whose lines say little."""
    suite_path = tmp_path / "suite.json"
    text = json.dumps(SUITE)
    suite_path.write_text(text, encoding="utf-8")
    default_path = tmp_path / "default.jsonl"
    letta.write(default_path, [{"sample_id": 0}])
    assert taken_whole(tmp_path, reader)


@GIVEN
@pytest.mark.parametrize(
    "line", ['{"sample": {"id":', "", "null", '{"sample": {"input": "x"}, "trajectory": []}', "{}"]
)
@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_damaged_first_line(letta, tmp_path, reader, line, kind):
    out_folder = tmp_path / "out"
    results_path = out_folder / "results.jsonl"
    result = letta.result(1)
    file = letta.write(results_path, [line, result])
    if kind == "file":
        path = file
    else:
        path = file.parent
    assert taken_whole(path, reader)
    *bad, sample = letta.read(path)
    assert sample.id == "1"
    lines = [record.source.line for record in bad if isinstance(record, BadRecord)]
    assert lines == ([1] if line else [])


@GIVEN
@pytest.mark.parametrize("first", [[], ["{"], [{"type": "header"}]])
def test_a_first_run_without_a_sound_line(letta, tmp_path, reader, first):
    run_1_folder = tmp_path / "run_1"
    letta.write(run_1_folder / "results.jsonl", first)
    for number in (10, 2):
        results_path = tmp_path / f"run_{number}" / "results.jsonl"
        result = letta.result(0)
        letta.write(results_path, [result])
    assert taken_whole(tmp_path, reader)
    records = letta.read(tmp_path)
    runs = [record.run for record in records if isinstance(record, Sample)]
    assert runs == [2, 10]


@GIVEN
def test_nothing_but_damage(letta, tmp_path, reader):
    """Result lines of which none is whole are known by the name of their samples, so that they are
    reported.
    """
    results_path = tmp_path / "results.jsonl"
    letta.write(results_path, ['{"sample": {"id":'])
    assert taken_whole(tmp_path, reader)
    (bad,) = letta.read(tmp_path)
    assert isinstance(bad, BadRecord)
    letta.write(tmp_path / "results.jsonl", ['{"uuid": "'])
    assert Letta.sniff(tmp_path, b"") == 0.0


@pytest.mark.parametrize("case", data(__file__, "messages.yaml"))
def test_a_trajectory(letta, tmp_path, case):
    record = letta.result(0, trajectory=case["trajectory"])
    results_path = tmp_path / "results.jsonl"
    (sample,) = letta.read(letta.write(results_path, [record]))
    if "messages" in case:
        messages = case["messages"]
        assert [
            [message.role, message.content] for turn in sample.turns for message in turn
        ] == messages
    if "calls" in case:
        calls = case["calls"]
        for call, wanted in zip(sample.calls or (), calls, strict=True):
            assert {name: getattr(call, name) for name in wanted} == wanted
    turn_counts = [len(turn) for turn in sample.turns]
    turns = case.get("turns", turn_counts)
    assert [len(turn) for turn in sample.turns] == turns
