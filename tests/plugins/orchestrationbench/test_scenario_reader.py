"""Scenario YAML as a dataset of gold calls and plans."""

import msgspec
import pytest
import yaml

from gradestack import BadRecord, DataError, Input, Inputs, testing
from gradestack_plugins.orchestrationbench.reader import ScenarioReader, ScenarioStep, label_of
from gradestack_plugins.orchestrationbench.records import Turn
from tests.core.outcomes import data

STEPS = data(__file__, "scenario_steps.yaml")


def steps():
    return [
        {
            "workflow_id": flow,
            "step_id": number,
            "agent": agent,
            "agent_type": kind,
            "data": {"content": content},
        }
        for flow, number, agent, kind, content in STEPS
    ]


@pytest.fixture
def directory(tmp_path):
    """A directory of two scenarios and one file that is none."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("10", "9"):
        text = yaml.safe_dump({"metadata": {}, "steps": steps()}, sort_keys=False)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / "bad.yaml").write_text("steps: [{step_id: 1}]", encoding="utf-8")
    return folder


def read(path, **options):
    reader = ScenarioReader(**options)
    inputs = Inputs(data=(Input(path=path, name="data", shown="data"),))
    return [sample for shard in reader.plan(inputs, None) for sample in reader.read(shard, None)]


def test_label_of_scenario_steps():
    """System, user, plan, main and sub-agent turns become label entries, calls get their own."""
    label = label_of(msgspec.convert(steps(), list[ScenarioStep]))
    assert label["1"] == Turn(role="system", content="Today is Monday")
    assert label["2"].role == "user"
    assert label["3"].agent_id is msgspec.UNSET
    assert label["4"].agent_id == "ferry_agent"
    assert label["4-1"].tool_calls[0]["function"] == {
        "name": "find",
        "arguments": '{"from": "A", "n": 2}',
    }
    assert label["5-1"].tool_calls[0]["function"]["arguments"] == '{"id": 7}'
    assert [call["function"]["name"] for call in label["6-1"].tool_calls] == ["a", "b"]
    assert label["6-1"].tool_calls[1]["function"]["arguments"] == "{}"
    assert "7-1" not in label
    assert label["11-1"].tool_calls[0]["function"] == {"name": "idle", "arguments": "{}"}
    assert "13" not in label


def test_text_that_does_not_parse_into_calls():
    """A YAML list, or arguments that JSON cannot write, leave ``N-1`` without tool_calls."""
    label = label_of(msgspec.convert(steps(), list[ScenarioStep]))
    for key in ("9-1", "10-1"):
        assert label[key].tool_calls is msgspec.UNSET


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "steps:",
        "steps: {}",
        "steps: [7]",
        "a: [",
        "steps: [{step_id: true, data: {content: x}}]",
    ],
)
def test_files_that_are_no_scenario(tmp_path, text):
    """A file of another form is a bad record with its reason."""
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    (found,) = read(path)
    assert isinstance(found, BadRecord)
    assert found.reason.startswith("not a scenario:")


def test_an_empty_directory_is_an_error(tmp_path):
    """A directory without the pattern cannot be used."""
    with pytest.raises(DataError, match=r"no file named \*\.yaml"):
        read(tmp_path)


def test_sniffing(directory, tmp_path):
    head = (directory / "9.yaml").read_bytes()
    assert ScenarioReader.sniff(directory / "9.yaml", head) > 0.5
    assert ScenarioReader.sniff(directory / "9.json", head) == 0.0
    assert ScenarioReader.sniff(directory, b"") > 0.5
    assert ScenarioReader.sniff(tmp_path, b"") == 0.0


def test_the_reader_keeps_the_contract(directory, tmp_path):
    testing.check_reader(ScenarioReader(), directory / "9.yaml", scratch=tmp_path)
