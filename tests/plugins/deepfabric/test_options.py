"""The grader's options: stricter checks, and weights."""

import math

import pytest

from gradestack.suites.strict import Problems, structure
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.options import resolve
from gradestack_plugins.deepfabric.schemas import pointer

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


@pytest.fixture
def tools(df):
    return [df.tool("f", ["a"], a="string"), df.tool("g", ["n"], n="integer"), df.tool("h")]


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
    ([1], "must be a mapping"),
    (dict.fromkeys(["tool_selection", "parameter_accuracy", "execution_success"], 1e308), "they sum to inf"),
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
    for weights in ({"tool_selection": 0}, {"tool_selection": 1e308, "parameter_accuracy": 1e308}):
        with pytest.raises(ValueError, match="cannot be normalized"):
            DeepFabric(profile=profile, weights=weights, normalize=True)
    infinite = {"tool_selection": float("inf"), "parameter_accuracy": -float("inf")}
    with pytest.raises(ValueError, match="sum to nan cannot be normalized"):
        DeepFabric(profile="upstream", weights=infinite, normalize=True)


UPSTREAM_WEIGHTS = [
    ({}, (0.0, 0.0, 0.0, 0.0)),
    ({"accuracy": 0.5, "f1_score": 0.5}, (0.0, 0.0, 0.0, 0.0)),
    ({"tool_selection": 5, "parameter_accuracy": -1.5}, (5.0, -1.5, 0.0, 0.0)),
    ({"tool_selection": "0.25", "execution_success": True, "response_quality": 2}, (0.25, 0.0, 1.0, 2.0)),
    ({"tool_selection": " 1_0 ", "execution_success": "-inf", "other": "1e3"}, (10.0, 0.0, -math.inf, 0.0)),
    ({"tool_selection": 1e308, "parameter_accuracy": 1e308, "execution_success": 1e308}, (1e308, 1e308, 1e308, 0.0)),
    ({"tool_selection": -math.inf, "parameter_accuracy": math.inf}, (-math.inf, math.inf, 0.0, 0.0)),
]


@pytest.mark.parametrize(("weights", "resolved"), UPSTREAM_WEIGHTS)
def test_upstream_takes_weights_as_they_are(weights, resolved):
    """Upstream ignores unknown names, sums nothing, and reads texts and booleans as numbers."""
    assert DeepFabric(profile="upstream", weights=weights).resolved_weights == resolved
    assert structure({"profile": "upstream", "weights": weights}, DeepFabric).resolved_weights == resolved


def test_upstream_takes_nan():
    """From a suite, too."""
    weights = {"tool_selection": math.nan, "parameter_accuracy": "nan"}
    found = structure({"profile": "upstream", "metric_weights": weights}, DeepFabric).resolved_weights
    assert [math.isnan(weight) for weight in found] == [True, True, False, False]


@pytest.mark.parametrize("weight", [True, "1", math.nan, math.inf, None, "x"])
def test_documented_refuses_from_a_suite_what_is_no_finite_number(weight):
    """The class of the option is wide for upstream's sake; documented still takes numbers alone."""
    with pytest.raises(Problems, match=r"weight of tool_selection must be a (finite )?number"):
        structure({"weights": {"tool_selection": weight}}, DeepFabric)


BAD_UPSTREAM = [{"tool_selection": None}, {"tool_selection": "x"}, {"x": []}, {1: 1.0}, {"x": "١"}, {"x": ""}, [1], 3]


@pytest.mark.parametrize("weights", BAD_UPSTREAM)
def test_upstream_still_refuses_what_is_no_number(weights):
    """Null, words, lists, digits of other scripts and names that are no text are refused in both profiles."""
    with pytest.raises(ValueError, match=r"must be a number|named by text|must be a mapping"):
        resolve(weights, "upstream")
