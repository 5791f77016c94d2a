"""Records nested more deeply than the interpreter goes.

A bad record with its place, of every reader.
"""

import json
from pathlib import Path

import pytest

from gradestack import BadRecord, DataError, Inputs, Sample, ToolCall, discover
from gradestack.interpreter import ROOM, for_a_shard
from gradestack.suites.recognition import name_inputs
from gradestack_plugins.bfcl.side_files import _schema as bfcl_schema
from gradestack_plugins.deepfabric.exporter import render as deepfabric_text
from gradestack_plugins.readers.chat.cells import as_json as table_cell
from gradestack_plugins.trajectory.calls import identity_of
from tests.core.outcomes import data
from tests.plugins.chat_files import read

DATA = data(__file__, "nesting.yaml")

EXAMPLES = Path(__file__).parents[2] / "examples"
DEEP = 3000
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
RECORDS = DATA["records"]


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_nested_too_deeply_hides_no_other(name, tmp_path):
    """It is a bad record that says so, with its line; what stands behind it is read."""
    record = RECORDS[name]
    if isinstance(record, str):
        lines = (EXAMPLES / record).read_text().splitlines()
        first_line = lines[0]
        first = json.loads(first_line)
    else:
        first = record
    key = list(first)[-1]
    text = json.dumps(first | {key: 0})
    broken = text[:-2] + "[" * DEEP + "]" * DEEP + "}"
    path = tmp_path / "log.jsonl"
    path.write_text(f"{broken}\n{json.dumps(first)}\n")
    reader = discover(limit="").load("reader", name)()
    inputs = Inputs(data=name_inputs([path]))
    list(getattr(reader, "remarks", lambda _: ())(inputs))
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    bad, *others = [sample for shard in shards for sample in reader.read(shard, index)]
    assert isinstance(bad, BadRecord)
    assert bad.reason == "nested too deeply"
    source = str(bad.source)
    assert source == "log.jsonl:1"
    sources = {str(other.source) for other in others}
    assert sources == {"log.jsonl:2"}
    assert name == "deepfabric" or all(
        isinstance(other, Sample) for other in others
    )  # whose replies want a dataset


def told_call(value):
    tool_call = ToolCall(name="f", arguments={"a": value})
    assert identity_of(tool_call) is not None


WALKS = [bfcl_schema, deepfabric_text, table_cell, told_call]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.__module__.rpartition(".")[2])
@pytest.mark.parametrize(
    "level", [lambda value: [value], lambda value: {"a": value}], ids=["lists", "objects"]
)
def test_a_level_of_a_value_takes_one_call(walk, level):
    """On every Python: a comprehension would be one more before 3.12, and what is read could not be
    worked on.
    """
    value = {"a": 1}
    for _ in range(ROOM - 50):
        value = level(value)
    with for_a_shard():
        walk(value)


def test_a_results_file_nested_too_deeply_is_refused(tmp_path):
    """A results file is refused where the part that all simulations share is nested too deeply."""
    path = tmp_path / "results.json"
    path.write_text('{"info": ' + "[" * DEEP + "]" * DEEP + ', "tasks": [], "simulations": []}')
    reader = discover(limit="").load("reader", "tau2")()
    with pytest.raises(DataError, match=r"results\.json:1: info: nested too deeply"):
        reader.index(Inputs(data=name_inputs([path])))


def test_a_role_of_tau2_that_is_no_text_is_counted(tmp_path):
    messages = [{"role": odd, "content": "x"} for odd in ([], {}, None, 1, "nobody")]
    path = tmp_path / "results.json"
    text = json.dumps(
        {"info": {}, "tasks": [], "simulations": [{"task_id": "a", "messages": messages}]}
    )
    path.write_text(text)
    (sample,) = read("tau2", path)
    first_turn = sample.turns[0]
    roles = [message.role for message in first_turn]
    assert roles == ["nobody"]
    message_without_role = sample.remarks["message_without_role"]
    assert message_without_role == 4
    role_nobody = sample.remarks["role:nobody"]
    assert role_nobody == 1
