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
ROWS = [
    # turns; verdicts and coverage by upstream, by documented
    ([turn(("read", PATH), ("add", A)), END], (1, 1, 1, 1.0), (1, 1, 1, 1.0)),
    ([turn(("add", A)), turn(("read", PATH)), END], (1, 1, 1, 1.0), (1, 1, 1, 1.0)),
    ([turn(("read", PATH), ("add", A), ("add", A), ("free", {})), END], (1, 1, 1, 1.0), (1, 1, 1, 1.0)),
    ([turn(("read", PATH), ("add", A), ("zz", {})), END], (1, 1, 1, 1.0), (1, 0, 0, 1.0)),
    ([turn(("read", PATH), ("add", {"a": "x"})), END], (1, 1, 1, 1.0), (1, 0, 0, 1.0)),
    ([turn(("read", {}), ("add", A)), END], (1, 0, 1, 1.0), (1, 0, 0, 1.0)),
    ([turn(("read", {"x": 1}), ("add", {"b": 2})), END], (1, 0, 1, 1.0), (1, 0, 0, 1.0)),
    ([turn(("read", PATH)), END], (0, 1, 1, 0.5), (0, 1, 0, 0.5)),
    ([turn(("read", PATH)), END, turn(("add", A))], (0, 1, 1, 0.5), (0, 1, 0, 0.5)),
    ([END, turn(("read", PATH), ("add", A))], (0, 1, 1, 0.0), (0, 0, 0, 0.0)),
    ([turn()], (0, 1, 0, 0.0), (0, 0, 0, 0.0)),
    ([turn(("read", PATH)), turn(("add", A))], (1, 1, 1, 1.0), (1, 1, 1, 1.0)),
]


def verdict(df, grade):
    return (*df.verdict(grade), grade.parts["response_quality"])


@pytest.mark.parametrize(("turns", "upstream", "documented"), ROWS)
def test_verdicts(df, record, turns, upstream, documented):
    """Tools are compared as sets; upstream looks at argument names only, documented at the schema."""
    reply = {"turns": turns}
    assert verdict(df, df.grade(record, reply, "upstream", multi_turn=True)) == upstream
    assert verdict(df, df.grade(record, reply, multi_turn=True)) == documented
    assert df.grade(record, reply, "upstream", multi_turn=True).passed is (upstream[:3] == (1, 1, 1))


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_asked_for_one_reply_the_first_turn_counts(df, record, profile):
    """Without ``multi_turn`` the first turn is the reply; all turns are shown."""
    sample = df.sample(record, {"turns": [turn(("read", PATH)), turn(("add", A)), END]}, profile)
    assert df.verdict(DeepFabric(profile=profile).grade(sample)) == (1, 1, 1)
    assert [(call.name, call.step) for call in sample.calls] == [("read", 0), ("add", 1)]
    assert [message.role for message in sample.turns[0]] == ["user", "assistant", "assistant", "assistant"]
    assert sample.text == "end"


def test_a_first_turn_without_calls(df, record):
    """Upstream asks once: what was called in a later turn is no answer to that."""
    reply = {"turns": [END, turn(("read", PATH))]}
    assert df.verdict(df.grade(record, reply, "upstream")) == (0, 0, 0)


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


def test_the_single_call_field_holds_no_calls_of_several_turns(df, record):
    """A backend that fills only ``tool_call`` ends the conversation with its first reply."""
    reply = df.reply(("read", PATH))
    grade = df.grade(record, reply, "upstream", multi_turn=True)
    assert verdict(df, grade) == (0, 1, 1, 0.0)
    assert df.verdict(df.grade(record, reply, "upstream")) == (1, 1, 1)


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


def test_abstention_over_several_turns(df):
    """Calling nothing is right where nothing was due; in one reply the program never rewards it."""
    record = df.record(tools=[df.tool("f")])
    for profile in ("documented", "upstream"):
        assert verdict(df, df.grade(record, {"turns": [END]}, profile, multi_turn=True)) == (1, 1, 1, 1.0)
        called_one = df.grade(record, {"turns": [turn(("f", {})), END]}, profile, multi_turn=True)
        assert verdict(df, called_one) == ((0, 0, 0, 0.0) if profile == "documented" else (0, 1, 1, 0.0))
    assert df.verdict(df.grade(record, {"turns": [END]}, "upstream")) == (0, 0, 0)
