"""How often the interpreter looks for garbage during a shard."""

import gc
import json

import pytest

from gradestack import grade_files
from gradestack.grading.merging import ShardResult
from gradestack.grading.worker import ShardGrader
from gradestack.interpreter import for_a_shard


@pytest.fixture(autouse=True)
def threshold():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def _fail_inside():
    with for_a_shard():
        assert gc.get_threshold() == (100_000, 11, 12)
        raise KeyError


def test_less_often_inside_and_as_before_outside():
    gc.set_threshold(700, 11, 12)
    with pytest.raises(KeyError):
        _fail_inside()
    assert gc.get_threshold() == (700, 11, 12)


@pytest.mark.parametrize("chosen", [0, 120_000])
def test_a_caller_who_has_chosen_is_left_alone(chosen):
    gc.set_threshold(chosen, 10, 10)
    with for_a_shard():
        assert gc.get_threshold() == (chosen, 10, 10)


@pytest.mark.parametrize("grader", ["exact_match", "tool_schema"])
def test_what_a_shard_came_to_is_let_go_of_without_a_look_for_garbage(tmp_path, grader):
    """Nothing of it stands in a circle: looked for seldom, such circles of many shards would add up."""
    call, unusable = {"name": "f", "arguments": {}}, [{"name": "f", "parameters": {"type": 5}}]
    records = [{"id": f"t{n}", "expected": "x", "text": "x", "calls": [call], "tools": unusable} for n in range(5)]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    gc.collect()
    gc.disable()
    try:
        grade_files(tmp_path / "runs.jsonl", graders=[grader], output=tmp_path / "out")
        assert not [each for each in gc.get_objects() if isinstance(each, ShardResult | ShardGrader)]
    finally:
        gc.enable()
