"""Grades of DeepFabric replies: options, errors, turns."""

import math

import pytest

import gradestack_plugins.deepfabric as family
from gradestack import Expectation, Sample, ToolCall, ToolSpec
from gradestack.suites.options import Problems, structure
from gradestack_plugins.deepfabric.aggregators import DeepFabricMetrics
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.schemas import convert
from tests.core.outcomes import data
from tests.plugins.deepfabric.conftest import evaluate

DATA = data(__file__, "grader.yaml")


CALL = ToolCall(name="f", arguments={"a": "x"})
SPECS = (
    ToolSpec(name="f", parameters={"properties": {"a": {"type": "string"}}, "required": ["a"]}),
    ToolSpec(name="bare"),
)


def foreign(**fields):
    expectation = Expectation(calls=(CALL,))
    return Sample(
        id="s",
        **{"calls": (CALL,), "expected": expectation, "tools": SPECS, **fields},
    )


class Number(int):
    """A number that is not plain JSON."""


def test_values_that_are_not_plain_json_count_by_their_class(df):
    """Samples made by other code may hold subclasses of the JSON classes."""
    tool = df.tool("f", a="integer")
    specs = convert([tool])
    number = Number(3)
    for value, right in ((number, 1.0), ((1, 2), 0.4)):
        made = ToolCall(name="f", arguments={"a": value})
        score = DeepFabric().grade(foreign(calls=(made,), tools=specs)).score
        assert score == right


@pytest.mark.parametrize(("weights", "message"), DATA["bad_weights"])
def test_documented_refuses_bad_weights(weights, message):
    """Documented wants known names, finite numbers of at least 0, and the sum 1.

    The message says what is wrong.
    """
    with pytest.raises(ValueError, match=message):
        DeepFabric(metric_weights=weights)


def test_normalize():
    """Weights can be divided by their sum, unless that is 0."""
    grader = DeepFabric(
        metric_weights={"tool_selection": 3, "parameter_accuracy": 1}, normalize=True
    )
    assert grader.weights == (0.75, 0.25, 0.0, 0.0)
    for weights in ({"tool_selection": 0}, {"tool_selection": 1e308, "parameter_accuracy": 1e308}):
        with pytest.raises(ValueError, match="cannot be normalized"):
            DeepFabric(metric_weights=weights, normalize=True)


@pytest.mark.parametrize("weight", [True, "1", math.nan, math.inf, None, "x", 10**400])
def test_a_suite_gives_finite_numbers(weight):
    with pytest.raises(Problems, match="expected a number"):
        structure({"metric_weights": {"tool_selection": weight}}, DeepFabric)


def test_no_turns_at_all_are_refused():
    with pytest.raises(ValueError, match="max_turns"):
        DeepFabric(max_turns=0)


@pytest.fixture
def lines(df):
    """A right record, one with a broken rule, and one whose inference failed."""
    tools = [df.tool("f", ["a"], a="integer")]
    record = df.record(("f", {"a": 1}), tools)
    broken = {**record, "metadata": {"conversation_type": "chat"}}
    reply = df.reply(("f", {"a": 1}))
    recorded = df.reply(("f", {"a": 1}))
    return [
        {"sample": record, "recorded": reply},
        {"sample": broken, "recorded": recorded},
        {"sample": record, "recorded": {"kind": "exception", "message": "out of memory"}},
    ]


def test_the_first_error_is_the_first_in_input_order(df, lines):
    grader = DeepFabric()
    grades = []
    for line in lines:
        recorded = line["recorded"]
        grades.append(grader.grade(df.sample(line["sample"], recorded)))
    sample = lines[0]["sample"]
    long = df.sample(sample, {"kind": "exception", "message": "x" * 1000})
    (message,) = df.fold(
        DeepFabricMetrics(), [grades[0], grades[1], grader.grade(long), grades[2]]
    )["warnings"]
    assert message.startswith(
        "3 of 4 records are processing errors, first: 1: metadata.conversation_type"
    )
    warnings = df.fold(DeepFabricMetrics(), [grader.grade(long)])["warnings"]
    first_warning_count = len(warnings[0])
    assert first_warning_count < 400


def test_inspecting_failures(df, tmp_path, capsys):
    """The loop over failed predictions runs as the document has it."""
    tool = df.tool("f")
    tools = [tool, df.tool("g")]
    dataset_path = tmp_path / "dataset.jsonl"
    record = df.record(("f", {}), tools)
    dataset = df.write(dataset_path, record, df.record(("g", {}), tools))
    replies_path = tmp_path / "replies.jsonl"
    reply = df.reply(("f", {}))
    replies = df.write(replies_path, reply, df.reply(("f", {})))
    results = family.evaluate(
        dataset, replies, profile="upstream", metric_weights={"tool_selection": 1}
    )
    for p in results.predictions:
        if not p.tool_selection_correct:
            print(p.query, p.expected_tool, p.predicted_tool)  # noqa: T201  the document's loop
    assert capsys.readouterr().out == "the query g f\n"
    assert [(p.sample_id, p.error) for p in results.predictions] == [(0, None), (1, None)]
    assert results.metrics.tool_selection_accuracy == 0.5
    assert results.metrics.overall_score == 0.5
    metric_weights = results.config["metric_weights"]
    assert metric_weights == {"tool_selection": 1.0}


def test_decoded_records(df):
    """They are graded as their lines in a file are; a reply that is no record is said."""
    tool = df.tool("f")
    record = df.record(("f", {}), [tool])
    records = [record] * 2
    reply = df.reply(("f", {}))
    replies = [reply, None]
    results = family.evaluate(records, replies, profile="upstream")
    errors = [p.error for p in results.predictions]
    assert errors == [
        None,
        "a recorded reply must be an object or text, got null",
    ]
    joined = [{"sample": records[0], "recorded": replies[0]}, {"no": "record"}]
    results = family.evaluate(joined)
    assert results.metrics.tool_selection_accuracy == 1.0
    prediction_count = len(results.predictions)
    assert prediction_count == 1
    assert [bad_record["line"] for bad_record in results.bad_records] == [2]


def test_weights_are_written_as_floats(df):
    """As the original keeps them."""
    tool = df.tool("f")
    record = df.record(("f", {}), [tool])
    reply = df.reply(("f", {}))
    line = {"sample": record, "recorded": reply}
    text = evaluate([line], metric_weights={"tool_selection": 1}).text
    assert '"metric_weights": {\n      "tool_selection": 1.0\n    }' in text
