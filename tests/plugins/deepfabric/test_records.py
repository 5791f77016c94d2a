"""The rules of dataset records, and the ground truth in them."""

import pytest

from gradestack import Outcome, Status
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.samples import (
    NO_QUERY,
    RecordProblem,
    checked_calls,
    looks_like_call,
    strict_truth,
)
from tests.core.outcomes import data

DATA = data(__file__, "records.yaml")

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])
CALL = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def truth_of(record, rules="documented"):
    return strict_truth(record, checked_calls(record, rules), rules)


def test_query_comes_from_the_first_user_message_else_the_question():
    """The first user message asks; without any the question does.

    Without both there is an error with known words.
    """
    system = {"role": "system", "content": "s"}
    users = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    assert truth_of({"messages": [system, *users], "question": "other"}).query == "one"
    assert truth_of({"messages": [system], "question": "asked"}).query == "asked"
    with pytest.raises(RecordProblem, match=f"^{NO_QUERY}$"):
        truth_of({"messages": [system]})


def test_the_first_execution_is_the_expected_call(df):
    record = df.record(("f", {"a": 1}))
    record["tool_context"]["executions"].append(df.execution("g", "[1]"))
    record["messages"].append({"role": "assistant", "content": "x", "tool_calls": [CALL]})
    for rules in ("documented", "4.3"):
        calls = truth_of(record, rules).calls
        assert [(call.name, call.arguments) for call in calls] == [("f", {"a": 1}), ("g", None)]
    with pytest.raises(RecordProblem, match="must hold a JSON object"):
        truth_of(record, "4.13")


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
    assert truth_of(record).answer == answer


def test_when_all_messages_look_like_calls_the_last_one_is_the_answer(df):
    record = df.record(("f", {}))
    assert truth_of(record).answer is None
    record["messages"] += [{"role": "assistant", "content": text} for text in ("f(1)", "f(2)")]
    assert truth_of(record).answer == "f(2)"


def test_null_content_in_a_scanned_message_is_an_error(df):
    record = df.record(("f", {}))
    record["messages"].append({"role": "assistant", "content": None})
    with pytest.raises(RecordProblem, match="argument of type 'NoneType' is not iterable"):
        truth_of(record)
    assert truth_of({**record, "final_answer": "x"}).answer == "x"
    assert truth_of({**record, "tool_context": None}).answer is None


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


@PROFILES
@pytest.mark.parametrize("message", [{"role": "system", "content": None}, {"role": "system"}])
def test_prompt_messages_need_text(df, profile, message):
    """A message before the first assistant message without text is an error, of which the ground
    truth is known.
    """
    record = df.record(("f", {"a": 1}))
    record["messages"].insert(0, message)
    sample = df.sample(record, df.reply(("f", {})), profile)
    grade = DeepFabric(profile=profile).grade(sample)
    assert (grade.outcome, grade.fault.code) == (Outcome.FAILED, "processing_error")
    assert (sample.input, sample.expected.calls[0].name) == ("the query", "f")
    if profile == "upstream":
        lacking = "content" not in message
        assert sample.status is (
            Status.FAILED if lacking else Status.OK
        )  # several turns take null content
        assert grade.fault.message == "'content'" or not lacking
    late = df.record(("f", {"a": 1}), final_answer="x")
    late["messages"] += [{"role": "assistant", "content": "x"}, message]
    assert df.sample(late, df.reply(("f", {})), profile).status is Status.OK


@pytest.mark.parametrize("key", ["function_name", "arguments", "reasoning", "result"])
def test_executions_with_lone_surrogates(df, key):
    """Texts whose length the original measures must be valid Unicode.

    Surrogates that JSON text escapes are none.
    """
    record = df.record(("f", {"a": "é\U0001f600"}))
    execution = record["tool_context"]["executions"][0]
    assert truth_of(record).calls[0].arguments == {"a": "é\U0001f600"}
    execution[key] = '{"a": "\ud800"}'
    with pytest.raises(
        RecordProblem, match=f"executions.{key}: must be text without lone surrogates"
    ):
        truth_of(record)
    if key == "arguments":
        execution[key] = '{"a": "\\ud800"}'
        assert truth_of(record).calls[0].arguments == {"a": "\ud800"}


def test_names_of_recorded_calls_with_lone_surrogates(df):
    function = {"name": "é", "arguments": '{"a": "\ud800"}'}
    call = {"id": "abcdefghi", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "q\ud800"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
    assert truth_of(df.record(messages=messages)).query == "q\ud800"
    function["name"] = "f\ud800"
    with pytest.raises(
        RecordProblem, match=r"tool_calls.function.name: must be text without lone surrogates"
    ):
        truth_of(df.record(messages=messages))
