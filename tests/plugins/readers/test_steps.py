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
    return [Message(role=ROLES.get(letter, "assistant"), content=letter) for letter in letters]


@pytest.mark.parametrize("name", CASES)
def test_steps_are_put_together(name):
    case = CASES[name]
    steps = []
    for group, history, reply in case["steps"]:
        steps.append(step(messages(history), messages(reply), group))
    runs = joined(steps)
    assert [[list(run.steps), run.shared] for run in runs] == case["runs"]


def calling(*calls, **more):
    return Message(role="assistant", tool_calls=calls, **more)


CALL = ToolCall(name="f", arguments={"a": 1, "b": [2]}, raw_arguments='{"a":1,"b":[2]}', id="c1")


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (calling(CALL, content=""), True),
        (
            calling(ToolCall(name="f", arguments={"b": [2], "a": 1}, id="c1"), reasoning="thought"),
            True,
        ),
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
    request = Message(role="user", content="hi")
    steps = [
        step([request], [calling(CALL)]),
        step([request, other], [Message(role="assistant", content="done")]),
    ]
    joined_count = len(joined(steps))
    assert joined_count == (1 if equal else 2)


@pytest.mark.parametrize("case", data(__file__, "step_logs.yaml")["cases"])
def test_logs_of_requests_are_graded_as_conversations(tmp_path, capfd, case):
    log_path = tmp_path / "log.jsonl"
    records = case["records"]
    log_path.write_text("".join(json.dumps(record) + "\n" for record in records))
    options = case.get("options", ())
    graders = ["--grader", "usage", "--set", "reports=[]", *options]
    with pytest.raises(SystemExit) as ended:
        main(["grade", str(tmp_path / "log.jsonl"), "--output", str(tmp_path / "out"), *graders])
    assert ended.value.code in {None, 0}
    rows = []
    results_path = tmp_path / "out/results.jsonl"
    text = results_path.read_text()
    for line in text.splitlines():
        document = json.loads(line)
        rows.append(document)
    output = "".join(capfd.readouterr())
    assert [[len(row["predicted"]["calls"]), tokens(row)] for row in rows] == case["runs"]
    note = case.get("note", "")
    assert note in output
    assert ("note" in case) == ("put together" in output)


def tokens(row):
    usage = row.get("usage")
    return usage and usage["input_tokens"] + usage["output_tokens"]
