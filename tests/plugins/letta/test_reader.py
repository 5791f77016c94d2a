"""Reader `letta`: layouts, result lines, runs and shards."""

from __future__ import annotations

import json

import pytest

from gradestack import BadRecord, DataError, Inputs, Sample, discover, testing
from gradestack.suites.inputs import name_inputs
from gradestack.suites.recognition import recognise
from gradestack_plugins import letta as family
from gradestack_plugins.letta.reader import Letta
from tests.core.outcomes import data

COMPONENTS = {f"{component.kind} {component.name}": component for component in family.gradestack_components()}
REGISTRY = discover(limit="")


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_are_sound(name):
    testing.check_component(COMPONENTS[name])


def test_components_are_complete():
    assert set(COMPONENTS) == {"reader letta", "reader letta_dataset", "grader recorded", "stack letta"}


@pytest.mark.parametrize("line", ["bare", "wrapped"])
def test_reader_keeps_the_contract(letta, tmp_path, line):
    records = [letta.result(n) for n in range(3)]
    file = letta.write(tmp_path / "results.jsonl", map(letta.wrapped, records) if line == "wrapped" else records)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    testing.check_reader(Letta(), file, scratch=scratch)


@pytest.mark.parametrize("form", ["documented", "program"])
@pytest.mark.parametrize("given", ["directory", "file"])
def test_both_layouts_are_recognised_and_read_alike(letta, tmp_path, form, given):
    """The document's bare lines and the program's wrapped ones, with or without header and summary, as dir or file."""
    records = [letta.result("a", "Oslo", model_name="m"), letta.failure(7)]
    out = tmp_path / "out"
    if form == "program":
        letta.write(out / "results.jsonl", map(letta.wrapped, records))
        (out / "header.json").write_text('{"type": "header", "suite": "s", "config": {}}', encoding="utf-8")
        (out / "summary.json").write_text('{"type": "summary", "metrics": {}}', encoding="utf-8")
    else:
        letta.write(out / "results.jsonl", records)
    path = out if given == "directory" else out / "results.jsonl"
    found = recognise([path], REGISTRY, None)
    assert (found.reader, found.paths) == ("letta", [path])
    first, second = letta.read(path)
    assert (first.id, first.model, first.run, first.input) == ("a", "m", 1, "Capital?")
    assert (first.status, first.agent_id, first.text) == ("ok", "agent-1", "Oslo")
    assert (first.expected.text, first.expected.label, first.expected.calls) == ("Oslo", "Oslo", None)
    assert (second.id, second.status) == ("7", "failed")
    shown = "out/results.jsonl" if given == "directory" else "results.jsonl"
    assert (first.source.file, first.source.line, second.source.ordinal) == (shown, 1, 1)


def test_lines_of_other_types_are_passed_over(letta, tmp_path):
    """A header or summary among the lines is no record and no error; a result that is none is a bad record."""
    lines = [{"type": "header", "suite": "s"}, letta.wrapped(letta.result(1)), {"type": "summary", "metrics": {}}]
    file = letta.write(tmp_path / "results.jsonl", [*lines, letta.wrapped(None)])
    assert Letta.sniff(file, file.read_bytes()) > 0.9
    sample, bad = letta.read(file)
    assert sample.id == "1"
    assert isinstance(bad, BadRecord)
    assert bad.source.line == 4


@pytest.mark.parametrize(("line", "reason"), data(__file__, "cases.yaml")["bad_lines"])
def test_bad_lines_are_bad_records(letta, tmp_path, line, reason):
    sample, bad = letta.read(letta.write(tmp_path / "results.jsonl", [letta.result(1), line]))
    assert sample.id == "1"
    assert isinstance(bad, BadRecord)
    assert (bad.source.line, reason in bad.reason) == (2, True)


@pytest.mark.parametrize(
    "content",
    [
        '{"id": "a", "expected": [], "predicted": []}\n',
        '{"uuid": "u", "run_labels": []}\n',
        '{"sample": {"messages": []}, "response": "x"}\n',
        '{"input": "x", "ground_truth": "y"}\n',
        '{"type": "header"}\n',
        "[]\n",
    ],
)
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


