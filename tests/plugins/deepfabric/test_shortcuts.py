"""What is known of tools changes nothing."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Expectation, Fault, Sample, Status, ToolCall, ToolSpec
from gradestack_plugins.deepfabric import schemas
from gradestack_plugins.deepfabric.grader import DeepFabric
from tests.conftest import examples

NAMES = st.sampled_from(["f", "g", ""])
LEAVES = st.sampled_from([None, True, 1, 1.0, "1", " X", "x", [], {}, float("nan"), 10**400])
ARGUMENTS = st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=3)
CALLS = st.lists(
    st.builds(ToolCall, name=NAMES, arguments=ARGUMENTS)
    | st.builds(ToolCall, name=NAMES, arguments=st.none(), raw_arguments=st.sampled_from(["{", None])),
    max_size=2,
).map(tuple)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", ["string", "null"], "?", 3, None])
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(st.sampled_from("abc"), st.builds(dict, type=TYPES) | st.none(), max_size=3),
        "required": st.lists(st.sampled_from("abd"), max_size=2),
    },
)
TOOLS = st.lists(st.builds(ToolSpec, name=NAMES, parameters=st.none() | SCHEMAS), max_size=3).map(tuple)
SAMPLES = st.builds(
    Sample,
    id=NAMES,
    calls=st.none() | CALLS,
    tools=st.none() | TOOLS,
    expected=st.builds(Expectation, calls=st.none() | CALLS),
    status=st.sampled_from([Status.OK, Status.OK, Status.FAILED]),
    error=st.none() | st.builds(Fault, category=st.just("data"), code=st.sampled_from(["processing_error", "x"])),
)
OPTIONS = [
    {},
    {"profile": "upstream"},
    {"unknown_arguments": "wrong", "check_enums": True, "nested": True},
    {"profile": "upstream", "weights": {"tool_selection": 1e300, "parameter_accuracy": -3.0}},
]


def forget():
    """Let nothing be known of tools."""
    for known in schemas._known.values():
        known.clear()


@pytest.mark.parametrize("options", OPTIONS, ids=json.dumps)
@settings(max_examples=examples(40), deadline=None)
@given(samples=st.lists(SAMPLES, min_size=1, max_size=5))
def test_a_grader_that_has_seen_much_grades_like_a_new_one(options, samples):
    """Whatever the order, and with tools known and unknown."""
    warm = DeepFabric(**options)
    for sample in [*samples, *reversed(samples)]:
        grade = warm.grade(sample)
        forget()
        assert repr(grade) == repr(DeepFabric(**options).grade(sample))


def test_what_is_remembered_does_not_grow_without_end(monkeypatch):
    """Grades are right when more is met than is kept."""
    monkeypatch.setattr(schemas, "_MOST_TOOLS", 3)
    warm = DeepFabric()
    for number in [*range(20), *range(20)]:
        call = ToolCall(name=f"f{number}", arguments={"a": number})
        kind = "integer" if number % 2 else "string"
        tool = ToolSpec(name=call.name, parameters={"properties": {"a": {"type": kind}}})
        sample = Sample(id="t", calls=(call,), tools=(tool,), expected=Expectation(calls=(call,)))
        assert warm.grade(sample).score == (1.0 if number % 2 else 0.4)
    assert 0 < len(schemas._known["documented"]) <= 3
