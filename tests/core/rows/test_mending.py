"""Lines of samples and grades that cannot be written as JSON."""

import json
import math

import pytest

from gradestack import (
    Expectation,
    Fault,
    Grade,
    Item,
    Message,
    PluginError,
    Reason,
    Sample,
    Source,
    ToolCall,
    failed,
    replace,
)
from gradestack.gates.rules import GateSpec
from gradestack.grading.plan import Success
from gradestack.interpreter import ROOM, for_a_shard
from tests.core.row_reference import line_and_kept


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


SAMPLE = Sample(
    id="a",
    model="m",
    run=2,
    text="kept",
    calls=(ToolCall(name="f", arguments={"x": 1}),),
    turns=((Message(role="user", content="hi"),),),
    expected=Expectation(calls=(ToolCall(name="f"),), label="yes", text="wanted"),
    facets={"kind": "easy"},
    source=Source(file="in.jsonl", ordinal=0, line=1),
)
GRADES = {"quality": Grade(score=0.5), "other": Grade(score=1.0)}
SIGNATURES = {"quality": "toy 7", "other": "other 1", "own": "own 1"}


def line(sample, grades, *, success=None, strict=False, submissions=None):
    """Encode one sample; return its row as data, the sample written, and the grades kept."""
    data, sample, kept_grades = line_and_kept(
        sample,
        grades,
        "quality",
        success=success,
        submissions=submissions,
        signatures=SIGNATURES,
        strict=strict,
    )
    assert data.endswith(b"\n")
    document = json.loads(data)
    return document, sample, kept_grades


@pytest.mark.parametrize(
    ("success", "passed"),
    [
        (None, None),
        (Success("quality"), False),
        (Success("quality", GateSpec(op="gte", value=0.5)), True),
        (Success("other"), True),
        (Success("own"), True),
        (Success("own", GateSpec(op="gte", value=0.5)), False),
    ],
)
def test_success_decides_whether_a_row_passed(success, passed):
    """The outcome grader's own verdict, else a full score.

    A gate's rule only where it is the rule of success.
    """
    grades = {**GRADES, "own": Grade(score=0.25, passed=True)}
    assert line(SAMPLE, grades, success=success)[0]["passed"] is passed
    if success is not None:
        ungraded = {**grades, success.grader: Grade(score=0.5, metadata={"x": {1}})}
        assert line(SAMPLE, ungraded, success=success)[0]["passed"] is None


BAD_GRADE = Fault(
    category="grading",
    code="bad_grade",
    type="TypeError",
    message="the grade is not JSON: Object of type set is not JSON serializable",
    component="toy 7",
)
TOO_DEEP = Fault(category="data", code="too_deep", message="nested too deeply to be written")


@pytest.mark.parametrize(
    ("odd", "fault"), [({1}, BAD_GRADE), (nested(50_000), TOO_DEEP)], ids=["set", "deep"]
)
def test_a_grade_that_cannot_be_written_fails_alone(odd, fault):
    quality = Grade(score=1.0, metadata={"x": odd})
    grades = {**GRADES, "quality": quality}
    row, sample, kept_grades = line(SAMPLE, grades, submissions={"quality": "said"})
    assert kept_grades["quality"] == failed(fault)
    assert sample is SAMPLE
    assert kept_grades["other"] is GRADES["other"]
    assert row["state"] == "failed"
    code = row["grade"]["fault"]["code"]
    assert code == fault.code
    assert row["status"] == "ok"
    assert row["submission"] == "said"
    calls = row["predicted"]["calls"]
    assert calls == [{"name": "f", "arguments": {"x": 1}}]
    score = row["grades"]["other"]["score"]
    assert score == 1.0


@pytest.mark.parametrize("leaf", [1, math.nan])
@pytest.mark.parametrize(
    "grade",
    [
        lambda value: {"metadata": {"x": value}},
        lambda value: {"reasons": (Reason(code="x", actual=value),)},
    ],
)
def test_a_grade_as_deep_as_there_is_room_for_is_written_or_fails(grade, leaf):
    """Level by level up to what no shard has room for.

    What fits alone, and not in its row, fails as what is deeper.
    """
    collected = []
    value = leaf
    for _ in range(ROOM):
        value = [value]
    for _ in range(60):
        value = value[0]
        with for_a_shard():
            grades = {**GRADES, "other": Grade(score=1.0, **grade(value))}
            data, _, kept_grades = line_and_kept(SAMPLE, grades, "quality")
        assert kept_grades["quality"] is GRADES["quality"]
        assert kept_grades["other"].fault in {None, TOO_DEEP}
        collected.append(kept_grades["other"].fault is None)
        assert b'"fault"' in data or collected[-1]
    assert not collected[0]
    assert collected == sorted(collected)
    assert collected[-1]