def test_an_empty_recording_is_recognised_by_its_header(letta, tmp_path):
    letta.write(tmp_path / "results.jsonl", [])
    assert Letta.sniff(tmp_path, b"") == 0.0
    (tmp_path / "header.json").write_text("{}", encoding="utf-8")
    assert Letta.sniff(tmp_path, b"") == 0.5
    assert letta.read(tmp_path) == []


@pytest.mark.parametrize(("far", "sure"), [(16 * 1024 * 1024, 0.95), (100_000, 0.7)])
def test_long_lines_are_recognised(letta, tmp_path, monkeypatch, far, sure):
    """A first line longer than the usual head is read whole; one longer than that is recognised by its keys."""
    monkeypatch.setattr("gradestack.jsonio.records._FAR", far)
    for record in (letta.result(1, "x" * 200_000), letta.wrapped(letta.result(1, sample={"input": "x" * 50_000}))):
        file = letta.write(tmp_path / "results.jsonl", [record | {"trajectory": [[letta.spoken("x" * 200_000)]]}])
        assert Letta.sniff(file, file.read_bytes()[: 64 * 1024]) == sure
    other = letta.write(tmp_path / "other.jsonl", [{"text": "x" * 200_000}])
    assert Letta.sniff(other, other.read_bytes()[: 64 * 1024]) == 0.0


def test_runs_come_from_folders_in_numeric_order(letta, tmp_path):
    for number in (10, 2, 1):
        letta.write(tmp_path / f"run_{number}" / "results.jsonl", [letta.result(0, str(number))])
    letta.write(tmp_path / "run_x" / "results.jsonl", [letta.result(0, "no")])
    letta.write(tmp_path / "results.jsonl", [letta.result(0, "no")])
    (tmp_path / "aggregate_stats.json").write_text("{}", encoding="utf-8")
    assert Letta.sniff(tmp_path, b"") > 0.9
    assert [(sample.run, sample.text) for sample in letta.read(tmp_path)] == [(1, "1"), (2, "2"), (10, "10")]


def test_runs_given_one_by_one(letta, tmp_path):
    for number in (1, 3):
        letta.write(tmp_path / f"run_{number}" / "results.jsonl", [letta.result(0)])
    assert [sample.run for sample in letta.read(tmp_path / "run_3", tmp_path / "run_1")] == [3, 1]
    assert letta.read(tmp_path / "run_3" / "results.jsonl")[0].run == 3


def test_several_recordings_of_the_same_run_are_told_apart(letta, tmp_path):
    """Inputs that repeat each other's results get the input's name as run; nothing is dropped as a duplicate."""
    for name in ("monday", "tuesday"):
        letta.write(tmp_path / name / "results.jsonl", [letta.result(0), "{", {"sample": {}}, letta.result(1)])
    found = [each for each in letta.read(tmp_path / "monday", tmp_path / "tuesday") if isinstance(each, Sample)]
    assert [sample.run for sample in found] == ["monday", "monday", "tuesday", "tuesday"]
    for name in ("a", "b"):
        letta.write(tmp_path / name / "run_2" / "results.jsonl", [letta.result(0)])
    assert [sample.run for sample in letta.read(tmp_path / "a", tmp_path / "b")] == ["a/2", "b/2"]


def test_recordings_of_different_models_share_their_run(letta, tmp_path):
    """Two inputs with different models (or samples) do not repeat each other and keep plain run numbers."""
    letta.write(tmp_path / "a" / "results.jsonl", [letta.result(0, model_name="a")])
    letta.write(tmp_path / "b" / "results.jsonl", [letta.result(0, model_name="b"), letta.result(1, model_name="a")])
    found = letta.read(tmp_path / "a", tmp_path / "b")
    assert [(sample.model, sample.run) for sample in found] == [("a", 1), ("b", 1), ("a", 1)]


def test_a_sample_without_an_id_of_its_own(letta, tmp_path):
    """`sample_id` beside a sample that has no id is its id; one that has an id keeps it."""
    bare, both = letta.result(0) | {"sample_id": 7}, letta.result(1) | {"sample_id": 8}
    del bare["sample"]["id"]
    file = letta.write(tmp_path / "results.jsonl", [bare, both])
    assert Letta.sniff(file, file.read_bytes()) > 0.9
    first, second = letta.read(file)
    assert (first.id, first.input, second.id) == ("7", "Capital?", "1")


