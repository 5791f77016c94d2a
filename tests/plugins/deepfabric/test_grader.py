"""Verdicts per sample, row by row of the rules, in both profiles."""

import pickle

import attrs
import pytest

from gradestack import (
    Expectation,
    Fault,
    Outcome,
    Sample,
    Status,
    ToolCall,
    ToolSpec,
    testing,
)
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.schemas import convert, values_equal

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])

# (situation, expected call, call made, verdicts documented, verdicts upstream); the tools are f(a: string, required),
# g(n: integer, required) and h without parameters.
SITUATIONS = [
    ("right", ("f", {"a": "x"}), ("f", {"a": "x"}), (1, 1, 1), (1, 1, 1)),
    ("right with other values", ("f", {"a": "x"}), ("f", {"a": "y"}), (1, 1, 1), (1, 1, 1)),
    ("wrong but known tool, arguments fit that tool", ("f", {"a": "x"}), ("g", {"n": 1}), (0, 1, 0), (0, 1, 0)),
    ("wrong but known tool, arguments do not fit it", ("f", {"a": "x"}), ("g", {"a": "x"}), (0, 0, 0), (0, 0, 0)),
    ("invented tool, equal arguments", ("f", {"a": "X"}), ("zz", {"a": " x"}), (0, 0, 0), (0, 1, 0)),
    ("invented tool, other arguments", ("f", {"a": "x"}), ("zz", {"a": "y"}), (0, 0, 0), (0, 0, 0)),
    ("no call, arguments expected", ("f", {"a": "x"}), None, (0, 0, 0), (0, 0, 0)),
    ("no call, no arguments expected", ("h", {}), None, (0, 0, 0), (0, 0, 0)),
    ("required arguments missing, none expected", ("f", {}), ("f", {}), (1, 0, 0), (1, 1, 1)),
    ("required arguments missing, some expected", ("f", {"a": "x"}), ("f", {}), (1, 0, 0), (1, 0, 0)),
    ("no arguments expected, some made", ("f", {}), ("f", {"a": "x"}), (1, 1, 1), (1, 1, 1)),
    ("argument nobody knows", ("f", {"a": "x"}), ("f", {"a": "x", "b": 1}), (1, 1, 1), (1, 1, 1)),
    ("wrong type", ("f", {"a": "x"}), ("f", {"a": 1}), (1, 0, 0), (1, 0, 0)),
    ("null argument", ("f", {"a": "x"}), ("f", {"a": None}), (1, 0, 0), (1, 0, 0)),
    ("no parameters at all", ("h", {}), ("h", {}), (1, 1, 1), (1, 1, 1)),
    ("name in another case", ("f", {"a": "x"}), ("F", {"a": "x"}), (0, 0, 0), (0, 1, 0)),
    ("name with a space", ("f", {"a": "x"}), ("f ", {"a": "x"}), (0, 0, 0), (0, 1, 0)),
    ("invented tool, neither side has arguments", ("h", {}), ("zz", {}), (0, 0, 0), (0, 1, 0)),
    ("abstention", None, None, (1, 1, 1), (0, 0, 0)),
    ("a call where none was expected", None, ("h", {}), (0, 0, 0), (0, 0, 0)),
]


@pytest.fixture
def tools(df):
    return [df.tool("f", ["a"], a="string"), df.tool("g", ["n"], n="integer"), df.tool("h")]


@pytest.mark.parametrize(
    ("expected", "made", "documented", "upstream"), [row[1:] for row in SITUATIONS], ids=[r[0] for r in SITUATIONS]
)
def test_situations(df, tools, expected, made, documented, upstream):
    """Every situation has the verdicts of its profile, and execution needs both of the others."""
    record, reply = df.record(expected, tools), df.reply(made)
    assert df.verdict(df.grade(record, reply)) == documented
    assert df.verdict(df.grade(record, reply, "upstream")) == upstream


VALUES = [
    ({"a": "Ab "}, {"a": "aB"}, True),
    ({"a": "a b"}, {"a": "ab"}, False),
    ({"a": 1}, {"a": 1.0000005}, True),
    ({"a": 1}, {"a": 1.00001}, False),
    ({"a": True}, {"a": 1}, True),
    ({"a": False}, {"a": 0.0}, True),
    ({"a": "1"}, {"a": 1}, False),
    ({"a": [1]}, {"a": [True]}, True),
    ({"a": ["x"]}, {"a": ["X"]}, False),
    ({"a": {"b": 1}}, {"a": {"b": 1.0}}, True),
    ({"a": 1}, {"b": 1}, False),
    ({"a": 1}, {"a": 1, "b": 2}, False),
    ({"a": 1}, {}, False),
    ({"a": float("nan")}, {"a": 5}, True),
    ({"a": float("inf")}, {"a": float("inf")}, True),
    ({"a": float("inf")}, {"a": 5}, False),
    ({"a": 1}, {"a": None}, False),
]


