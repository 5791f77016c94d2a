"""Single model calls with their history become conversations."""

import json

import pytest

from gradestack import Message, ToolCall
from gradestack.cli.commands import main
from gradestack_plugins.readers.chat.steps import joined, step
from tests.core.outcomes import data

CASES = data(__file__, "steps.yaml")
ROLES = {"u": "user", "v": "user", "w": "user", "t": "tool", "s": "system"}


def messages(letters):
    return [Message(role=ROLES.get(each, "assistant"), content=each) for each in letters]


@pytest.mark.parametrize("name", CASES)
def test_steps_are_put_together(name):
    case = CASES[name]
    steps = [step(messages(history), messages(answer), group) for group, history, answer in case["steps"]]
    assert [[list(run.steps), run.shared] for run in joined(steps)] == case["runs"]


def calling(*calls, **more):
    return Message(role="assistant", tool_calls=calls, **more)


CALL = ToolCall(name="f", arguments={"a": 1, "b": [2]}, raw_arguments='{"a":1,"b":[2]}', id="c1")


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (calling(CALL, content=""), True),
        (calling(ToolCall(name="f", arguments={"b": [2], "a": 1}, id="c1"), reasoning="thought"), True),
        (calling(CALL, content=[]), True),
        (calling(CALL, content=[{"type": "text", "text": ""}]), True),
        (calling(CALL, content="I look."), False),
        (calling(ToolCall(name="f", arguments={"a": 1, "b": [3]}, id="c1")), False),
        (calling(ToolCall(name="f", arguments={"a": 1, "b": [2]}, id="c2")), False),
        (calling(ToolCall(name="g", arguments={"a": 1, "b": [2]}, id="c1")), False),
        (calling(CALL, CALL), False),
        (Message(role="tool", content="ok", tool_call_id="c1"), False),
    ],
)
def test_what_makes_messages_equal(other, equal):
    """Role, text, ids, names and parsed arguments of calls."""
    asked = Message(role="user", content="hi")
    steps = [step([asked], [calling(CALL)]), step([asked, other], [Message(role="assistant", content="done")])]
    assert len(joined(steps)) == (1 if equal else 2)


ASKED = {"role": "user", "content": "Move A1."}
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "ok"}


def exchange(*asked, answer, **more):
    usage = {"prompt_tokens": 10 * len(asked), "completion_tokens": 1}
    return {
        "request": {"messages": list(asked)},
        "response": {"choices": [{"message": answer}], "usage": usage},
        **more,
    }


def said(text):
    return {"role": "assistant", "content": text}


FIRST = exchange(ASKED, answer=CALLS)
SECOND = exchange(ASKED, CALLS, RESULT, answer=said("Done."))
ANEW = exchange(ASKED, CALLS, RESULT, answer=said("It is moved."))


@pytest.mark.parametrize(
    ("records", "options", "runs", "note"),
    [
        ([FIRST, SECOND], [], [(1, 42)], "2 model calls put together into 1 conversation with 1 tool call"),
        ([SECOND, FIRST], [], [(1, 42)], "put together into 1 conversation"),
        ([FIRST, SECOND, ANEW], [], [(1, 42), (1, 31)], "put together into 2 conversations with 1 tool call;"),
        ([FIRST, SECOND], ["--no-merge"], [(1, 11), (1, 31)], ""),
        ([FIRST, SECOND], ["--reader", "openai"], [(1, 42)], "to grade each by itself: --no-merge"),
        ([{**FIRST, "custom_id": "a"}, {**SECOND, "custom_id": "b"}], [], [(1, 11), (1, 31)], ""),
        ([{**FIRST, "id": 1}, {**SECOND, "id": 2}], [], [(1, 11), (1, 31)], ""),
        ([{**FIRST, "session_id": "a"}, {**SECOND, "session_id": "b"}], [], [(1, 11), (1, 31)], ""),
        ([{**FIRST, "session_id": "a"}, {**SECOND, "session_id": "a"}], [], [(1, 42)], "1 conversation"),
        ([FIRST, exchange(ASKED, answer=said("No."))], [], [(1, 11), (0, 11)], ""),
        ([{"messages": [ASKED, CALLS]}, {"messages": [ASKED, CALLS, RESULT, said("x")]}], [], [(1, None)] * 2, ""),
    ],
)
def test_logs_of_requests_are_graded_as_conversations(tmp_path, capfd, records, options, runs, note):
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    graders = ["--grader", "usage", "--set", "reports=[]"]
    with pytest.raises(SystemExit) as ended:
        main(["grade", str(tmp_path / "log.jsonl"), "--output", str(tmp_path / "out"), *graders, *options])
    assert ended.value.code in {None, 0}
    rows = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    found = [(len(row["predicted"]["calls"]), tokens(row)) for row in rows]
    told = "".join(capfd.readouterr())
    assert found == runs
    assert note in told
    assert bool(note) == ("put together" in told)


def tokens(row):
    usage = row.get("usage") or {}
    return None if not usage else usage["input_tokens"] + usage["output_tokens"]
