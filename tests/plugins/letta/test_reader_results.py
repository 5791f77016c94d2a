"""Reader `letta`: models, states, errors, references and what else one result holds."""

from __future__ import annotations

import pytest

from gradestack_plugins.letta.reader import Letta

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        ({"model_name": "m"}, "m"),
        ({"model_name": None, "model_handle": "openai/m"}, "openai/m"),
        ({"model_name": None}, None),
        ({"model_name": 7}, None),
    ],
)
def test_models(letta, tmp_path, fields, model):
    """The model is its name, else its handle; without either it stays unnamed."""
    (sample,) = letta.read(letta.write(tmp_path / "results.jsonl", [letta.result(0, **fields)]))
    assert sample.model == model


@PROFILES
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "ReadTimeout: no answer"),
        ({"grade": {"score": 0.0, "rationale": "empty", "metadata": {}}}, "the recorded trajectory is empty"),
        ({"grade": None}, "the recorded trajectory is empty"),
        ({"agent_id": "a"}, "ReadTimeout: no answer"),
        ({"trajectory": None}, "ReadTimeout: no answer"),
        ({"trajectory": [[]]}, "ReadTimeout: no answer"),
    ],
)
def test_failed_runs(letta, tmp_path, profile, fields, message):
    """Without an error record, an empty trajectory is a failed run; the rationale's text behind "Error: " says why."""
    file = letta.write(tmp_path / "results.jsonl", [letta.failure(0) | fields])
    (sample,) = letta.read(file, reader=Letta(profile=profile))
    assert (sample.status, sample.error.category, sample.error.message) == ("failed", "target", message)
    assert sample.calls is None


@PROFILES
def test_a_null_agent_is_a_failed_run(letta, tmp_path, profile):
    """An agent that is null fails the run although there is a conversation.

    So does, in upstream, one left out; not in the later layout, which drops null fields and records errors.
    """
    without, later = letta.result(1), letta.result(2) | {"sample_id": 2}
    del without["agent_id"], later["agent_id"], later["sample"]
    file = letta.write(tmp_path / "results.jsonl", [letta.result(0, agent_id=None), without, later])
    first, second, third = letta.read(file, reader=Letta(profile=profile))
    assert (first.status, first.error.message) == ("failed", "the recording names no agent")
    assert second.status == ("ok" if profile == "documented" else "failed")
    assert third.status == "ok"


@pytest.mark.parametrize(("profile", "status"), [("documented", "failed"), ("upstream", "ok")])
def test_a_turn_without_a_message(letta, tmp_path, profile, status):
    """A list that holds an empty turn is a trajectory to the program; nothing was said all the same."""
    file = letta.write(tmp_path / "results.jsonl", [letta.result(0, "", trajectory=[[]])])
    (sample,) = letta.read(file, reader=Letta(profile=profile))
    assert (sample.status, sample.turns, sample.text, sample.calls) == (status, ((),), None, None)


@pytest.mark.parametrize(("profile", "status", "text"), [("documented", "ok", "Oslo"), ("upstream", "failed", None)])
def test_a_submission_without_trajectory(letta, tmp_path, profile, status, text):
    """A recording of submissions only can be graded in documented; to upstream an empty trajectory says nothing."""
    file = letta.write(tmp_path / "results.jsonl", [letta.result(0, trajectory=[])])
    (sample,) = letta.read(file, reader=Letta(profile=profile))
    assert (sample.status, sample.text) == (status, text)


@pytest.mark.parametrize(
    ("category", "documented"), [("target", "failed"), ("extraction", "ok"), ("grading", "ok"), ("reward", "ok")]
)
def test_structured_errors(letta, tmp_path, category, documented):
    """An error record fails the run; in documented not when the conversation is whole and something later broke."""
    error = {"category": category, "exception_type": "ValueError", "message": "no"}
    file = letta.write(tmp_path / "results.jsonl", [letta.result(0, error=error)])
    (sample,) = letta.read(file)
    assert sample.status == documented
    assert sample.recorded["error"] == error
    (sample,) = letta.read(file, reader=Letta(profile="upstream"))
    assert sample.status == "failed"
    assert (sample.error.category, sample.error.type, sample.error.message) == (category, "ValueError", "no")
    (sample,) = letta.read(letta.write(tmp_path / "results.jsonl", [letta.result(0, trajectory=[], error=error)]))
    assert sample.status == "failed"


