"""Several turns: which replies are looked at, and the verdicts of both profiles."""

import pytest

from gradestack import Expectation, Message, Outcome, Sample, ToolCall
from gradestack_plugins.deepfabric import evaluate
from gradestack_plugins.deepfabric.exporter import prediction
from gradestack_plugins.deepfabric.grader import DeepFabric

READ, ADD = ("read", {"path": "a"}), ("add", {"a": 1})


@pytest.fixture
def record(df):
    tools = [df.tool("read", ["path"], path="string"), df.tool("add", ["a"], a="integer"), df.tool("free")]
    found = df.record(tools=tools)
    found["tool_context"] = {"executions": [df.execution(*READ), df.execution(*ADD), df.execution("add", {"b": 2})]}
    return found


def turn(*calls, content=""):
    return {"content": content, "tool_calls": [{"name": name, "arguments": given} for name, given in calls]}


END = turn(content="end")
PATH, A = {"path": "b"}, {"a": 2}


def verdict(df, grade):
    return (*df.verdict(grade), grade.parts["response_quality"])


ODD = [
    # calls of the only turn, what upstream says: verdicts, None for a processing error
    ([{}], (0, 1, 1)),
    ([{"name": None, "arguments": {}}], (0, 1, 1)),
    ([{"name": "read", "arguments": "{}"}], (0, 0, 1)),
    ([{"name": "read"}], (0, 0, 1)),
    ([{"name": "read", "arguments": PATH}, {"name": 5}], (0, 1, 1)),
    ([{"name": 5}], None),
    ([{"name": "read", "arguments": PATH}, {"name": ["x"]}], None),
    ([{"name": "read", "arguments": PATH}, {"name": {}}], None),
]


@pytest.mark.parametrize(("calls", "wanted"), ODD)
def test_odd_calls(df, record, calls, wanted):
    """A call without a name matches nothing, arguments that are no object have no names; a name must have a hash."""
    for fields in ({"tool_call": None}, {}):
        reply = {"turns": [{"content": "", "tool_calls": calls, **fields}, END]}
        grade = df.grade(record, reply, "upstream", multi_turn=True)
        assert (None if grade.fault is not None else df.verdict(grade)) == wanted


def test_null_content_of_the_prompt(df, record):
    """An error when one reply is asked for, and none over several turns."""
    record["messages"].insert(0, {"role": "system", "content": None})
    reply = {"turns": [turn(("read", PATH), ("add", A)), END]}
    assert df.grade(record, reply, "upstream").fault.code == "processing_error"
    assert df.grade(record, reply, "upstream", multi_turn=True).passed is True
    (shown,) = evaluate([{"sample": record, "recorded": reply}], profile="upstream", multi_turn=True).predictions
    assert (shown.error, shown.predicted_tool, shown.predicted_answer) == (None, "read", "end")


def test_the_result_record(df, record):
    """It shows the first execution, the first call, the last content and the coverage."""
    reply = {"turns": [turn(("add", A), content="first"), {"role": "tool", "content": "3"}, END]}
    sample = df.sample(record, reply, "upstream")
    grade = DeepFabric(profile="upstream", multi_turn=True).grade(sample)
    shown = prediction(sample, grade)
    assert (shown.expected_tool, shown.expected_parameters) == READ
    assert (shown.predicted_tool, shown.predicted_parameters, shown.predicted_answer) == ("add", A, "end")
    assert shown.response_score == 0.5
    assert grade.metadata == {"multi_turn": True, "max_turns": 10}


def called(name, **arguments):
    return ToolCall(name=name, arguments=arguments)


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_recorded_assistant_turns_of_other_formats(df, record, profile):
    """The assistant messages of any sample are its turns; calls that no message holds are one reply."""
    sample = df.sample(record, df.reply(), profile)
    spoken = (
        Message(role="assistant", tool_calls=(called("read", path="x"),)),
        Message(role="tool", content="ok"),
        Message(role="assistant", content="so", tool_calls=(called("add", a=1),)),
        Message(role="assistant", content="end"),
    )
    calls = tuple(call for message in spoken for call in message.tool_calls)
    common = {"id": "s", "tools": sample.tools, "expected": Expectation(calls=(called("read"), called("add", a=1)))}
    grader = DeepFabric(profile=profile, multi_turn=True, max_turns=2)
    talked = Sample(turns=(spoken,), calls=calls, **common)
    assert verdict(df, grader.grade(talked)) == (1, 1, 1, 1.0)
    assert grader.grade(Sample(calls=calls, text="end", **common)).passed is True
    short = DeepFabric(profile=profile, multi_turn=True, max_turns=1)
    assert verdict(df, short.grade(talked))[3] == 0.5
    assert grader.grade(Sample(**common)).outcome is Outcome.SKIPPED
