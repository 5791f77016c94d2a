"""The reader of scenario outputs: files, trials, and what other families see of them."""

import json

import pytest

import gradestack
from gradestack import ConfigError, DataError, testing
from gradestack_plugins.orchestrationbench.graphs import Weights
from gradestack_plugins.orchestrationbench.reader import (
    OrchestrationBenchReader,
    read_cards,
    read_config,
)
from tests.core.outcomes import data

DATA = data(__file__, "reader.yaml")


@pytest.fixture
def content(scenario, turns):
    label = turns.label(
        _2={"role": "user", "content": "please"},
        _3={"role": "assistant", "content": "workflow_1: {}"},
        _4=[turns.call("f", {"a": 1}), turns.call("g", {})],
        _5="AWAITING_USER_INPUT: phone",
        _6={"role": "user", "content": "555"},
        _7="TOOL_CONSTRAINT_VIOLATION",
    )
    main = [turns.plan(3, '{"workflow_1": {}}')]
    sub = [
        turns.answer("4", [turns.call("f", {"a": 2})]),
        turns.answer("5", [], "wait AWAITING_USER_INPUT"),
    ]
    return scenario(label, main, sub)


def test_a_reader_that_was_named_searches_directories_itself(bench, content, tmp_path):
    """By its own pattern, which recognising a directory does not know.

    And so no other file of it is read.
    """
    for name in ("1", "deep/2"):
        bench.write(name, content).rename(bench.directory / f"{name}.json")
    other_path = bench.directory / "other.txt"
    other_path.write_text("no scenario", encoding="utf-8")
    directory = str(bench.directory)
    target = {"paths": [directory]}
    suite = {
        "name": "s",
        "target": target,
        "reader": {"kind": "orchestrationbench", "pattern": "[0-9].json"},
        "reports": [],
    }
    output = tmp_path / "run"
    report = gradestack.run(suite, output=output)
    rows = report.rows()
    files = {row["facets"]["file"] for row in rows}
    assert files == {"out/1.json", "out/deep/2.json"}
    native_folder = report.path / "native"
    paths = native_folder.iterdir()
    names = [path.name for path in paths]
    assert names == ["orchestrationbench.json"]
    with pytest.raises(DataError, match=r"no file named \*_out\.json in this directory or below"):
        gradestack.grade_files(
            [bench.directory], output=tmp_path / "two", reader="orchestrationbench"
        )


def test_a_directory_of_many_folders_is_recognised(tmp_path):
    """Folders count when they are looked into: one per scenario may be thousands."""
    for number in range(5_100):
        (tmp_path / f"{number:04}").mkdir()
    assert not OrchestrationBenchReader.sniff(tmp_path, b"")
    x_out_path = tmp_path / "0007/x_out.json"
    x_out_path.write_text("{}", encoding="utf-8")
    assert OrchestrationBenchReader.sniff(tmp_path, b"") > 0.5


def test_files_are_found_below_and_sorted(bench, content):
    """The pattern is looked for at any depth, hidden places aside, and files come
    sorted by path.
    """
    for name in ("b/2", "a", "b/10", ".hidden/x"):
        bench.write(name, content)
    notes_path = bench.directory / "notes.json"
    notes_path.write_text("{}", encoding="utf-8")
    samples = bench.read()
    files = [sample.facets["file"] for sample in samples]
    assert files == DATA["files_are_found_below_and_sorted"]
    assert len(bench.read(pattern="*.json")) == 4
    with pytest.raises(DataError, match=r"out: no file named x\.json"):
        bench.read(pattern="x.json")


def test_one_file_may_be_given(bench, content):
    """A single file is read by its own name."""
    path = bench.write("one", content)
    (sample,) = bench.read(path)
    assert sample.facets == {"file": "out", "trial": "run #1"}


