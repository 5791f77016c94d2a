"""YAML of models and of others: what is small to write and huge to hold is refused, in time."""

import pytest
import yaml

import gradestack
from gradestack import BadRecord, ConfigError, Input, Inputs
from gradestack_plugins.orchestrationbench.plans import parse_plan
from gradestack_plugins.orchestrationbench.reader import ScenarioReader, read_config

NINE = ["x0: &a0 [l, l, l, l, l, l, l, l, l, l]"]
NINE += [f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
MERGED = [
    "x0: &a0 {k: v}",
    *(f"x{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)),
]


@pytest.mark.parametrize("lines", [NINE, MERGED], ids=["lists", "merge keys"])
def test_a_plan_of_aliases_nine_levels_deep_is_no_plan(lines):
    """A few aliases are read as they always were."""
    text = "\n".join(["workflow_1: {}", *lines])
    assert parse_plan(text).problem
    few = parse_plan("workflow_1: &a {x: 1}\nworkflow_2: *a\n")
    assert few.workflows["workflow_2"] == {"x": 1}


@pytest.mark.parametrize(
    "value", ["!!int ''", "!!bool x", "0x" + "f" * 5000, "'a\\0'", "&a [*a]", "[" * 5000]
)
def test_a_config_that_is_no_yaml_is_told(tmp_path, value):
    """With the file, as a mistake of the configuration, whatever its tags hold."""
    path = tmp_path / "config.yaml"
    path.write_text(f"evaluation_params:\n  agent_change_weight: {value}\n")
    with pytest.raises(ConfigError, match="evaluation config"):
        read_config(path)


def test_a_call_of_aliases_nine_levels_deep_is_kept_as_text(tmp_path):
    """As every text that is no YAML is; a whole scenario of that kind is a bad record."""
    call = "tool: f\narguments: {x: *a8}"
    content = "\n".join([*NINE, call])
    step = {
        "step_id": 1,
        "workflow_id": "w",
        "agent_type": "sub",
        "agent": "a",
        "data": {"content": content},
    }
    (tmp_path / "good.yaml").write_text(yaml.safe_dump({"steps": [step]}))
    (tmp_path / "bomb.yaml").write_text(content)
    reader = ScenarioReader()
    inputs = Inputs(data=(Input(path=tmp_path, name="x", shown="x"),))
    bomb, good = (next(reader.read(shard, None)) for shard in reader.plan(inputs, None))
    assert isinstance(bomb, BadRecord)
    assert "aliases stand for more than" in bomb.reason
    assert good.id == "good"
    assert gradestack.yaml_data("a: &x [1]\nb: *x") == {"a": [1], "b": [1]}
