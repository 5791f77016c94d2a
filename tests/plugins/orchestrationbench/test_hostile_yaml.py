"""YAML of models and of others: what is small to write and huge to hold is refused, in time."""

import pytest

from gradestack import ConfigError
from gradestack_plugins.orchestrationbench.plans import parse_plan
from gradestack_plugins.orchestrationbench.reader import read_config

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
    workflow_2 = few.workflows["workflow_2"]
    assert workflow_2 == {"x": 1}


@pytest.mark.parametrize(
    "value", ["!!int ''", "!!bool x", "0x" + "f" * 5000, "'a\\0'", "&a [*a]", "[" * 5000]
)
def test_a_config_that_is_no_yaml_is_told(tmp_path, value):
    """With the file, as a mistake of the configuration, whatever its tags hold."""
    path = tmp_path / "config.yaml"
    path.write_text(f"evaluation_params:\n  agent_change_weight: {value}\n")
    with pytest.raises(ConfigError, match="evaluation config"):
        read_config(path)
