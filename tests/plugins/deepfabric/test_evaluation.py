"""Evaluation as one call."""

import json
import math

import pytest

import gradestack_plugins.deepfabric as family
from gradestack import DataError
from gradestack_plugins.deepfabric import evaluate
from gradestack_plugins.deepfabric.grader import DeepFabric

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


def test_inspecting_failures(df, capsys):
    """The loop over failed predictions runs as the document has it."""
    tools = [df.tool("f"), df.tool("g")]
    records = [df.record(("f", {}), tools), df.record(("g", {}), tools)]
    results = evaluate(records, [df.reply(("f", {})), df.reply(("f", {}))])
    for p in results.predictions:
        if not p.tool_selection_correct:
            print(p.query, p.expected_tool, p.predicted_tool)  # noqa: T201  the document's loop
    assert capsys.readouterr().out == "the query g f\n"
    assert [p.sample_id for p in results.predictions] == [0, 1]
    assert results.predictions[0].error is None
    assert results.metrics.tool_selection_accuracy == 0.5
    assert results.metrics.samples_evaluated == 2
    assert results.metrics.interpretation["band"] == "fair"


@PROFILES
def test_files_and_lines_give_the_same(df, tmp_path, profile):
    tools = [df.tool("f", ["a"], a="integer")]
    records = [df.record(("f", {"a": n + 1}), tools) for n in range(5)]
    replies = [df.reply(("f", {"a": 1})), df.reply(("g", {})), df.reply(), {"kind": "exception"}, None]
    joined = [{"sample": record, "recorded": reply} for record, reply in zip(records, replies, strict=True)]
    found = [
        evaluate(records, replies, profile=profile),
        evaluate(joined, profile=profile),
        evaluate(df.write(tmp_path / "joined.jsonl", *joined), profile=profile),
        evaluate(
            str(df.write(tmp_path / "dataset.jsonl", *records)),
            df.write(tmp_path / "replies.jsonl", *replies[:4]),
            profile=profile,
        ),
    ]
    assert [result.metrics for result in found] == [found[0].metrics] * 4
    assert [result.predictions for result in found] == [found[0].predictions] * 4
    assert found[0].metrics.processing_errors == 2
    assert found[0].metrics.samples_missing == 1
    assert [p.state for p in found[0].predictions] == ["graded"] * 3 + ["failed", "missing"]


def test_options_reach_the_grader(df):
    record = {**df.record(("f", {"a": 1}), [df.tool("f", a="integer")]), "extra": 1}
    line = {"sample": record, "recorded": df.reply(("f", {"a": 1, "b": 2}))}
    assert evaluate([line]).metrics.processing_errors == 1
    assert evaluate([line], validation="lenient").metrics.overall_score == 1.0
    strict = DeepFabric(unknown_arguments="wrong", weights={"tool_selection": 1.0})
    result = evaluate([line], validation="lenient", grader=strict)
    assert (result.metrics.overall_score, result.metrics.parameter_accuracy) == (1.0, 0.0)
    assert json.loads(result.to_json())["config"]["unknown_arguments"] == "wrong"
    with pytest.raises(ValueError, match="sum to 1"):
        evaluate([line], weights={"tool_selection": 2.0})


def test_surplus_replies_are_bad_records(df):
    """Decoded replies beyond the last record are told, as lines of a file are; None is no reply."""
    records, replies = [df.record(("f", {}), [df.tool("f")])] * 2, [df.reply(("f", {}))] * 2
    assert evaluate(records, [*replies, None]).bad_records == ()
    result = evaluate(records, iter([*replies, None, replies[0]]))
    assert len(result.predictions) == 2
    (bad,) = result.bad_records
    assert (bad.source.ordinal, bad.reason) == (3, "the dataset has no row at this line")
    assert [bad.source.ordinal for bad in evaluate([], replies).bad_records] == [0, 1]


def test_weights_are_written_as_the_numbers_they_are_read_as(df):
    """As the original keeps them: order and unknown names stay, and every weight is a float."""
    line = {"sample": df.record(("f", {}), [df.tool("f")]), "recorded": df.reply(("f", {}))}
    weights = {"other": 2, "parameter_accuracy": True, "tool_selection": "0.50", "execution_success": math.nan}
    text = evaluate([line], profile="upstream", weights=weights).to_json()
    figures = ['"other": 2.0', '"parameter_accuracy": 1.0', '"tool_selection": 0.5', '"execution_success": null']
    assert '"metric_weights": {\n      ' + ",\n      ".join(figures) + "\n    }" in text
    documented = DeepFabric(metric_weights={"tool_selection": 1})
    assert '"metric_weights": {\n      "tool_selection": 1.0\n    }' in evaluate([line], grader=documented).to_json()


def test_weights_beyond_the_largest_sum(df):
    """Upstream never adds weights up, so nothing overflows but a score."""
    line = {"sample": df.record(("f", {"a": 1}), [df.tool("f")]), "recorded": df.reply(("g", {}))}
    weights = dict.fromkeys(("tool_selection", "parameter_accuracy", "execution_success"), 1e308)
    result = evaluate([line], profile="upstream", weights=weights)
    assert (result.metrics.tool_selection_accuracy, result.metrics.overall_score) == (0.0, 0.0)


def test_sources_that_do_not_fit_together(df, tmp_path):
    """A file takes its replies from a file, decoded records take decoded ones; a missing file is named."""
    path = df.write(tmp_path / "x.jsonl", df.record())
    with pytest.raises(ValueError, match="replies from a file"):
        evaluate(path, [df.reply()])
    with pytest.raises(ValueError, match="decoded replies"):
        evaluate([df.record()], path)
    with pytest.raises(DataError, match=r"gone\.jsonl"):
        evaluate(tmp_path / "gone.jsonl")


def test_bad_records_are_kept_apart(df, tmp_path):
    """Lines that are no samples are listed, and have no prediction."""
    path = df.write(tmp_path / "x.jsonl", {"sample": df.record(), "recorded": df.reply()}, "{bad")
    result = evaluate(path)
    assert len(result.predictions) == 1
    assert result.bad_records[0].source.line == 2


def test_the_package_loads_its_api_on_demand():
    """Names are found on first use; others are an AttributeError."""
    assert family.evaluate is evaluate
    assert family.Prediction is not None
    assert {component.kind for component in family.gradestack_components()} == {
        "reader",
        "grader",
        "aggregator",
        "exporter",
        "panel",
        "stack",
    }
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        family.nothing  # noqa: B018
