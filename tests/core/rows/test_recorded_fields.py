"""Tests of the fields that rows carry only when they were recorded."""

import json
import math

import pytest

from gradestack import Expectation, ExpectedCall, Grade, Message, Rule, Sample, ToolCall, Usage
from tests.core.outcomes import data
from tests.core.row_reference import row_bytes

DATA = data(__file__, "recorded_fields.yaml")

GRADES = {"g": Grade(score=1.0)}


def written(sample):
    text = row_bytes(sample, GRADES, "g", passed=True)
    return json.loads(text)


@pytest.mark.parametrize(
    ("field", "value", "row"),
    [
        *DATA["what_was_recorded_of_a_run_is_in_its_row"],
        ("usage", Usage(requests=0, cost_usd=0.5), {"usage": {"requests": 0, "cost_usd": 0.5}}),
    ],
)
def test_what_was_recorded_of_a_run_is_in_its_row(field, value, row):
    bare = written(Sample(id="a"))
    assert field not in bare
    sample = Sample(id="a", **{field: value})
    assert written(sample) == bare | row


def test_states_stand_where_they_belong():
    expectation = Expectation(state=[2])
    sample = Sample(id="a", state={"db": 1}, expected=expectation)
    row = written(sample)
    state = row["predicted"]["state"]
    assert state == {"db": 1}
    assert row["expected"]["state"] == [2]


DETAILS = DATA["details"]


def test_details_of_calls_are_in_the_row():
    """A call's row has all that was recorded but its id.

    A result where no conversation has it, a requestor if not the assistant.
    """
    tool_call = ToolCall(name="f", id="1", result="r", **DETAILS)
    calls = (
        tool_call,
        ToolCall(name="g", requestor="user"),
    )
    first, second = (
        {"name": "f", "arguments": {}, **DETAILS},
        {"name": "g", "arguments": {}, "requestor": "user"},
    )
    sample = Sample(id="a", calls=calls)
    assert written(sample)["predicted"]["calls"] == [
        {**first, "result": "r"},
        second,
    ]
    message = Message(role="assistant", tool_calls=calls)
    talk = ((message,),)
    predicted = written(Sample(id="a", calls=calls, turns=talk))["predicted"]
    assert predicted["calls"] == [first, second]


def test_a_reference_is_in_the_row_as_the_form_writes_it():
    rule = Rule(any_of=(1, "1"), compare="number")
    rules = {"x": rule}
    expected_call = ExpectedCall(
        names=("f", "g"),
        rules=rules,
        optional=True,
    )
    expected = Expectation(
        calls=(
            expected_call,
            ExpectedCall(name="h", arguments=None, turn=0, group=1, requestor="user"),
        ),
        alternatives=((), (ExpectedCall(name="f"),)),
        forbidden=("rm*",),
    )
    sample = Sample(id="a", expected=expected)
    row = written(sample)["expected"]
    assert (
        row["calls"]
        == data(__file__, "recorded_fields.yaml")["a_reference_is_in_the_row_as_the_form_writes_it"]
    )
    assert row["alternatives"] == [[], [{"name": "f", "arguments": {}}]]
    assert row["forbidden"] == ["rm*"]


def test_reasoning_is_in_the_conversation():
    message = Message(role="assistant", content="x", reasoning="because")
    turns = ((message,),)
    sample = Sample(id="a", turns=turns)
    trajectory = written(sample)["trajectory"]
    assert trajectory == [[{"role": "assistant", "content": "x", "reasoning": "because"}]]


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    "sample",
    [
        lambda value: Sample(id="a", calls=(ToolCall(name="f", seconds=value),)),
        lambda value: Sample(
            id="a",
            expected=Expectation(
                calls=(ExpectedCall(name="f", rules={"x": Rule(tolerance=value)}),)
            ),
        ),
    ],
    ids=["seconds", "tolerance"],
)
def test_numbers_that_are_none_do_not_become_null(sample, value):
    line = row_bytes(sample(value), {"q": Grade(score=1.0)}, "q", passed=True, submissions={})
    assert (b'"NaN"' if math.isnan(value) else b'"Infinity"') in line
    usage = Usage(cost_usd=value, seconds=1.5, input_tokens=1)
    expected = Usage(seconds=1.5, input_tokens=1)
    assert usage == expected
