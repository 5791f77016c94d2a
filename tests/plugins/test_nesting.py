"""Records nested more deeply than the interpreter goes: a bad record with its place, of every reader."""

import json
from pathlib import Path

import pytest

from gradestack import BadRecord, DataError, Inputs, Sample, discover
from gradestack.suites.inputs import name_inputs

EXAMPLES = Path(__file__).parents[2] / "examples"
DEEP = 3000
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
RECORDS = {
    "letta": "letta/recorded/results.jsonl",
    "letta_dataset": "letta/dataset.jsonl",
    "deepfabric": "deepfabric/replies.jsonl",
    "stability": "stability/runs.jsonl",
    "when2call": "when2call/judge_decisions.jsonl",
    "jsonl": "quickstart/runs.jsonl",
    "openai": {"id": "a", "messages": TALK},
    "anthropic": {"id": "a", "model": "claude", "messages": TALK},
    "records": {"id": "a", "messages": TALK},
    "bfcl": {"id": "simple_0", "result": "f(a=1)"},
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_nested_too_deeply_hides_no_other(name, tmp_path):
    """It is a bad record that says so, with its line; what stands behind it is read."""
    given = RECORDS[name]
    first = json.loads((EXAMPLES / given).read_text().splitlines()[0]) if isinstance(given, str) else given
    key = list(first)[-1]
    broken = json.dumps(first | {key: 0})[:-2] + "[" * DEEP + "]" * DEEP + "}"
    path = tmp_path / "log.jsonl"
    path.write_text(f"{broken}\n{json.dumps(first)}\n")
    reader, inputs = discover(limit="").load("reader", name)(), Inputs(data=name_inputs([path]))
    list(getattr(reader, "remarks", lambda _: ())(inputs))
    index = reader.index(inputs)
    bad, *others = [found for shard in reader.plan(inputs, index) for found in reader.read(shard, index)]
    assert isinstance(bad, BadRecord)
    assert (bad.reason, str(bad.source)) == ("nested too deeply", "log.jsonl:1")
    assert {str(each.source) for each in others} == {"log.jsonl:2"}
    assert name == "deepfabric" or all(isinstance(each, Sample) for each in others)  # whose replies want a dataset


def test_a_results_file_nested_too_deeply_is_refused(tmp_path):
    """What holds for all simulations of tau2 stands once: without it nothing can be read."""
    path = tmp_path / "results.json"
    path.write_text('{"info": ' + "[" * DEEP + "]" * DEEP + ', "tasks": [], "simulations": []}')
    reader = discover(limit="").load("reader", "tau2")()
    with pytest.raises(DataError, match=r"results\.json:1: info: nested too deeply"):
        reader.index(Inputs(data=name_inputs([path])))


def test_a_role_of_tau2_that_is_no_text_is_counted(tmp_path):
    """A message whose role is a list or an object is one of an unknown role."""
    messages = [{"role": odd, "content": "x"} for odd in ([], {}, None, 1, "nobody")]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"info": {}, "tasks": [], "simulations": [{"task_id": "a", "messages": messages}]}))
    reader, inputs = discover(limit="").load("reader", "tau2")(), Inputs(data=name_inputs([path]))
    index = reader.index(inputs)
    (sample,) = [found for shard in reader.plan(inputs, index) for found in reader.read(shard, index)]
    assert [message.role for message in sample.turns[0]] == ["", "", "", "", "nobody"]
    assert sample.remarks["message_of_unknown_role"] == 5
