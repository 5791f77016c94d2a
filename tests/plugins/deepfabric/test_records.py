"""The rules of dataset records, and the ground truth in them."""

import pytest

from gradestack_plugins.deepfabric.records import (
    RecordProblem,
    looks_like_call,
    parse_record,
    read_calls,
    read_truth,
)
from tests.core.outcomes import data

DATA = data(__file__, "records.yaml")

CALL = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def truth_of(value):
    record = parse_record(value)
    calls = read_calls(record)
    return read_truth(record, calls)


ANSWERS = [
    ({"final_answer": "final"}, True, "final"),
    ({}, True, "plain"),
    ({}, False, "f(x) it is"),
]


@pytest.mark.parametrize(("fields", "with_tools", "answer"), ANSWERS)
def test_the_expected_answer(df, fields, with_tools, answer):
    """final_answer wins; with tools, the last assistant message that is no call.

    Else the last one.
    """
    record = df.record(("f", {}) if with_tools else None, **fields)
    record["messages"] += [
        {"role": "assistant", "content": text} for text in ("plain", "f(x) it is")
    ]
    truth = truth_of(record)
    assert truth.answer == answer


def test_when_all_messages_look_like_calls_the_last_one_is_the_answer(df):
    record = df.record(("f", {}))
    truth = truth_of(record)
    assert truth.answer is None
    record["messages"] += [{"role": "assistant", "content": text} for text in ("f(1)", "f(2)")]
    assert truth_of(record).answer == "f(2)"


CALLS = DATA["calls"]
PROSE = [
    "the answer",
    '{"function_call": 1}',
    "{tool_calls",
    "(x)",
    "3 (x)",
    "",
    "f (x",
    '["tool_call"]',
]


@pytest.mark.parametrize(
    ("content", "expected"), [(text, True) for text in CALLS] + [(text, False) for text in PROSE]
)
def test_what_looks_like_a_call(content, expected):
    """Tags, JSON with tool_calls, and anything with a word before parentheses look like calls."""
    assert looks_like_call(content) is expected


@pytest.mark.parametrize("key", ["function_name", "arguments", "reasoning", "result"])
def test_executions_with_lone_surrogates(df, key):
    """Texts whose length the original measures must be valid Unicode.

    Surrogates that JSON text escapes are none.
    """
    record = df.record(("f", {"a": "é\U0001f600"}))
    executions = record["tool_context"]["executions"]
    execution = executions[0]
    first_call = truth_of(record).calls[0]
    assert first_call.arguments == {"a": "é\U0001f600"}
    execution[key] = '{"a": "\ud800"}'
    match = f"executions.{key}: must be text without lone surrogates"
    with pytest.raises(RecordProblem, match=match):
        truth_of(record)
    if key == "arguments":
        execution[key] = '{"a": "\\ud800"}'
        truth = truth_of(record)
        assert truth.calls[0].arguments == {"a": "\ud800"}


def test_names_of_recorded_calls_with_lone_surrogates(df):
    function = {"name": "é", "arguments": '{"a": "\ud800"}'}
    call = {"id": "abcdefghi", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "q\ud800"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
    record = df.record(messages=messages)
    truth = truth_of(record)
    assert truth.query == "q\ud800"
    function["name"] = "f\ud800"
    with pytest.raises(
        RecordProblem, match=r"tool_calls.function.name: must be text without lone surrogates"
    ):
        truth_of(df.record(messages=messages))