def test_later_layout_single_run(letta, tmp_path):
    """suite.json and one file per model: samples are looked up by id, null fields may be absent."""
    samples = [{"id": 0, "input": "Capital?", "ground_truth": "Oslo"}, {"id": 1, "input": "Sum?"}]
    (tmp_path / "suite.json").write_text(json.dumps({"suite": "s", "samples": samples}), encoding="utf-8")
    lines = [
        {
            "sample_id": 0,
            "submissions": {"q": "Oslo"},
            "trajectory": [[letta.spoken("Oslo")]],
            "grades": {"q": letta.grade(1.0)},
            "reward": {"score": 0.75, "metadata": {}},
        },
        {"sample_id": 1, "error": {"category": "target", "exception_type": "E", "message": "no"}, "grades": {}},
    ]
    letta.write(tmp_path / "openai-mini.jsonl", lines)
    letta.write(tmp_path / "default.jsonl", lines[:1])
    (tmp_path / "summary.json").write_text("{}", encoding="utf-8")
    assert recognise([tmp_path], REGISTRY, None).reader == "letta"
    unnamed, first, second = letta.read(tmp_path)
    assert (unnamed.model, unnamed.run) == (None, 1)
    assert (first.model, first.input, first.expected.text, first.status) == ("openai-mini", "Capital?", "Oslo", "ok")
    assert (first.recorded["reward"], first.text) == (0.75, "Oslo")
    assert (second.id, second.input, second.status, second.error.message) == ("1", "Sum?", "failed", "no")
    assert letta.read(tmp_path / "openai-mini.jsonl")[0].model == "openai-mini"


def test_later_layout_several_runs(letta, tmp_path):
    (tmp_path / "suite.json").write_text('{"samples": {"0": {"input": "Capital?"}}}', encoding="utf-8")
    line = {"sample_id": 0, "trajectory": [[letta.spoken("Oslo")]], "grades": {}}
    for model, number in (("b", 10), ("b", 9), ("a", 1)):
        letta.write(tmp_path / model / f"run_{number}.jsonl", [line])
    (tmp_path / "a" / "summary.json").write_text("{}", encoding="utf-8")
    found = [(sample.model, sample.run, sample.input) for sample in letta.read(tmp_path)]
    assert found == [("a", 1, "Capital?"), ("b", 9, "Capital?"), ("b", 10, "Capital?")]
    (alone,) = letta.read(tmp_path / "b" / "run_9.jsonl")
    assert (alone.model, alone.run, alone.input) == ("b", 9, "Capital?")


def test_a_broken_suite_json_ends_the_run(letta, tmp_path):
    """Without the samples the lines point at, a directory of the later layout cannot be read."""
    (tmp_path / "suite.json").write_text("{", encoding="utf-8")
    letta.write(tmp_path / "m.jsonl", [{"sample_id": 0, "trajectory": [], "grades": {}}])
    with pytest.raises(DataError, match=r"suite\.json: cannot be read"):
        letta.read(tmp_path)
    assert len(letta.read(tmp_path / "m.jsonl")) == 1


def test_a_file_that_goes_away_is_told(letta, tmp_path):
    file = letta.write(tmp_path / "results.jsonl", [letta.result(0)])
    (shard,) = recognise_and_plan(file)
    reader = Letta()
    index = reader.index(Inputs(data=(shard.input,)))
    file.unlink()
    with pytest.raises(DataError, match=r"results\.jsonl: cannot be read"):
        list(reader.read(shard, index))
    with pytest.raises(DataError, match=r"results\.jsonl: cannot be read"):
        list(reader.plan(Inputs(data=(shard.input,)), index))


def test_duplicates_keep_the_last():
    """A second run appended to the same file overwrites the first by default."""
    assert Letta.duplicates == "last"
    assert Letta.stack == "letta"


def test_shards_do_not_change_what_is_read(letta, tmp_path, monkeypatch):
    file = letta.write(tmp_path / "results.jsonl", [letta.result(n) for n in range(40)])
    whole = letta.read(file)
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 1500)
    assert len(recognise_and_plan(file)) > 5
    assert letta.read(file) == whole