@pytest.mark.parametrize("error", ["broke", ["broke"], {"message": 7}])
def test_odd_error_records(letta, tmp_path, error):
    (sample,) = letta.read(letta.write(tmp_path / "results.jsonl", [letta.result(0, error=error)]))
    assert (sample.status, sample.error.category) == ("failed", "target")


def test_recorded_values_are_kept(letta, tmp_path):
    """Grades, submissions, costs and times stand in `recorded`, also of a failed run; usage and agent where they go."""
    fields = {"submissions": {"quality": "Oslo"}, "cost": 0.25, "total_time": 1.5, "reward": {"score": 0.5}}
    record = letta.result(0, agent_usage=[{"completion_tokens": 3}], **fields)
    sample, failed = letta.read(letta.write(tmp_path / "results.jsonl", [record, letta.failure(1, usage={"n": 1})]))
    assert sample.recorded == {
        "grade": letta.grade(1.0),
        "grades": {"quality": letta.grade(1.0)},
        "submission": "Oslo",
        "submissions": {"quality": "Oslo"},
        "cost": 0.25,
        "total_time": 1.5,
        "reward": 0.5,
    }
    assert sample.agent_usage == [{"completion_tokens": 3}]
    assert failed.recorded["grade"]["rationale"] == "Error: ReadTimeout: no answer"
    assert failed.agent_usage == {"n": 1}


def test_turns_and_references_per_turn(letta, tmp_path):
    """A list of inputs is that many turns, a list of references one per turn; metadata and tags become facets."""
    sample = {
        "input": ["a", "b"],
        "ground_truth": ["x", "y"],
        "metadata": {"topic": "t", "agent_args": {"a": 1}},
        "tags": ["hard"],
    }
    turns = [[letta.spoken("x")], [letta.spoken("z"), letta.spoken("y")]]
    (found,) = letta.read(letta.write(tmp_path / "results.jsonl", [letta.result(0, sample=sample, trajectory=turns)]))
    assert (found.input, found.expected.text, found.expected.label) == (("a", "b"), ("x", "y"), None)
    assert [len(turn) for turn in found.turns] == [1, 2]
    assert found.text == "y"
    assert found.facets == {"topic": "t", "tags": ["hard"]}


@pytest.mark.parametrize(
    ("truth", "expected"),
    [(None, None), ("", ""), (42, "42"), ({"a": 1}, '{"a": 1}'), ([], None), (["x"], ("x",)), ([1, 2], "[1, 2]")],
)
def test_references_of_other_types(letta, tmp_path, truth, expected):
    record = letta.result(0, sample={"ground_truth": truth})
    (sample,) = letta.read(letta.write(tmp_path / "results.jsonl", [record]))
    assert sample.expected.text == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"trajectory": "x"},
        {"trajectory": [None, 3, [None, 3, "x", {}]]},
        {"grade": 3, "grades": [], "submissions": 7, "agent_usage": "x"},
        {"sample": {"input": None, "ground_truth": {"a": [None]}, "metadata": 3, "tags": 7}},
        {"sample": {"input": [1, None]}, "submission": 7, "agent_id": 7},
        {"error": 0, "reward": "x", "agent_state": [], "memory_blocks": 3},
    ],
)
@PROFILES
def test_odd_records_give_a_sample(letta, tmp_path, profile, fields):
    (sample,) = letta.read(
        letta.write(tmp_path / "results.jsonl", [letta.result(0, **fields)]), reader=Letta(profile=profile)
    )
    assert sample.id == "0"
