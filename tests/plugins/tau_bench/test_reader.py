"""Reader ``tau_bench``."""

from __future__ import annotations

import json
import math

import pytest

from gradestack import BadRecord, DataError, Input, Inputs, Sample, Status
from gradestack_plugins.tau_bench.reader import TauBench
from gradestack_plugins.tau_bench.records import TauRecord


def test_fields_of_a_sample(tau, tmp_path):
    traj = [
        {"role": "system", "content": "policy"},
        {"role": "user", "content": "Hello"},
        tau.call("look", {"id": 1}, "c1") | {"role": "assistant"},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "Error: no such id"},
        {"role": "assistant", "content": "Sorry."},
    ]
    record = tau.record([("look", {"id": 1}), ("act", {})], traj, task_id=12, trial=3, reward=1.0)
    record["info"] |= {"user_cost": 0.25, "reward_info": {"info": {"r_outputs": 1.0, "outputs": {"10": True}, "x": 1}}}
    path = tmp_path / "results.json"
    path.write_text(json.dumps([tau.record(), record], indent=2))
    sample = tau.read(path)[1]
    assert (sample.id, sample.run, sample.model, sample.input, sample.text) == ("12", 3, None, "Do it.", "Sorry.")
    assert [(call.name, dict(call.arguments)) for call in sample.expected.calls] == [("look", {"id": 1}), ("act", {})]
    (call,) = sample.calls
    assert (call.name, dict(call.arguments), call.id) == ("look", {"id": 1}, "c1")
    assert (call.result, call.error) == ("Error: no such id", "Error: no such id")
    assert [message.role for message in sample.turns[0]] == ["system", "user", "assistant", "tool", "assistant"]
    assert sample.recorded == {"reward": 1.0, "judged": True, "r_outputs": 1.0, "outputs": {"10": True}}
    assert (sample.status, sample.error, sample.agent_usage) == (Status.OK, None, {"user_cost": 0.25})
    assert sample.facets == {"user_id": "u", "end": "user"}
    assert (sample.source.file, sample.source.ordinal) == ("results.json", 1)
    assert path.read_text().splitlines()[sample.source.line - 1] == "  {"
    assert sample.native == TauRecord(record)


