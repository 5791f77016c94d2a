"""Verdicts per sample, row by row of the rules, in both profiles."""

import pickle

import attrs
import pytest

from gradestack import testing
from gradestack.model import Expectation, Fault, Outcome, Sample, Status, ToolCall, ToolSpec
from gradestack_plugins.deepfabric.checks import pointer, values_equal
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.schemas import convert
from gradestack_plugins.deepfabric.weights import resolve

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])

# (situation, expected call, call made, verdicts documented, verdicts upstream); the tools are f(a: string, required) and
# g(n: integer, required) and h without parameters, unless the situation says otherwise.
SITUATIONS = [
    ("right", ("f", {"a": "x"}), ("f", {"a": "x"}), (1, 1, 1), (1, 1, 1)),
    ("right with other values", ("f", {"a": "x"}), ("f", {"a": "y"}), (1, 1, 1), (1, 1, 1)),
    ("wrong but known tool, arguments fit that tool", ("f", {"a": "x"}), ("g", {"n": 1}), (0, 1, 0), (0, 1, 0)),
    ("wrong but known tool, arguments do not fit it", ("f", {"a": "x"}), ("g", {"a": "x"}), (0, 0, 0), (0, 0, 0)),
    ("invented tool, equal arguments", ("f", {"a": "X"}), ("zz", {"a": " x"}), (0, 0, 0), (0, 1, 0)),
    ("invented tool, other arguments", ("f", {"a": "x"}), ("zz", {"a": "y"}), (0, 0, 0), (0, 0, 0)),
    ("no call, arguments expected", ("f", {"a": "x"}), None, (0, 0, 0), (0, 0, 0)),
    ("no call, no arguments expected", ("h", {}), None, (0, 0, 0), (0, 1, 0)),
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


@pytest.mark.parametrize("tools", [None, []], ids=["absent", "empty"])
@pytest.mark.parametrize(
    ("made", "upstream"),
    [
        (("f", {"a": " X"}), (1, 1, 1)),
        (("f", {"a": "y"}), (1, 0, 0)),
        (("g", {"a": "x"}), (0, 1, 0)),
        (None, (0, 0, 0)),
    ],
)
def test_without_tools(df, tools, made, upstream):
    """Upstream compares by value; documented skips without a snapshot, and knows no tool of an empty one."""
    record = df.record(("f", {"a": "x"}), **({} if tools is None else {"tools": tools}))
    assert df.verdict(df.grade(record, df.reply(made), "upstream")) == upstream
    grade = df.grade(record, df.reply(made))
    if tools is None:
        assert grade.outcome is Outcome.SKIPPED
        assert grade.reasons[0].code == "no_tools"
    else:
        assert df.verdict(grade) == (int(made is not None and made[0] == "f"), 0, 0)


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


def test_a_number_too_large_to_compare_is_a_processing_error(df):
    """Upstream fails on comparing whole numbers that no float can hold."""
    record = df.record(("f", {"a": 10**400}))
    grade = df.grade(record, df.reply(("f", {"a": 10**400})), "upstream")
    assert df.verdict(grade) == (0, 0, 0)
    assert grade.fault.message == "int too large to convert to float"
    assert grade.counts["errors"] == 1


@PROFILES
def test_errors_are_graded_wrong_and_counted(df, tools, profile):
    """A processing error has all parts wrong, score 0, its fault, and is no processed sample."""
    grade = df.grade(df.record(("f", {"a": "x"}), tools), {"kind": "exception", "message": ""}, profile)
    assert (grade.outcome, grade.score, grade.passed) == (Outcome.GRADED, 0.0, False)
    assert df.verdict(grade) == (0, 0, 0)
    assert grade.counts == {**dict.fromkeys(grade.counts, 0), "errors": 1}
    assert (grade.fault.message, grade.gold, grade.label) == ("", "f", None)


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


def test_reasons_of_an_unknown_tool(df, tools):
    """Documented names the unknown tool, upstream where the values differ."""
    record, reply = (
        df.record(("f", {"a": "x", "b/c": 1, "gone": 1}), tools),
        df.reply(("zz", {"a": "y", "b/c": 2, "new": 1})),
    )
    assert [reason.code for reason in df.grade(record, reply).reasons] == ["wrong_tool", "unknown_tool"]
    found = [(reason.code, reason.pointer) for reason in df.grade(record, reply, "upstream").reasons]
    assert found == [
        ("wrong_tool", ""),
        ("different_value", "/a"),
        ("different_value", "/b~1c"),
        ("missing_argument", "/gone"),
        ("unknown_argument", "/new"),
    ]


def test_a_right_grade_has_no_reasons_and_reasons_are_limited(df, tools):
    """Nothing lost, nothing said; of very many faults fifty are listed."""
    assert df.grade(df.record(("f", {"a": "x"}), tools), df.reply(("f", {"a": "x"}))).reasons == ()
    many = {f"p{n}": "integer" for n in range(200)}
    grade = df.grade(df.record(("f", {"x": 1}), [df.tool("f", **many)]), df.reply(("f", dict.fromkeys(many, "x"))))
    assert len(grade.reasons) == 50


# Options


@PROFILES
def test_unknown_arguments(df, tools, profile):
    """An argument the schema does not know is ignored, unless it is to be wrong."""
    record, reply = df.record(("f", {"a": "x"}), tools), df.reply(("f", {"a": "x", "b": 1}))
    grade = df.grade(record, reply, profile, unknown_arguments="wrong")
    assert df.verdict(grade) == (1, 0, 0)
    assert [(reason.code, reason.pointer) for reason in grade.reasons] == [("unknown_argument", "/b")]


@PROFILES
def test_check_enums(df, profile):
    """Values outside enum and const are wrong only when they are to be checked; true is not 1."""
    tools = [
        df.tool(
            "f",
            a={"type": "string", "enum": ["x", "y"]},
            b={"type": "integer", "const": 1},
            c={"type": "number", "enum": [1]},
        )
    ]
    record = df.record(("f", {"a": "x"}), tools)
    for arguments, right in (({"a": "x", "b": 1, "c": 1.0}, 1), ({"a": "z"}, 0), ({"b": 2}, 0), ({"c": 2}, 0)):
        reply = df.reply(("f", arguments))
        assert df.verdict(df.grade(record, reply, profile)) == (1, 1, 1)
        assert df.verdict(df.grade(record, reply, profile, check_enums=True)) == (1, right, right)
    loose = df.record(("f", {"a": "x"}), [df.tool("f", a={"enum": [1]})])
    assert df.verdict(df.grade(loose, df.reply(("f", {"a": True})), check_enums=True)) == (1, 0, 0)


NESTED = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["n"],
}
INNER = [
    ({"o": {"n": 1, "tags": ["x"]}}, []),
    ({"o": {"n": "1"}}, [("wrong_type", "/o/n")]),
    ({"o": {"n": True}}, [("wrong_type", "/o/n")]),
    ({"o": {}}, [("missing_argument", "/o/n")]),
    ({"o": {"n": 1, "tags": ["x", 2]}}, [("wrong_type", "/o/tags/1")]),
    ({"o": {"n": 1, "more": 1}}, []),
    ({"u": 1}, []),
    ({"u": "x"}, []),
    ({"u": [1]}, [("no_branch_fits", "/u")]),
    ({"free": {"anything": [1]}}, []),
]


