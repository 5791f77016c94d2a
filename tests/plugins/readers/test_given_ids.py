"""Ids that the user says where to find: for every reader, at a place of its records or in what was asked."""

import json

import pytest

import gradestack
from gradestack import ConfigError, Inputs
from gradestack.suites.recognition import name_inputs
from tests.plugins.chat_files import written

REGISTRY = gradestack.discover(limit="")


def talk(question="hi", **more):
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": "hello"}], **more}


def read(name, path, **options):
    reader, inputs = REGISTRY.load("reader", name)(**options), Inputs(data=name_inputs([path]))
    index = reader.index(inputs)
    return [each for shard in reader.plan(inputs, index) for each in reader.read(shard, index)]


def graded(paths, tmp_path, **more):
    more = {"overrides": ("reports=[]",), **more}
    return gradestack.grade_files(paths, output=tmp_path / "out", registry=REGISTRY, **more)


RECORDS = {
    "openai": [talk(meta={"task": "t"})],
    "anthropic": [talk(meta={"task": "t"}, system="x")],
    "records": [talk(meta={"task": "t"})],
    "jsonl": [{"id": "a", "predicted": "x", "facets": {"task": "t"}}],
    "letta": [{"sample": {"id": 0}, "submission": "x", "meta": {"task": "t"}}],
    "bfcl": [{"id": "simple_0", "result": "f(a=1)", "latency": 1, "meta": {"task": "t"}}],
    "tau_bench": [{"task_id": 0, "reward": 1.0, "info": {"task": "t"}, "traj": [], "trial": 0}],
    "tau2": {"info": {}, "tasks": [], "simulations": [{"task_id": "a", "info": {"task": "t"}, "messages": []}]},
    "deepfabric": [talk(meta={"task": "t"})],
}
WHERE = {"jsonl": "$.facets.task", "tau_bench": "$.info.task", "tau2": "$.info.task"}


@pytest.mark.parametrize("name", RECORDS)
def test_the_id_is_read_where_the_user_says(name, tmp_path):
    """Whatever the reader; it is recorded then, and no longer made up."""
    path = tmp_path / "log.json"
    records = RECORDS[name]
    path.write_text(
        json.dumps(records) if name.startswith("tau") else "".join(json.dumps(each) + "\n" for each in records)
    )
    (sample,) = read(name, path, ids=WHERE.get(name, "$.meta.task"))
    assert sample.id == "t"
    assert "id_made" not in sample.remarks
    assert "id_made" not in sample.facets


def test_a_record_without_it_keeps_its_id_and_is_counted(tmp_path):
    """By kind, with its place; so is one with something that is no id there."""
    values = ["a", 7, 7.0, None, True, {}, [], ""]
    path = written(tmp_path, [talk(task=value) for value in values] + [talk()])
    report = graded(path, tmp_path, columns={"id": "task"})
    ids = [row["sample"]["id"] for row in report.rows()]
    assert ids == ["a", 7, 7, *(f"log:{n}" for n in range(3, 9))]
    assert report.summary["remarks"]["id_not_found"] == {"count": 6, "first": "log.jsonl:4"}
    assert report.header["ids_made"] == 6
    assert report.aggregates["usage"]["usage_totals"]


def test_samples_of_the_same_question_and_tools_are_runs(tmp_path):
    """Three tasks of two runs each; another tool makes another task, another answer does not."""
    tools = [{"type": "function", "function": {"name": "f"}}]
    logs = [talk("a"), talk("b"), talk("a", tools=tools)] * 2
    logs[0]["messages"][1]["content"] = "another answer"
    found = read("openai", written(tmp_path, logs), ids="input")
    ids = [sample.id for sample in found]
    assert ids[:3] == ids[3:]
    assert len(set(ids)) == 3
    assert all(each.startswith("input-") for each in ids)
    report = graded(written(tmp_path, logs), tmp_path, ids="input")
    assert report.header["ids_made"] == 0
    assert report.aggregates["usage"]["mean"]["clusters"] == 3


def test_what_nobody_asked_keeps_its_id(tmp_path):
    """A digest of nothing would make one task of all."""
    (sample,) = read("openai", written(tmp_path, [{"messages": [{"role": "assistant", "content": "x"}]}]), ids="input")
    assert sample.id == "log:0"
    assert sample.remarks["id_not_found"] == 1


def test_records_of_one_id_are_kept_as_runs_although_a_format_takes_the_last(tmp_path):
    """The habit of letta-evals is for its own ids."""
    records = [{"sample": {"id": n, "input": "?"}, "submission": "x", "task": "t"} for n in range(3)]
    path = written(tmp_path, records)
    report = graded(path, tmp_path, reader="letta", ids="task", graders=["ascii_printable_only"])
    assert [row["sample"]["id"] for row in report.rows()] == ["t"] * 3


def test_choices_of_one_request_share_the_cluster_of_the_new_id(tmp_path):
    choices = [{"index": n, "message": {"role": "assistant", "content": str(n)}} for n in range(2)]
    log = {"request": {"messages": [{"role": "user", "content": "hi"}]}, "response": {"choices": choices}, "task": "t"}
    found = read("openai", written(tmp_path, [log]), ids="task")
    assert [(each.id, each.cluster, each.run) for each in found] == [("t", "t", 0), ("t", "t", 1)]


@pytest.mark.parametrize("place", ["", "$", "$x"])
def test_a_place_that_cannot_be_is_refused(tmp_path, place):
    """As a mistake of configuration, before anything is read."""
    with pytest.raises(ConfigError):
        graded(written(tmp_path, [talk()]), tmp_path, ids=place)


def test_a_mapping_of_more_than_ids_is_that_of_tables(tmp_path):
    """The reader records takes it; with another reader named it is refused."""
    path = written(tmp_path, [talk(task="t")])
    report = graded(path, tmp_path, columns={"id": "task", "messages": "messages"})
    assert report.header["components"][0]["name"] == "records"
    with pytest.raises(ConfigError, match="a mapping of columns is for the reader 'records'"):
        graded(path, tmp_path, reader="openai", columns={"id": "task", "model": "m"})


def test_a_table_may_take_its_ids_from_what_was_asked(tmp_path):
    """With columns named like fields beside it."""
    path = tmp_path / "table.csv"
    path.write_text("input,calls\na,[]\na,[]\nb,[]\n")
    report = graded(path, tmp_path, ids="input")
    assert len({row["sample"]["id"] for row in report.rows()}) == 2
