"""Rows as bytes: the same data as the row put together key by key, whatever samples and grades hold."""

import collections
import datetime as dt
import decimal
import enum
import json
import math
import types
import uuid

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack.model import (
    ABSENT,
    Expectation,
    Fault,
    Grade,
    Item,
    Message,
    Outcome,
    Reason,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
)
from gradestack.rowbytes import grade_to_json, row_bytes, sample_row
from gradestack.rowform import encode

# an independent, slow reference


def pure(value):
    """Return a value as data: objects become mappings without absent fields, NaN and infinities texts."""
    if isinstance(value, enum.Enum):
        return pure(value.value)
    if attrs.has(type(value)):
        pairs = [(field.name, getattr(value, field.name)) for field in attrs.fields(type(value))]
        return {name: pure(item) for name, item in pairs if item is not ABSENT}
    if isinstance(value, dict | types.MappingProxyType):
        return {str(key): pure(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [pure(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(float(value))]
    return value


def only(given):
    """Return a mapping without what says nothing."""
    return {key: value for key, value in given.items() if value not in (None, "", {}, []) or value is False}


def reason_of(reason):
    said = {"code": reason.code, **only({name: getattr(reason, name) for name in ("pointer", "subject", "message")})}
    values = {name: getattr(reason, name) for name in ("expected", "actual")}
    return said | {name: pure(value) for name, value in values.items() if value is not ABSENT}


def shared_of(graded):
    found = only({name: pure(getattr(graded, name)) for name in ("counts", "parts")})
    found |= {name: getattr(graded, name) for name in ("label", "gold") if getattr(graded, name) is not None}
    if graded.reasons:
        found["reasons"] = [reason_of(reason) for reason in graded.reasons]
    if graded.fault is not None:
        found["fault"] = pure(graded.fault)
    return found


def item_of(item):
    found = {"id": item.id, "outcome": item.outcome.value, "score": pure(item.score), **shared_of(item)}
    return found | ({"metadata": pure(item.metadata)} if item.metadata else {})


def grade_of(grade):
    fault = grade.fault
    named = {} if fault is None else {"error": fault.message, "error_type": fault.type or fault.code}
    found = {
        **shared_of(grade),
        "score": 0.0 if grade.score is None else grade.score,
        "state": grade.outcome.value,
        "rationale": grade.rationale,
        "metadata": named | pure(grade.metadata),
    }
    found |= {} if grade.passed is None else {"passed": grade.passed}
    return found | ({"items": [item_of(item) for item in grade.items]} if grade.items else {})


def chat_call(call):
    arguments = call.raw_arguments if call.raw_arguments is not None else pure(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def message_of(message):
    found = {"role": message.role, "content": pure(message.content)}
    if message.tool_calls:
        found["tool_calls"] = [chat_call(call) for call in message.tool_calls]
    names = ("name", "tool_call_id")
    return found | {name: getattr(message, name) for name in names if getattr(message, name) is not None}


def calls_of(calls):
    found = None if calls is None else []
    for call in calls or ():
        row = {"name": call.name, "arguments": pure(call.arguments)}
        row |= {"raw_arguments": call.raw_arguments} if call.arguments is None else {}
        found.append(row | ({} if call.error is None else {"error": call.error}))
    return found


def reference(sample, grades, headline, passed, submissions):
    """Return the row, spelled out."""
    expected = sample.expected
    said = [submissions.get(headline), sample.text, sample.label, ""]
    written = {key: grade_of(grade) for key, grade in grades.items()}
    truth = expected.text if expected.text is not None else expected.label
    return {
        "sample": {"id": sample.id, "input": pure(sample.input), "ground_truth": pure(truth)},
        "submission": next(text for text in said if text is not None),
        "submissions": dict(submissions) or None,
        "trajectory": [[message_of(message) for message in turn] for turn in sample.turns],
        "agent_id": sample.agent_id,
        "agent_usage": pure(sample.usage),
        "model_name": sample.model,
        "grade": written[headline],
        "grades": written,
        "state": grades[headline].outcome.value,
        "passed": passed,
        "run": sample.run,
        "status": sample.status.value,
        "error": pure(sample.error),
        "facets": pure(sample.facets),
        "source": pure(sample.source),
        "recorded": pure(sample.recorded),
        "tools": None if sample.tools is None else [tool.name for tool in sample.tools],
        "expected": {
            "calls": calls_of(expected.calls),
            "label": expected.label,
            "text": pure(expected.text),
            "plan": pure(expected.plan),
        },
        "predicted": {
            "calls": calls_of(sample.calls),
            "label": sample.label,
            "plan": pure(sample.plan),
            "text": sample.text,
        },
    }


# hypothesis samples and grades

TEXTS = st.text(max_size=5) | st.sampled_from(["", "\ud800", "é", "null", "\x00\x7f\u2028", '"\\/'])
NUMBERS = (
    st.integers() | st.floats() | st.sampled_from([10**40, -(2**63) - 1, 1e16, 1e-7, 1e22, -0.0, 5e-324, math.nan])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3) | st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
MAYBE = st.none() | TEXTS
FAULTS = st.none() | st.builds(Fault, category=TEXTS, code=TEXTS, message=TEXTS, type=TEXTS, component=TEXTS)
CALLS = st.builds(
    ToolCall, name=TEXTS, arguments=st.none() | OBJECTS, raw_arguments=MAYBE, id=MAYBE, result=VALUES, error=MAYBE
)
SOME_CALLS = st.lists(CALLS, max_size=2).map(tuple)
MESSAGES = st.builds(Message, role=TEXTS, content=VALUES, tool_calls=SOME_CALLS, name=MAYBE, tool_call_id=MAYBE)
ANSWERS = st.none() | TEXTS | st.lists(TEXTS, max_size=2).map(tuple)
SAMPLES = st.builds(
    Sample,
    id=TEXTS,
    model=MAYBE,
    run=st.none() | st.integers() | TEXTS,
    input=ANSWERS,
    turns=st.lists(st.lists(MESSAGES, max_size=2).map(tuple), max_size=2).map(tuple),
    calls=st.none() | SOME_CALLS,
    label=MAYBE,
    text=MAYBE,
    plan=VALUES,
    tools=st.none() | st.lists(st.builds(ToolSpec, name=TEXTS), max_size=2).map(tuple),
    expected=st.builds(Expectation, calls=st.none() | SOME_CALLS, label=MAYBE, text=ANSWERS, plan=VALUES),
    recorded=OBJECTS,
    status=st.sampled_from(Status),
    error=FAULTS,
    agent_id=MAYBE,
    usage=VALUES,
    facets=OBJECTS,
    source=st.none() | st.builds(Source, file=TEXTS, ordinal=st.integers(0, 9), line=st.none() | st.integers(0, 9)),
)


class Colour(enum.Enum):
    """A value of a grader's own."""

    RED = "red"


class Size(enum.IntEnum):
    """A number of a grader's own."""

    BIG = 3


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()


@attrs.frozen
class Note:
    """An object of a grader's own, its fields not in the order of their names."""

    z: object = ABSENT
    b: object = None
    a: object = 1


OWN = VALUES | st.sampled_from([Colour.RED, Size.BIG, Text("t"), Note(), Note(z=Note(z=math.nan)), Outcome.GRADED])
METADATA = st.dictionaries(TEXTS, OWN | st.lists(OWN, max_size=2), max_size=3)
COUNTS = st.dictionaries(TEXTS, st.integers(), max_size=2)
REASONS = st.lists(
    st.builds(
        Reason,
        code=TEXTS,
        pointer=TEXTS,
        expected=st.just(ABSENT) | OWN,
        actual=st.just(ABSENT) | VALUES,
        subject=TEXTS,
        message=TEXTS,
    ),
    max_size=2,
).map(tuple)
ITEMS = st.builds(
    Item,
    id=TEXTS,
    outcome=st.sampled_from(Outcome),
    score=st.none() | st.floats(),
    label=MAYBE,
    gold=MAYBE,
    counts=COUNTS,
    parts=st.dictionaries(TEXTS, st.none() | st.floats(), max_size=2),
    reasons=REASONS,
    fault=FAULTS,
    metadata=METADATA,
)
GRADES = st.builds(
    Grade,
    outcome=st.sampled_from(Outcome),
    score=st.none() | st.floats(-1, 1) | st.integers(0, 1),
    passed=st.none() | st.booleans(),
    counts=COUNTS,
    parts=st.dictionaries(TEXTS, st.none() | st.floats(-1, 1), max_size=2),
    label=MAYBE,
    gold=MAYBE,
    items=st.lists(ITEMS, max_size=2).map(tuple),
    fault=FAULTS,
    reasons=REASONS,
    rationale=TEXTS,
    metadata=METADATA,
)
KEYS = st.sampled_from(["quality", "b", "\ud800", "é"])
SCORED = Grade(score=0.5)


def ordered(pairs):
    """Check the order of the keys of one object, and that none is repeated."""
    keys = [key for key, _ in pairs]
    assert keys == sorted(keys)
    assert len(keys) == len(set(keys))
    return dict(pairs)


def parsed(line):
    """Return the data of a line, checked for its form: one line of UTF-8, keys sorted at every level."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1

    def refuse(word):
        raise AssertionError(word)

    return json.loads(line.decode("utf-8"), object_pairs_hook=ordered, parse_constant=refuse)


def written(sample, grades=None, headline="quality", passed=None, submissions=None):
    """Return the row as read back from its bytes."""
    grades = {"quality": SCORED} if grades is None else grades
    return parsed(row_bytes(sample, grades, headline, passed=passed, submissions=submissions or {}))


def same(left, right):
    """Compare data with the types of its numbers; a mapping's order does not count."""
    form = {"sort_keys": True, "ensure_ascii": True}
    assert json.dumps(left, **form) == json.dumps(right, **form)


@settings(max_examples=120, deadline=None)
@given(sample=SAMPLES, passed=st.none() | st.booleans())
def test_a_row_says_what_the_sample_says(sample, passed):
    """For any sample: bytes, data and the row spelled out are the same."""
    grades = {"quality": SCORED}
    spelled = reference(sample, grades, "quality", passed, {})
    same(written(sample, grades, passed=passed), spelled)
    same(pure(sample_row(sample, grades, "quality", passed=passed)), spelled)


@settings(max_examples=120, deadline=None)
@given(grades=st.dictionaries(KEYS, GRADES, min_size=1, max_size=2), data=st.data())
def test_a_row_says_what_the_grades_say(grades, data):
    """For any grades, headline and submissions; each grade alone is written in the same form."""
    headline = data.draw(st.sampled_from(sorted(grades)))
    submissions = data.draw(st.dictionaries(st.sampled_from(sorted(grades)), TEXTS, max_size=2))
    sample = Sample(id="a", text=data.draw(MAYBE), label=data.draw(MAYBE))
    same(
        written(sample, grades, headline, submissions=submissions),
        reference(sample, grades, headline, None, submissions),
    )
    for grade in grades.values():
        same(pure(grade_to_json(grade)), grade_of(grade))
        same(json.loads(encode(grade_to_json(grade)), object_pairs_hook=ordered), grade_of(grade))


PLACES = {
    "arguments": lambda value: Sample(id="a", calls=(ToolCall(name="f", arguments={"x": value}),)),
    "expected arguments": lambda value: Sample(
        id="a", expected=Expectation(calls=(ToolCall(name="f", arguments={"x": value}),))
    ),
    "plan": lambda value: Sample(id="a", plan=value),
    "expected plan": lambda value: Sample(id="a", expected=Expectation(plan=[value])),
    "usage": lambda value: Sample(id="a", usage=value),
    "facets": lambda value: Sample(id="a", facets={"x": value}),
    "recorded": lambda value: Sample(id="a", recorded={"x": {"y": value}}),
    "content": lambda value: Sample(id="a", turns=((Message(role="user", content=[value]),),)),
    "chat call": lambda value: Sample(
        id="a", turns=((Message(role="a", tool_calls=(ToolCall(name="f", arguments={"x": value}),)),),)
    ),
}
GRADE_PLACES = {
    "counts": lambda value: Grade(score=1.0, counts={"n": value}),
    "metadata": lambda value: Grade(score=1.0, metadata={"x": value}),
    "expected": lambda value: Grade(score=1.0, reasons=(Reason(code="c", expected=value),)),
    "actual": lambda value: Grade(score=1.0, reasons=(Reason(code="c", actual=[value]),)),
    "item score": lambda value: Grade(score=1.0, items=(Item(id="0", score=value),)),
    "item parts": lambda value: Grade(score=1.0, items=(Item(id="0", parts={"p": value}),)),
    "item metadata": lambda value: Grade(score=1.0, items=(Item(id="0", metadata={"p": [value]}),)),
    "item reason": lambda value: Grade(score=1.0, items=(Item(id="0", reasons=(Reason(code="c", actual=value),)),)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, [1.0, math.nan], {"a": (math.inf,)}, [0.5] * 40 + [math.nan]]
)
def test_nothing_in_a_sample_becomes_null(place, value):
    """NaN and infinities are written as texts, wherever they are."""
    sample = PLACES[place](value)
    same(written(sample), reference(sample, {"quality": SCORED}, "quality", None, {}))
    assert b"NaN" in json.dumps(written(sample)).encode() or b"Infinity" in json.dumps(written(sample)).encode()


@pytest.mark.parametrize("place", GRADE_PLACES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nothing_in_a_grade_becomes_null(place, value):
    """Neither in numbers the kernel does not check."""
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
    """Sets, bytes, dates and the like have no form of their own in a row, in company of NaN or not."""
    for odd in (value, [value, math.nan]):
        with pytest.raises(TypeError, match="JSON serializable"):
            row_bytes(PLACES[place](odd), {"quality": SCORED}, "quality", passed=None, submissions={})


@pytest.mark.parametrize("place", [place for place in GRADE_PLACES if place != "item score"])
@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_a_grade_that_is_not_json_is_refused(place, value):
    """In its row and alone."""
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
        ({"\uffff": 1, "\U0001f600": 2, "Z": 3, "a": 4}, {"\uffff": 1, "\U0001f600": 2, "Z": 3, "a": 4}),
    ],
)
def test_odd_kinds_of_data_have_one_form(value, data):
    """Whatever stands beside them, in samples and in grades."""
    for beside in (0, math.nan, "\ud800"):
        assert written(PLACES["usage"]([value, beside]))["agent_usage"][0] == data
        found = written(Sample(id="a"), {"quality": GRADE_PLACES["metadata"]([value, beside])})
        assert found["grade"]["metadata"]["x"][0] == data
        found = written(Sample(id="a"), {"quality": GRADE_PLACES["expected"]([value, beside])})
        assert found["grade"]["reasons"][0]["expected"][0] == data


def test_too_deep_is_a_recursion_error():
    """Not a crash, and not a row nobody can read."""
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
    assert (found["sample"]["id"], found["predicted"]["calls"]) == (text, [{"name": text, "arguments": {text: text}}])


def test_objects_met_again_are_told_from_their_likes():
    """Whatever is kept of one grade or reference is not taken for another's, however many there are."""
    for round_ in range(3):
        shared = Expectation(calls=(ToolCall(name=f"again {round_}", arguments={"n": round_}),))
        grade = Grade(score=0.5, counts={"n": round_})
        for number in range(6000):
            own_one = Expectation(text=f"{round_} {number}")
            own_grade = Grade(score=number / 6000, counts={"n": number})
            for expected, held in ((shared, grade), (own_one, own_grade)):
                line = row_bytes(Sample(id="x", expected=expected), {"g": held}, "g", passed=None, submissions={})
                row = json.loads(line)
                assert row["grade"]["score"] == held.score
                assert row["grade"]["counts"] == held.counts
                assert row["expected"]["text"] == expected.text
                assert (row["expected"]["calls"] is None) == (expected is own_one)