@pytest.mark.parametrize(("arguments", "reasons"), INNER)
def test_nested(df, arguments, reasons):
    """Nested objects, list items and alternatives are checked only on request."""
    tools = [df.tool("f", o=NESTED, u={"anyOf": [{"type": "integer"}, {"type": "string"}]}, free={"type": "object"})]
    record, reply = df.record(("f", {"o": {}}), tools), df.reply(("f", arguments))
    assert df.verdict(df.grade(record, reply)) == (1, 1, 1)
    grade = df.grade(record, reply, nested=True)
    assert [(reason.code, reason.pointer) for reason in grade.reasons] == reasons
    assert df.verdict(grade) == (1, int(not reasons), int(not reasons))


def test_nested_unknown_arguments_and_enums(df):
    """The switches work together: unknown names and enumerations inside nested objects."""
    inner = {"type": "object", "properties": {"e": {"enum": ["a"]}}}
    record = df.record(("f", {"o": {}}), [df.tool("f", o=inner)])
    options = {"nested": True, "unknown_arguments": "wrong", "check_enums": True}
    grade = df.grade(record, df.reply(("f", {"o": {"e": "b", "x": 1}})), **options)
    assert {(reason.code, reason.pointer) for reason in grade.reasons} == {
        ("not_in_enum", "/o/e"),
        ("unknown_argument", "/o/x"),
    }


