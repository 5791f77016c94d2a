"""The data model: what is told apart, and the contract of a grade's numbers."""

import msgspec
import pytest

from gradestack import (
    BadRecord,
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Outcome,
    Reason,
    Rule,
    Sample,
    Source,
    ToolCall,
    Usage,
    argument_at,
    check_grade,
    failed,
    model,
    replace,
    skipped,
)
from tests.core.outcomes import data

DATA = data(__file__, "model.yaml")

KINDS = [value for value in vars(model).values() if getattr(value, "__struct_fields__", ())]


@pytest.mark.parametrize("kind", KINDS)
def test_data_is_frozen_and_named(kind):
    fields = msgspec.structs.fields(kind)
    made = kind(**{field.name: "x" for field in fields if field.required})
    name = kind.__struct_fields__[0]
    with pytest.raises(AttributeError, match="immutable"):
        setattr(made, name, "y")
    assert not hasattr(made, "__dict__")
    with pytest.raises(TypeError):
        kind("x")


def test_no_reference_and_an_empty_one_differ():
    """None is no reference, () is the reference of calling nothing."""
    sample = Sample(id="a")
    assert sample.expected.calls is None
    expectation = Expectation(calls=())
    assert expectation != Expectation()
    assert Sample(id="a").calls is None


WHOLE = Sample(
    id="a",
    calls=(ToolCall(name="f", arguments={"x": [1]}, status="ok", seconds=1.5),),
    expected=Expectation(
        calls=(ExpectedCall(name="f", rules={"x": Rule(any_of=(1, "1"))}, optional=True),)
    ),
    usage=Usage(requests=1),
    trace={"trace_id": "t"},
)


def test_native_data_does_not_take_part_in_equality():
    """Two readings of a record are equal whatever their families attached."""
    assert replace(WHOLE, native=object()) == replace(WHOLE, native=object())
    shown = repr(replace(WHOLE, native=object()))
    assert "native=" not in shown
    source = Source(file="f")
    bad_record = BadRecord(source=source, reason="r", native=1)
    expected = BadRecord(source=source, reason="r", native=2)
    assert bad_record == expected


@pytest.mark.parametrize(
    "changes",
    [
        *DATA["samples_that_differ_in_any_other_field_are_not_equal"],
        {"expected": Expectation(calls=(ExpectedCall(name="f"),))},
        {"usage": Usage(requests=2)},
    ],
)
def test_samples_that_differ_in_any_other_field_are_not_equal(changes):
    assert replace(WHOLE, **changes) != WHOLE
    assert WHOLE.id != WHOLE
    source = Source(file="f")
    bad_record = BadRecord(source=source, reason="r")
    assert bad_record != WHOLE


def test_made_calls_may_be_given_as_expected_ones():
    """Name and arguments are taken, and the text of arguments only where there are none."""
    tool_call = ToolCall(
        name="f", arguments={"x": 1}, raw_arguments='{"x": 1}', id="1", result="r", turn=2
    )
    made = (
        tool_call,
        ToolCall(name="g", arguments=None, raw_arguments="{"),
    )
    expected_call = ExpectedCall(name="f", arguments={"x": 1})
    wanted = (
        expected_call,
        ExpectedCall(name="g", arguments=None, raw_arguments="{"),
    )
    expectation = Expectation(calls=made)
    assert expectation.calls == wanted
    assert Expectation(calls=wanted).calls is wanted
    assert replace(Expectation(), calls=made).calls == wanted


@pytest.mark.parametrize(("call", "plain"), DATA["plain_calls"])
def test_a_plain_call_is_a_name_and_arguments_to_compare(call, plain):
    assert msgspec.convert(call, ExpectedCall).plain is plain


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (Source(file="f.json", ordinal=3), "f.json record 3"),
        (Source(file="f.jsonl", ordinal=3, line=4), "f.jsonl:4"),
    ],
)
def test_a_source_reads_as_a_place(source, text):
    assert str(source) == text


def test_skipped_says_why_and_has_no_score():
    grade = skipped("no_tools", "the record has no tools")
    assert grade.outcome == Outcome.SKIPPED
    assert grade.score is None
    assert grade.rationale == "the record has no tools"
    reason = Reason(code="no_tools", message="the record has no tools")
    assert grade.reasons == (reason,)


def test_failed_carries_its_fault():
    fault = Fault(category="data", code="x")
    assert failed(fault).outcome == Outcome.FAILED
    assert failed(fault).score is None
    assert failed(fault).fault == fault
    assert failed(fault).rationale == "x"
    assert failed(replace(fault, message="m")).rationale == "m"


@pytest.mark.parametrize(
    ("grade", "problem"), [*DATA["broken_grades"], ({"score": 10**400}, "too large")]
)
def test_broken_grades_are_told_apart(grade, problem):
    outcome = grade.get("outcome", "graded")
    outcomes = map(str, Outcome)
    if outcome in {*outcomes}:
        outcome = Outcome(outcome)
    expected = check_grade(Grade(**{**grade, "outcome": outcome}))
    assert problem in expected


@pytest.mark.parametrize(
    ("pointer", "name"), [("/a/b", "a"), ("", ""), ("/a~1b/c", "a/b"), ("/~01", "~1"), ("x", "x")]
)
def test_an_argument_is_the_first_part_of_a_pointer(pointer, name):
    argument = argument_at(pointer)
    assert argument == name