@pytest.mark.parametrize(("expected", "made", "equal"), VALUES)
def test_comparison_by_value(df, expected, made, equal):
    """Where upstream compares values: text without case and space, numbers within 1e-6, the rest as Python does."""
    assert values_equal(expected, made) is equal
    record = df.record(("f", expected), [])
    assert df.verdict(df.grade(record, df.reply(("f", made)), "upstream")) == (1, int(equal), int(equal))


REASONS = [
    (("f", {"a": "x"}), ("g", {"n": 1}), [("wrong_tool", "", "f", "g")]),
    (("f", {"a": "x"}), ("f", {}), [("missing_argument", "/a", "string", None)]),
    (("f", {"a": "x"}), ("f", {"a": 1}), [("wrong_type", "/a", "string", 1)]),
    (("f", {"a": "x"}), None, [("missing_call", "", None, None)]),
    (None, ("h", {}), [("unexpected_call", "", None, "h")]),
]


@PROFILES
@pytest.mark.parametrize(("expected", "made", "reasons"), REASONS, ids=[row[2][0][0] for row in REASONS])
def test_reasons(df, tools, profile, expected, made, reasons):
    """A lost point says why: a code, a pointer into the arguments, what was wanted and what was there."""
    grade = df.grade(df.record(expected, tools), df.reply(made), profile)
    if profile == "upstream" and expected is None:
        assert [reason.code for reason in grade.reasons] == ["never_rewarded"]
        return
    words = {"str": "string"} if profile == "upstream" else {}
    found = [
        (reason.code, reason.pointer, words.get(reason.expected, reason.expected or None), reason.actual or None)
        for reason in grade.reasons
    ]
    assert found == reasons
    assert (grade.gold, grade.label) == (expected and expected[0], made and made[0])


# Samples of other formats

CALL = ToolCall(name="f", arguments={"a": "x"})
SPECS = (
    ToolSpec(name="f", parameters={"properties": {"a": {"type": "string"}}, "required": ["a"]}),
    ToolSpec(name="bare"),
)


def foreign(**fields):
    return Sample(id="s", **{"calls": (CALL,), "expected": Expectation(calls=(CALL,)), "tools": SPECS, **fields})


@PROFILES
@pytest.mark.parametrize(
    ("fields", "outcome", "code"),
    [
        ({"expected": Expectation()}, Outcome.SKIPPED, "no_reference"),
        ({"expected": Expectation(), "status": Status.FAILED}, Outcome.SKIPPED, "no_reference"),
        ({"calls": None}, Outcome.SKIPPED, "calls_not_recorded"),
        ({}, Outcome.GRADED, None),
        ({"calls": (CALL, ToolCall(name="g"))}, Outcome.GRADED, None),
        ({"expected": Expectation(calls=(CALL, ToolCall(name="g")))}, Outcome.GRADED, None),
    ],
)
def test_samples_of_other_formats(df, profile, fields, outcome, code):
    """The first calls and the tools suffice; without a reference or recorded calls the sample is skipped, never 0."""
    grade = DeepFabric(profile=profile).grade(foreign(**fields))
    assert grade.outcome is outcome
    assert (grade.score, df.verdict(grade)) == ((None, None) if code else (1.0, (1, 1, 1)))
    assert [reason.code for reason in grade.reasons] == ([code] if code else [])


@PROFILES
def test_failed_runs_of_other_formats(df, profile):
    """A run that ended in an error is wrong in all parts, with its own fault."""
    fault = Fault(category="target", code="timeout", message="too slow")
    grade = DeepFabric(profile=profile).grade(foreign(status=Status.FAILED, error=fault, calls=None))
    assert (grade.outcome, grade.score, grade.fault, grade.counts["errors"]) == (Outcome.FAILED, None, fault, 1)
    assert DeepFabric(profile=profile).grade(foreign(status=Status.FAILED)).fault.code == "failed_run"


class Number(int):
    """A number that is not plain JSON."""


def test_values_that_are_not_plain_json_count_by_their_class(df):
    """Samples made by other code may hold subclasses of the JSON classes."""
    specs = convert([df.tool("f", a="integer")], "documented")
    for value, right in ((Number(3), 1.0), ((1, 2), 0.4)):
        made = ToolCall(name="f", arguments={"a": value})
        assert DeepFabric().grade(foreign(calls=(made,), tools=specs)).score == right


@PROFILES
def test_contract(profile):
    """The conformance kit finds nothing: pure, picklable, deterministic, reads only what it needs."""
    testing.check_grader(DeepFabric(profile=profile))
    testing.check_grader(DeepFabric(profile=profile, nested=True, check_enums=True, unknown_arguments="wrong"))
    grader = DeepFabric(profile=profile)
    grader.grade(foreign())
    copy = pickle.loads(pickle.dumps(grader))  # noqa: S301  our own bytes
    assert copy == grader
    assert attrs.asdict(copy) == attrs.asdict(grader)