def test_nested_depth_is_limited(df):
    """Schemas and values nested hundreds of levels deep are graded without an error."""
    schema, value = {"type": "integer"}, "x"
    for _ in range(300):
        schema, value = {"type": "object", "properties": {"a": schema}}, {"a": value}
    record = df.record(("f", {"o": {}}), [df.tool("f", o=schema)])
    assert df.verdict(df.grade(record, df.reply(("f", {"o": value})), nested=True)) == (1, 1, 1)


def test_pointer():
    """Pointers escape tildes and slashes and count list items."""
    assert pointer() == ""
    assert pointer("a/b", 0, "c~d") == "/a~1b/0/c~0d"


# Weights


@pytest.mark.parametrize(
    ("expected", "made", "score"),
    [
        (("f", {"a": "x"}), ("f", {"a": "y"}), 1.0),
        (("f", {"a": "x"}), ("f", {}), 0.4),
        (("f", {"a": "x"}), ("g", {"n": 1}), 0.35),
    ],
)
@PROFILES
def test_default_weights(df, tools, profile, expected, made, score):
    """The score is .40 selection + .35 parameters + .25 execution + .00 quality."""
    grade = df.grade(df.record(expected, tools), df.reply(made), profile)
    assert grade.score == score
    assert grade.parts["response_quality"] == 0.0


@pytest.mark.parametrize("name", ["weights", "metric_weights"])
def test_custom_weights_replace_the_defaults(df, tools, name):
    """Given weights replace all defaults, under either name; a metric not named weighs nothing."""
    record, reply = df.record(("f", {"a": "x"}), tools), df.reply(("f", {}))
    weights = {"tool_selection": 0.7, "execution_success": 0.3}
    assert df.grade(record, reply, **{name: weights}).score == 0.7
    assert df.grade(record, reply, "upstream", **{name: {"parameter_accuracy": 1.0}}).score == 0.0
    with pytest.raises(ValueError, match="two names of one option"):
        DeepFabric(weights=weights, metric_weights=weights)


BAD_WEIGHTS = [
    ({"tool_selection": 0.5, "accuracy": 0.5}, "unknown weights 'accuracy'"),
    ({"tool_selection": 1.5, "parameter_accuracy": -0.5}, "at least 0"),
    ({"tool_selection": float("nan")}, "finite"),
    ({"tool_selection": 0.5}, "sum to 1, they sum to 0.5; set normalize: true"),
    ({}, "sum to 1"),
    ({"tool_selection": "1"}, "must be a number, got '1'"),
    ({"tool_selection": True}, "must be a number, got True"),
    ({"tool_selection": None}, "must be a number, got None"),
    ({1: 1.0}, "named by text"),
]


@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS)
def test_documented_refuses_bad_weights(weights, message):
    """Documented wants known names, finite numbers of at least 0, and the sum 1; the message says what is wrong."""
    with pytest.raises(ValueError, match=message):
        DeepFabric(weights=weights)


def test_the_sum_may_be_off_by_rounding():
    """A sum within 1e-9 of 1 is 1, beyond it is not."""
    near = {"tool_selection": 0.4, "parameter_accuracy": 0.6 + 5e-10}
    assert DeepFabric(weights=near).resolved_weights == (0.4, 0.6 + 5e-10, 0.0, 0.0)
    with pytest.raises(ValueError, match="sum to 1"):
        DeepFabric(weights={**near, "execution_success": 2e-9})


@PROFILES
def test_normalize(profile):
    """Weights can be divided by their sum, unless that is 0."""
    grader = DeepFabric(profile=profile, weights={"tool_selection": 3, "parameter_accuracy": 1}, normalize=True)
    assert grader.resolved_weights == (0.75, 0.25, 0.0, 0.0)
    with pytest.raises(ValueError, match="cannot be normalized"):
        DeepFabric(profile=profile, weights={"tool_selection": 0}, normalize=True)


