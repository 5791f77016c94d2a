"""Rows as bytes: the same data as the row put together key by key, whatever samples and grades
hold.
"""

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import (
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
    grade_to_json,
)
from gradestack.rows.write import encode
from tests.conftest import examples
from tests.core.row_reference import (
    SCORED,
    Colour,
    Note,
    Size,
    Text,
    grade_of,
    ordered,
    pure,
    reference,
    same,
    written,
)

ODD_TEXTS = ["", "\ud800", "é", "null", "\x00\x7f\u2028", '"\\/']
TEXTS = st.text(max_size=5) | st.sampled_from(ODD_TEXTS)
NUMBERS = (
    st.integers()
    | st.floats()
    | st.sampled_from([10**40, -(2**63) - 1, 1e16, 1e-7, 1e22, -0.0, 5e-324, math.nan])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS, inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
MAYBE = st.none() | TEXTS
FAULTS = st.none() | st.builds(
    Fault, category=TEXTS, code=TEXTS, message=TEXTS, type=TEXTS, component=TEXTS
)
CALLS = st.builds(
    ToolCall,
    name=TEXTS,
    arguments=st.none() | OBJECTS,
    raw_arguments=MAYBE,
    id=MAYBE,
    result=VALUES,
    error=MAYBE,
)
SOME_CALLS = st.lists(CALLS, max_size=2).map(tuple)
MESSAGES = st.builds(
    Message, role=TEXTS, content=VALUES, tool_calls=SOME_CALLS, name=MAYBE, tool_call_id=MAYBE
)
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
    expected=st.builds(
        Expectation, calls=st.none() | SOME_CALLS, label=MAYBE, text=ANSWERS, plan=VALUES
    ),
    recorded=OBJECTS,
    status=st.sampled_from(Status),
    error=FAULTS,
    agent_id=MAYBE,
    agent_usage=VALUES,
    facets=OBJECTS,
    source=st.none()
    | st.builds(
        Source,
        file=TEXTS,
        ordinal=st.integers(0, 9),
        line=st.none() | st.integers(0, 9),
        id=st.none() | st.integers(),
    ),
)


OWN = VALUES | st.sampled_from(
    [Colour.RED, Size.BIG, Text("t"), Note(), Note(z=Note(z=math.nan)), Outcome.GRADED]
)
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


@settings(max_examples=examples(120), deadline=None)
@given(sample=SAMPLES, passed=st.none() | st.booleans())
def test_a_row_says_what_the_sample_says(sample, passed):
    grades = {"quality": SCORED}
    spelled = reference(sample, grades, "quality", passed, {})
    same(written(sample, grades, passed=passed), spelled)


@settings(max_examples=examples(120), deadline=None)
@given(grades=st.dictionaries(KEYS, GRADES, min_size=1, max_size=2), data=st.data())
def test_a_row_says_what_the_grades_say(grades, data):
    headline = data.draw(st.sampled_from(sorted(grades)))
    submissions = data.draw(st.dictionaries(st.sampled_from(sorted(grades)), TEXTS, max_size=2))
    text = data.draw(MAYBE)
    label = data.draw(MAYBE)
    sample = Sample(id="a", text=text, label=label)
    same(
        written(sample, grades, headline, submissions=submissions),
        reference(sample, grades, headline, None, submissions),
    )
    for grade in grades.values():
        same(pure(grade_to_json(grade)), grade_of(grade))
        document = json.loads(encode(grade_to_json(grade)), object_pairs_hook=ordered)
        same(document, grade_of(grade))
