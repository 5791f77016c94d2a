"""One conversation in every dialect gives the same calls, results and errors, with expectations or
without.
"""

import json

import pytest

import gradestack
from gradestack.cli.commands import main
from gradestack_plugins.readers.api_logs import AnthropicLogs, OpenAILogs
from gradestack_plugins.readers.chat.conversation import conversation_of
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.records.reader import Records
from tests.core.outcomes import data, some_of
from tests.plugins.described_samples import read

DIALECTS = data(__file__, "dialects.yaml")
MISREAD = data(__file__, "misread.yaml")
EXPECTED = [
    {"name": "find", "args": {"ref": "A1"}},
    {"name": "move", "input": {"to": 2, "ref": "A1"}},
]


@pytest.mark.parametrize("name", some_of(DIALECTS, 2))
@pytest.mark.parametrize(
    "form", ["jsonl", "expected_calls", "list of lists", "one list", "one a line"]
)
def test_every_dialect_gives_the_same(tmp_path, name, form):
    talk = DIALECTS[name]
    record = {"id": "a", "messages": talk}
    one_a_line = "\n".join(map(json.dumps, talk))
    jsonl = json.dumps({**record, "expected": EXPECTED})
    expected_calls = json.dumps([{**record, "expected_calls": EXPECTED}])
    list_of_lists = json.dumps([talk])
    one_list = json.dumps(talk, indent=1)
    text = {
        "jsonl": jsonl,
        "expected_calls": expected_calls,
        "list of lists": list_of_lists,
        "one list": one_list,
        "one a line": one_a_line,
    }[form]
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(text)
    with pytest.raises(SystemExit):
        main(
            [
                "grade",
                str(tmp_path / "runs.jsonl"),
                "--output",
                str(tmp_path / "out"),
                "--set",
                "reports=[]",
            ]
        )
    results_path = tmp_path / "out/results.jsonl"
    lines = results_path.read_text().splitlines()
    (row,) = [json.loads(line) for line in lines]
    calls = row["predicted"]["calls"]
    assert [(call["name"], call["arguments"], call["turn"], call["step"]) for call in calls] == [
        ("find", {"ref": "A1"}, 0, 0),
        ("move", {"ref": "A1", "to": 2}, 0, 1),
    ]
    status = [call["status"] for call in calls]
    assert status == ["ok", "error"]
    error = calls[1]["error"]
    assert "taken" in error
    assert row["sample"]["input"] == "Move A1."
    assert row["passed"] is (form in {"jsonl", "expected_calls"})


USED = {
    "langchain": lambda tokens: {
        "usage_metadata": tokens,
        "response_metadata": {"model_name": "m"},
    },
    "anthropic": lambda tokens: {"usage": tokens, "model": "m"},
    "openai": lambda tokens: {"usage": tokens, "model": "m"},
}


@pytest.mark.parametrize("name", USED)
def test_every_reader_gives_the_same(tmp_path, name):
    """Model and usage of the answers, too; ``jsonl`` in both its ways."""
    dialects = DIALECTS[name]
    described = [
        dialect
        for dialect in dialects
        if dialect.get("role", dialect.get("type")) in {"assistant", "ai"}
    ]
    used = {}
    for number, message in enumerate(described):
        used[id(message)] = USED[name]({"input_tokens": 5, "output_tokens": number})
    messages = []
    for dialect in DIALECTS[name]:
        messages.append(dialect | used.get(id(dialect), {}))
    record = {
        "id": "a",
        "messages": messages,
    }
    runs_path = tmp_path / "runs.jsonl"
    text = json.dumps(record)
    runs_path.write_text(text)
    if name == "anthropic":
        log = AnthropicLogs()
    else:
        log = OpenAILogs()
    samples = [
        message
        for reader in (JsonLines(), Records(), log)
        for message in read(reader, tmp_path / "runs.jsonl")
    ]
    samples.append(JsonLines().record(record, file="runs.jsonl", ordinal=0))
    fields = ("id", "input", "turns", "calls", "text", "model", "usage", "agent_usage")
    field_values = []
    for sample in samples:
        field_values.append([getattr(sample, field) for field in fields])
    expected = [field_values[0]] * 4
    assert field_values == expected
    assert field_values[0][5] == "m"
    assert field_values[0][6].requests == 3
    assert field_values[0][6].input_tokens == 15
    assert field_values[0][6].output_tokens == 3
    (row,) = gradestack.grade([record], ["usage"]).rows()
    assert row["model_name"] == "m"
    assert row["agent_usage"] == field_values[0][7]


@pytest.mark.parametrize("name", MISREAD)
def test_what_is_not_understood_is_counted(name):
    messages, wanted = MISREAD[name]
    if isinstance(wanted, str):
        with pytest.raises(ValueError, match=wanted):
            conversation_of(messages)
    else:
        talk = conversation_of(messages)
        assert talk.finished()["turns"]
        assert talk.remarks == wanted