UPSTREAM_WEIGHTS = [
    ({}, (0.0, 0.0, 0.0, 0.0)),
    ({"accuracy": 0.5, "f1_score": 0.5}, (0.0, 0.0, 0.0, 0.0)),
    ({"tool_selection": 5, "parameter_accuracy": -1.5}, (5.0, -1.5, 0.0, 0.0)),
    ({"tool_selection": "0.25", "execution_success": True, "response_quality": 2}, (0.25, 0.0, 1.0, 2.0)),
]


@pytest.mark.parametrize(("weights", "resolved"), UPSTREAM_WEIGHTS)
def test_upstream_takes_weights_as_they_are(weights, resolved):
    """Upstream ignores unknown names, sums nothing, and reads texts and booleans as numbers."""
    assert DeepFabric(profile="upstream", weights=weights).resolved_weights == resolved


@pytest.mark.parametrize("weights", [{"tool_selection": None}, {"tool_selection": "x"}, {"x": []}, {1: 1.0}])
def test_upstream_still_refuses_what_is_no_number(weights):
    """Null, words, lists and names that are no text are refused in both profiles."""
    with pytest.raises(ValueError, match="must be a number|named by text"):
        resolve(weights, "upstream")


def test_scores_may_leave_the_unit_interval_upstream(df, tools):
    """Nothing holds upstream's weights to a sum, so scores may be above 1 or below 0."""
    record, right = df.record(("f", {"a": "x"}), tools), df.reply(("f", {"a": "x"}))
    assert df.grade(record, right, "upstream", weights={"tool_selection": 3}).score == 3.0
    assert df.grade(record, right, "upstream", weights={"tool_selection": -3}).score == -3.0


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 1e300])
def test_weights_without_a_usable_score_fail_the_grade_and_keep_the_verdict(df, tools, weight):
    """A score that is not finite is no score: the grade fails, its verdicts stay."""
    record = df.record(("f", {"a": "x"}), tools)
    grade = df.grade(record, df.reply(("f", {"a": "y"})), "upstream", weights={"tool_selection": weight})
    assert (grade.outcome, grade.score, grade.fault.code) == (Outcome.FAILED, None, "score_not_finite")
    assert df.verdict(grade) == (1, 1, 1)
    error = df.grade(record, {"kind": "exception"}, "upstream", weights={"tool_selection": weight})
    assert (error.score, error.counts["errors"]) == ((0.0, 1) if weight == 1e300 else (None, 1))


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
    assert (grade.score, grade.fault, grade.counts["errors"]) == (0.0, fault, 1)
    assert DeepFabric(profile=profile).grade(foreign(status=Status.FAILED)).fault.code == "failed_run"


@PROFILES
def test_undecoded_arguments_of_other_formats(profile):
    """A call whose arguments hold no object is a processing error, even where no call was expected."""
    broken = ToolCall(name="f", arguments=None, raw_arguments="{bad")
    for expected in (Expectation(calls=(CALL,)), Expectation(calls=())):
        grade = DeepFabric(profile=profile).grade(foreign(calls=(broken,), expected=expected))
        assert (grade.score, grade.fault.code) == (0.0, "processing_error")
        assert "{bad" in grade.fault.message


def test_a_tool_without_a_schema_takes_anything(df):
    """A tool known by name only has no required and no typed parameters."""
    made = ToolCall(name="bare", arguments={"x": None})
    sample = foreign(calls=(made,), expected=Expectation(calls=(made,)))
    for profile in ("documented", "upstream"):
        assert df.verdict(DeepFabric(profile=profile).grade(sample)) == (1, 1, 1)


def test_schemas_upstream_fails_on_are_errors_for_other_formats_too():
    """Upstream converts the whole snapshot, so that one broken schema makes an error of the sample."""
    broken = (*SPECS, ToolSpec(name="x", parameters={"properties": {"a": {"type": ["string"]}}}))
    grade = DeepFabric(profile="upstream").grade(foreign(tools=broken))
    assert (grade.score, grade.fault.message) == (0.0, "unhashable type: 'list'")
    assert DeepFabric().grade(foreign(tools=broken)).score == 1.0


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