def test_cards_are_flattened_to_tools(tmp_path):
    """Tools of all cards by file name, a later equal name winning."""
    for name, tools in {
        "a": [{"name": "f", "parameters": {}}, {"name": "g"}],
        "b": [{"name": "f", "description": "2"}],
    }.items():
        text = json.dumps({"tools": [*tools, {"no": "name"}, 3]})
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    cards = read_cards(tmp_path)
    assert [(tool.name, tool.description, tool.parameters) for tool in cards] == [
        ("f", "2", None),
        ("g", "", None),
    ]
    path = tmp_path / "a.json"
    names = [tool.name for tool in read_cards(path)]
    assert names == ["f", "g"]


def test_unusable_cards_are_refused(tmp_path):
    """A card that cannot be used is named, and so is an empty directory."""
    with pytest.raises(DataError, match=r"no \*\.json"):
        read_cards(tmp_path)
    a_path = tmp_path / "a.json"
    a_path.write_text('{"tools": []}', encoding="utf-8")
    for text in ("{", '{"tools": {}}'):
        b_path = tmp_path / "b.json"
        b_path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"agent card .*b\.json"):
            read_cards(tmp_path)


@pytest.mark.parametrize(("text", "agent", "status", "section"), DATA["config"])
def test_config(tmp_path, text, agent, status, section):
    """Weights and the presence of the judge section are read; the rest is not needed."""
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    setting = read_config(path)
    weights = Weights(agent, status)
    assert setting.weights == weights
    assert setting.judge_section == section


@pytest.mark.parametrize(
    "text",
    [
        "evaluation_params: {agent_change_weight: 3}",
        "a: [",
        "evaluation_params: {status_change_weight: true}",
        "- 1",
    ],
)
def test_unusable_config(tmp_path, text):
    """A config that is no YAML, or whose weights are no numbers from 0 to 2, is refused."""
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"evaluation config .*c\.yaml"):
        read_config(path)
    with pytest.raises(ConfigError):
        read_config(tmp_path / "absent.yaml")


@pytest.mark.parametrize("content", DATA["unusable_verdicts"])
def test_unusable_verdicts(bench, tmp_path, content, scenario):
    """A verdict file of another form is refused, with the place."""
    bench.write("one", scenario())
    path = tmp_path / "v.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"verdicts .*v\.json"):
        bench.read(verdicts=path)


def test_verdicts_are_found_by_relative_path_or_file_name(bench, tmp_path, scenario):
    """The path relative to the input comes first, the bare name second."""
    for name in ("a/x", "b/x"):
        bench.write(name, scenario())
    one, two = ({"run #1": {"4": {"k": {"tp_count": number}}}} for number in (1, 2))
    path = tmp_path / "v.json"
    text = json.dumps({"a/x_out.json": one, "x_out.json": two})
    path.write_text(text, encoding="utf-8")
    tps = []
    for sample in bench.read(verdicts=path):
        tps.append(sample.native.verdicts["4"]["k"].tp)
    assert tps == [1, 2]
    samples = bench.read()
    assert all(sample.native.verdicts is None for sample in samples)


@pytest.mark.parametrize("pattern", ["", "a/b", "a\\b"])
def test_a_pattern_is_a_file_name(pattern):
    """Directories are searched anyway, so a pattern with one is refused."""
    with pytest.raises(ValueError, match="pattern"):
        OrchestrationBenchReader(pattern=pattern)


def test_sniffing(bench, content, tmp_path):
    """Scenario outputs and directories of them are recognised, other JSON is not."""
    path = bench.write("deep/one", content)
    head = path.read_bytes()[:65536]
    assert OrchestrationBenchReader.sniff(path, head) > 0.9
    assert OrchestrationBenchReader.sniff(path.with_name("x.json"), head) > 0.5
    assert OrchestrationBenchReader.sniff(path, b'{"history": []}') == 0.0
    assert OrchestrationBenchReader.sniff(bench.directory, b"") > 0.5
    (tmp_path / "empty").mkdir()
    empty_folder = tmp_path / "empty"
    assert OrchestrationBenchReader.sniff(empty_folder, b"") == 0.0


def test_the_reader_keeps_the_contract(bench, content, tmp_path):
    path = bench.write("two", content)
    testing.check_reader(OrchestrationBenchReader(), path, scratch=tmp_path)
