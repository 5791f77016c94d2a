"""BFCL's rules for calls.

Every error type from a prediction that was right before.
"""

import pytest

from gradestack import Expectation, ExpectedCall, Outcome, Rule, Sample, ToolCall, ToolSpec
from gradestack_plugins.bfcl.side_files import expectation
from gradestack_plugins.tool_calls.bfcl_ast import BfclAst
from tests.core.outcomes import data

DATA = data(__file__, "bfcl_ast.yaml")

PROPERTIES = DATA["properties"]
TOOLS = tuple(
    ToolSpec(name=name, parameters={"type": "dict", "properties": PROPERTIES, "required": ["s"]})
    for name in "fg"
)
RULES = {
    "s": Rule(any_of=("Oslo", "Christiania")),
    "n": Rule(any_of=(1, 2)),
    "l": Rule(any_of=(["a", "b"],)),
    "o": Rule(any_of=({"k": "v"},)),
    "free": Rule(optional=True, any_of=("",)),
    "lo": Rule(any_of=([{"k": 1}],)),
}
ONE = (ExpectedCall(name="f", rules=RULES),)


def sample(calls, expected=ONE, tools=TOOLS[:1], **more):
    """Return a sample of calls given as (name, arguments).

    Arguments that are a text cannot be decoded.
    """
    made = tuple(
        ToolCall(name=name, arguments=None, raw_arguments=arguments)
        if isinstance(arguments, str)
        else ToolCall(name=name, arguments=arguments)
        for name, arguments in calls
    )
    return Sample(id="s", expected=Expectation(calls=expected), calls=made, tools=tools, **more)


def error_or_score(subject):
    """Return the error type of a sample, 1.0 where it is right, or the code of why there is no
    score.
    """
    grade = BfclAst().grade(subject)
    if grade.outcome is not Outcome.GRADED:
        if grade.fault:
            return grade.fault.code
        return grade.reasons[0].code
    assert grade.passed is (grade.score == 1.0)
    if grade.passed:
        assert grade.reasons == ()
        metadata = dict(grade.metadata)
        assert metadata == {}
        return 1.0
    (reason,) = grade.reasons
    assert grade.metadata == {"error_type": reason.code}
    return reason.code


@pytest.mark.parametrize(
    ("allowed", "given", "expected"), DATA["choices_inside_objects_are_those_of_the_program"]
)
def test_choices_inside_objects_are_those_of_the_program(allowed, given, expected):
    """An accepted ``""`` is a value of its key as well; errors are those of all values together."""
    name = "free" if isinstance(allowed, dict) else "lo"
    reference = expectation([{"f": {"s": ["Oslo"], name: [allowed]}}])
    subject = sample([("f", {"s": "Oslo", name: given})], reference.calls)
    assert error_or_score(subject) == expected