@pytest.mark.parametrize(
    ("task_id", "shown"), [(0, "0"), (-3, "-3"), ("a b", "a b"), ("", ""), (10**30, "1" + "0" * 30), ("007", "007")]
)
def test_task_ids_are_shown_as_given(tau, task_id, shown):
    """An integer or text ``task_id`` becomes the id as it is printed."""
    assert tau.sample(tau.record(task_id=task_id)).id == shown


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "expected an object, found null"),
        ([1, 2], "expected an object, found [1, 2]"),
        ("x" * 500, 'expected an object, found "xxx'),
        ({}, "task_id is missing"),
        ({"task_id": None}, "task_id is null"),
        ({"task_id": 1.5}, "task_id is 1.5"),
        ({"task_id": True}, "task_id is true"),
        ({"task_id": [1]}, "task_id is [1]"),
    ],
)
def test_bad_records_are_reported(tau, tmp_path, record, reason):
    """A record without a usable id is a bad record with its place and reason, kept whole; the next one is read."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps([record, tau.record()]))
    bad, good = tau.read(path)
    assert isinstance(bad, BadRecord)
    assert isinstance(good, Sample)
    assert bad.reason.startswith(reason)
    assert len(bad.reason) < 150
    assert bad.source.ordinal == 0
    assert bad.native == TauRecord(record)


@pytest.mark.parametrize(
    ("trial", "run"), [(0, 0), (3, 3), ("b", "b"), (None, None), (2.0, 2), (True, 1), (2.5, "2.5"), ([1], "[1]")]
)
def test_trials(tau, trial, run):
    """Trials are identifiers: integers and texts as they are, others as JSON text."""
    found = tau.sample(tau.record(trial=trial)).run
    assert (found, type(found)) == (run, type(run))


@pytest.mark.parametrize(
    "changes",
    [
        {"info": None},
        {"info": "x"},
        {"info": {"task": None}},
        {"info": {"task": {"actions": 5, "instruction": 7, "user_id": 3}}},
        {"info": {"reward_info": 5, "source": 9}},
        {"info": {"reward_info": {"info": None}}},
        {"traj": None},
        {"traj": "x"},
        {"traj": [None, 5, {"role": None, "content": {"a": 1}, "tool_calls": [None, {"function": None}]}]},
        {"traj": [{"role": "assistant", "content": ["a", {"text": "b"}, 3]}]},
        {"traj": [{"role": "assistant", "tool_calls": [{"function": {"name": 5, "arguments": [1]}, "id": 7}]}]},
    ],
)
def test_odd_records_still_give_samples(tau, changes):
    """Anything else that is odd is left out of the sample; the record is kept as it is."""
    record = tau.record() | changes
    sample = tau.sample(record)
    assert (sample.id, sample.status) == ("0", Status.OK)
    assert sample.native == TauRecord(record)


def test_results_go_to_their_calls(tau):
    first, second, third = tau.call("a", {}, "i"), tau.call("b", {}, "j"), tau.call("c", {}, "i")

    def told(identifier, text):
        return {"role": "tool", "tool_call_id": identifier, "content": text}

    traj = [first, second, told("j", "B"), told("i", "A"), third, told("i", "C"), told("k", "lost")]
    calls = tau.sample(tau.record(traj=traj)).calls
    assert [(call.name, call.result, call.error) for call in calls] == [
        ("a", "A", None),
        ("b", "B", None),
        ("c", "C", None),
    ]


def test_act_and_react_runs(tau):
    """Actions behind the last "Action:" are calls, "API output: " messages their results, ``respond`` is speech."""
    traj = [
        {"role": "user", "content": "API output: not yet"},
        {"role": "assistant", "content": 'Action: none.\nAction:\n{"name": "look", "arguments": {"id": 1}}'},
        {"role": "user", "content": "API output: Error: unknown"},
        {"role": "assistant", "content": '{"name": "act", "arguments": {}}'},
        {"role": "user", "content": "API output: done"},
        {"role": "assistant", "content": 'Action: {"name": "bad", "arguments": [1]}'},
        {"role": "assistant", "content": 'Action: {"name": "respond", "arguments": {"content": "All done."}}'},
        {"role": "user", "content": "Thanks"},
    ]
    sample = tau.sample(tau.record(traj=traj))
    assert [(call.name, dict(call.arguments), call.result, call.error) for call in sample.calls] == [
        ("look", {"id": 1}, "Error: unknown", "Error: unknown"),
        ("act", {}, "done", None),
    ]
    assert sample.text == "All done."


def test_shard_positions_leave_room(tau, tmp_path):
    """A small file is one shard; positions grow by more than the number of records."""
    paths = []
    for number in range(3):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps([tau.record()] * 3))
    inputs = Inputs(data=tuple(Input(path=path, name=path.stem, shown=path.name) for path in paths))
    shards = list(TauBench().plan(inputs, None))
    size = paths[0].stat().st_size
    assert [(shard.ordinal, shard.position) for shard in shards] == [(0, 0), (1, size + 1), (2, 2 * (size + 1))]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("tail", ["]", "", "] x", ', {"task_id": 5, "traj": [', ", 7]", ', nope, {"task_id": 1}]'])
def test_a_large_file_is_read_in_several_shards(tau, tmp_path, monkeypatch, indent, tail):
    """Ranges of records give the same samples and bad records, with the same places, whatever the end of the file."""
    records = [tau.record(task_id=n, reward=[1.0, math.inf, 0][n % 3], text="\ud800é"[n % 2 :]) for n in range(30)]
    records[3], records[17] = {"no": "id"}, [1, 2]
    path = tmp_path / "r.json"
    text = json.dumps(records, indent=indent, ensure_ascii=True).removesuffix("]")
    path.write_text(text.replace('"traj": []', '"traj": nope', 1) + tail)
    whole = tau.read(path)
    assert len(whole) >= 30
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 400)
    inputs = Inputs(data=(Input(path=path, name="r", shown="r.json"),))
    shards = list(TauBench().plan(inputs, None))
    pieces = [list(TauBench().read(shard, None)) for shard in shards]
    assert [each for piece in pieces for each in piece] == whole
    assert len(shards) > 5
    assert [shard.ordinal for shard in shards] == list(range(len(shards)))
    for shard, piece, following in zip(shards, pieces, shards[1:], strict=False):
        assert shard.position + len(piece) < following.position


def test_unusable_files(tau, tmp_path):
    empty, other = tmp_path / "empty.json", tmp_path / "other.json"
    empty.write_text("")
    other.write_text("{}")
    for path, what in (
        (tmp_path / "no.json", "no such file"),
        (tmp_path, "directory"),
        (empty, "empty"),
        (other, "list"),
    ):
        with pytest.raises(DataError, match=what) as caught:
            tau.read(path)
        assert path.name in str(caught.value)


def test_files_that_go_away(tau, tmp_path):
    """A file that is gone when it is read, or has an impossible name, is unusable input."""
    path = tmp_path / "r.json"
    path.write_text("[]")
    reader = TauBench()
    (shard,) = reader.plan(Inputs(data=(Input(path=path, name="r", shown="shown.json"),)), None)
    path.unlink()
    with pytest.raises(DataError, match=r"shown\.json: cannot be read: No such file"):
        list(reader.read(shard, None))
    with pytest.raises(DataError, match="xxx: "):
        tau.read(tmp_path / ("x" * 5000))


def test_a_cut_off_file_gives_what_was_read(tau, tmp_path):
    """Records before the cut are read; then one bad record says that the rest could not be."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps([tau.record(), tau.record(task_id=1)])[:-20])
    good, bad = tau.read(path)
    assert good.id == "0"
    assert bad.native is None
    assert "the rest of the file could not be read" in bad.reason


def test_a_broken_record_is_passed_over(tau, tmp_path):
    path = tmp_path / "r.json"
    path.write_text('[{"task_id": nope}, ' + json.dumps(tau.record()) + "]")
    bad, good = tau.read(path)
    assert "not JSON" in bad.reason
    assert "rest of the file" not in bad.reason
    assert (good.id, good.source.ordinal) == ("0", 1)


def test_odd_values_survive(tau, tmp_path):
    """NaN, huge integers and lone surrogates are read as the standard library reads them."""
    path = tmp_path / "r.json"
    text = json.dumps(tau.record(reward=10**30)).replace('"Do it."', '"\\ud800 \\u0000"').replace('"u"', "NaN")
    path.write_text(f"\ufeff[{text}]", encoding="utf-8")
    (sample,) = tau.read(path)
    assert (sample.input, sample.recorded["reward"]) == ("\ud800 \x00", 10**30)
    assert sample.native.record["info"]["task"]["user_id"] != sample.native.record["info"]["task"]["user_id"]
