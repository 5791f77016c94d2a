"""Odd values in rows: not a number, not JSON, too deep, several lines, met again."""

import collections
import datetime as dt
import decimal
import json
import math
import types
import uuid

import pytest

from gradestack import Expectation, Grade, Item, Message, Reason, Sample, ToolCall, grade_to_json
from gradestack.rows.write import encode
from tests.core.row_reference import (
    SCORED,
    Colour,
    Note,
    Size,
    Text,
    reference,
    row_bytes,
    same,
    written,
)

PLACES = {
    "arguments": lambda value: Sample(id="a", calls=(ToolCall(name="f", arguments={"x": value}),)),
    "expected arguments": lambda value: Sample(
        id="a", expected=Expectation(calls=(ToolCall(name="f", arguments={"x": value}),))
    ),
    "plan": lambda value: Sample(id="a", plan=value),
    "expected plan": lambda value: Sample(id="a", expected=Expectation(plan=[value])),
    "usage": lambda value: Sample(id="a", agent_usage=value),
    "facets": lambda value: Sample(id="a", facets={"x": value}),
    "recorded": lambda value: Sample(id="a", recorded={"x": {"y": value}}),
    "content": lambda value: Sample(id="a", turns=((Message(role="user", content=[value]),),)),
    "chat call": lambda value: Sample(
        id="a",
        turns=((Message(role="a", tool_calls=(ToolCall(name="f", arguments={"x": value}),)),),),
    ),
}
GRADE_PLACES = {
    "metadata": lambda value: Grade(score=1.0, metadata={"x": value}),
    "expected": lambda value: Grade(score=1.0, reasons=(Reason(code="c", expected=value),)),
    "actual": lambda value: Grade(score=1.0, reasons=(Reason(code="c", actual=[value]),)),
    "item score": lambda value: Grade(score=1.0, items=(Item(id="0", score=value),)),
    "item parts": lambda value: Grade(score=1.0, items=(Item(id="0", parts={"p": value}),)),
    "item metadata": lambda value: Grade(score=1.0, items=(Item(id="0", metadata={"p": [value]}),)),
    "item reason": lambda value: Grade(
        score=1.0, items=(Item(id="0", reasons=(Reason(code="c", actual=value),)),)
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, [1.0, math.nan], {"a": (math.inf,)}, [0.5] * 40 + [math.nan]],
)
def test_nothing_in_a_sample_becomes_null(place, value):
    sample = PLACES[place](value)
    same(written(sample), reference(sample, {"quality": SCORED}, "quality", None, {}))
    assert (
        b"NaN" in json.dumps(written(sample)).encode()
        or b"Infinity" in json.dumps(written(sample)).encode()
    )


@pytest.mark.parametrize("place", GRADE_PLACES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nothing_in_a_grade_becomes_null(place, value):
    grades = {"quality": GRADE_PLACES[place](value)}
    same(written(Sample(id="a"), grades), reference(Sample(id="a"), grades, "quality", None, {}))


NOT_JSON = [
    {1},
    frozenset({"a"}),
    b"x",
    bytearray(b"x"),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    dt.date(2020, 1, 1),
    dt.timedelta(1),
    decimal.Decimal("1.5"),
    uuid.UUID(int=1),
    1j,
    object(),
    [[{"deep": {1}}]],
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_what_is_not_json_is_refused(place, value):
    for odd in (value, [value, math.nan]):
        with pytest.raises(TypeError, match="JSON serializable"):
            row_bytes(
                PLACES[place](odd), {"quality": SCORED}, "quality", passed=None, submissions={}
            )


@pytest.mark.parametrize("place", [place for place in GRADE_PLACES if place != "item score"])
@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_a_grade_that_is_not_json_is_refused(place, value):
    grade = GRADE_PLACES[place](value)
    with pytest.raises(TypeError, match="JSON serializable"):
        row_bytes(Sample(id="a"), {"quality": grade}, "quality", passed=None, submissions={})
    with pytest.raises(TypeError, match="JSON serializable"):
        grade_to_json(grade)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({2: "a", 10: "b"}, {"2": "a", "10": "b"}),
        ({None: 1, True: 2, 1.5: 3}, {"None": 1, "True": 2, "1.5": 3}),
        (collections.OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (types.MappingProxyType({"b": [1], "a": 2}), {"a": 2, "b": [1]}),
        ((1, (2, 3)), [1, [2, 3]]),
        (Text("t"), "t"),
        (Size.BIG, 3),
        (Colour.RED, "red"),
        (Note(z=1), {"a": 1, "b": None, "z": 1}),
        (Note(), {"a": 1, "b": None}),
        (True, True),
        (10**300, 10**300),
        (
            {"\uffff": 1, "\U0001f600": 2, "Z": 3, "a": 4},
            {"\uffff": 1, "\U0001f600": 2, "Z": 3, "a": 4},
        ),
    ],
)
def test_odd_kinds_of_data_have_one_form(value, data):
    for beside in (0, math.nan, "\ud800"):
        assert written(PLACES["usage"]([value, beside]))["agent_usage"][0] == data
        found = written(Sample(id="a"), {"quality": GRADE_PLACES["metadata"]([value, beside])})
        assert found["grade"]["metadata"]["x"][0] == data
        found = written(Sample(id="a"), {"quality": GRADE_PLACES["expected"]([value, beside])})
        assert found["grade"]["reasons"][0]["expected"][0] == data


def test_too_deep_is_a_recursion_error():
    value = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(RecursionError):
        written(PLACES["usage"](value))
    with pytest.raises(RecursionError):
        encode(value)


def test_line_ends_inside_texts_are_escaped():
    """A row is one line, whatever it says; characters that end lines elsewhere stay as they are."""
    text = "a\nb\r\x0b\u2028\x85"
    sample = Sample(id=text, text=text, calls=(ToolCall(name=text, arguments={text: text}),))
    found = written(sample)
    assert (found["sample"]["id"], found["predicted"]["calls"]) == (
        text,
        [{"name": text, "arguments": {text: text}}],
    )


def test_objects_met_again_are_told_from_their_likes():
    for round_ in range(3):
        shared = Expectation(calls=(ToolCall(name=f"again {round_}", arguments={"n": round_}),))
        grade = Grade(score=0.5, counts={"n": round_})
        for number in range(1500):
            own_one = Expectation(text=f"{round_} {number}")
            own_grade = Grade(score=number / 1500, counts={"n": number})
            for expected, held in ((shared, grade), (own_one, own_grade)):
                line = row_bytes(
                    Sample(id="x", expected=expected), {"g": held}, "g", passed=None, submissions={}
                )
                row = json.loads(line)
                assert row["grade"]["score"] == held.score
                assert row["grade"]["counts"] == held.counts
                assert row["expected"]["text"] == expected.text
                assert (row["expected"]["calls"] is None) == (expected is own_one)
