"""The worked examples of the newest program's page, each in 4.13 and, where it has them, in 4.3."""

import pytest

from tests.plugins.deepfabric.conftest import evaluate

READ = ("read_file", {"file_path": "a.txt"})


@pytest.fixture
def tools(df):
    return [
        df.tool("read_file", ["file_path"], file_path="string"),
        df.tool("list_files"),
        df.tool("add", ["a"], a="integer", b="number", f="boolean"),
    ]


def record_of(df, *calls, **fields):
    record = df.record(**fields)
    record["tool_context"] = {"executions": [df.execution(*call) for call in calls]}
    return record


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def once(*calls, content=""):
    return {"content": content, "tool_call": calls[0] if calls else None, "tool_calls": list(calls)}


AGENT = {"metadata": {"agent_mode": "multi_turn"}}


@pytest.fixture
def four(df, tools):
    records = [
        record_of(df, READ, tools=tools),
        record_of(df, ("list_files", {}), tools=tools),
        record_of(df, tools=tools),
        record_of(df, READ, tools=tools, **AGENT),
    ]
    first = {"turns": [once(call("read_file", file_path="b")), once(content="end")]}
    return records, [first, once(content="hi"), once(content="no"), once()]


def test_a_whole_file(four):
    single = evaluate(*four, profile="upstream").metrics
    rates = (
        single.tool_selection_accuracy,
        single.parameter_accuracy,
        single.execution_success_rate,
    )
    assert (*rates, single.response_quality, single.overall_score) == (0.25, 0.25, 0.25, 0.0, 0.25)
    assert (single.samples_evaluated, single.samples_processed, single.processing_errors) == (
        4,
        3,
        1,
    )
    several = evaluate(*four, profile="upstream", multi_turn=True)
    rates = (several.metrics.tool_selection_accuracy, several.metrics.parameter_accuracy)
    assert (*rates, several.metrics.execution_success_rate) == (0.5, 0.75, 0.75)
    assert several.metrics.response_quality == 0.5
    assert '"overall_score": 0.6499999999999999,' in several.text
    weights = {"response_quality": 1}
    assert (
        evaluate(
            *four, profile="upstream", multi_turn=True, metric_weights=weights
        ).metrics.overall_score
        == 0.5
    )