def test_a_strict_run_ends_at_a_grade_that_is_not_json():
    """The error names the grader and the record.

    Nesting too deep is the data's fault, and ends nothing.
    """
    grades = {**GRADES, "other": Grade(score=1.0, metadata={"x": {1}})}
    with pytest.raises(PluginError) as caught:
        line(SAMPLE, grades, strict=True)
    expected_text = (
        f"grader 'other' (other 1) broke its contract on {SAMPLE.source}\n"
        "  - the grade is not JSON: Object of type set is not JSON serializable"
    )
    assert str(caught.value) == expected_text
    metadata = {"x": nested(50_000)}
    deep = {**GRADES, "other": Grade(score=1.0, metadata=metadata)}
    fault = line(SAMPLE, deep, strict=True)[2]["other"].fault
    assert fault.code == "too_deep"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("odd", "code", "message"),
    [
        (nested(50_000), "too_deep", "nested too deeply to be written"),
        (object(), "not_json", "not JSON: Object of type object is not JSON serializable"),
        (10**5000, "not_json", "not JSON: Exceeds the limit"),
    ],
    ids=["deep", "object", "huge"],
)
@pytest.mark.parametrize(
    "fields",
    [
        lambda odd: {"plan": odd},
        lambda odd: {"agent_usage": odd},
        lambda odd: {"facets": {"x": odd}},
        lambda odd: {"recorded": {"x": odd}},
        lambda odd: {"calls": (ToolCall(name="f", arguments={"x": odd}),)},
        lambda odd: {"turns": ((Message(role="user", content=odd),),)},
        lambda odd: {"expected": Expectation(plan=odd, label="yes", text="wanted")},
    ],
)
def test_a_sample_that_cannot_be_written_is_a_failed_run(fields, odd, code, message, strict):
    """Without what was recorded.

    Who it is, its text and its reference texts stay, and all its grades failed.
    """
    row, sample, grades = line(
        replace(SAMPLE, **fields(odd)), GRADES, strict=strict, submissions={"quality": "said"}
    )
    faults = [grade.fault for grade in grades.values()]
    assert list(grades) == list(GRADES)
    assert [(fault.category, fault.code) for fault in faults] == [("data", code)] * 2
    assert faults[0].message.startswith(message)
    assert sample.error == faults[0]
    assert row["status"] == "failed"
    assert row["state"] == "failed"
    assert row["passed"] is None
    assert row["error"]["code"] == code
    assert row["sample"]["id"] == "a"
    assert row["model_name"] == "m"
    assert row["run"] == 2
    assert row["source"]["line"] == 1
    assert row["submission"] == "kept"
    assert row["submissions"] is None
    label = row["expected"]["label"]
    assert label == "yes"
    text = row["expected"]["text"]
    assert text == "wanted"
    assert row["trajectory"] == []
    calls = row["predicted"]["calls"]
    assert calls is None
    plan = row["expected"]["plan"]
    assert plan is None
    assert row["recorded"] == {}
    assert row["agent_usage"] is None
    assert row["facets"] == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"reasons": ("too long",)},
        {"items": ("x",)},
        {"items": (Item(id="x", parts=None),)},
        {"reasons": ({"code": "x"},)},
    ],
)
def test_parts_of_a_grade_that_are_none_cost_that_grade_only(fields):
    data, _, grades = line_and_kept(
        SAMPLE,
        {"good": Grade(score=1.0), "odd": Grade(score=1.0, **fields)},
        "good",
        signatures={"good": "good 1", "odd": "odd 1"},
    )
    outcomes = [grades[key].outcome for key in ("good", "odd")]
    assert outcomes == ["graded", "failed"]
    assert grades["odd"].fault.code == "bad_grade"
    assert b'"component":"odd 1"' in data
