"""One conversation in every dialect gives the same calls, results and errors, with expectations or without."""

import json

import pytest

from gradestack.cli.commands import main
from gradestack_plugins.readers.chat.conversation import conversation_of
from tests.core.outcomes import data

DIALECTS = data(__file__, "dialects.yaml")
MISREAD = data(__file__, "misread.yaml")
EXPECTED = [{"name": "find", "args": {"ref": "A1"}}, {"name": "move", "input": {"to": 2, "ref": "A1"}}]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("form", ["jsonl", "expected_calls", "list of lists", "one list", "one a line"])
def test_every_dialect_gives_the_same(tmp_path, name, form):
    talk = DIALECTS[name]
    record = {"id": "a", "messages": talk}
    text = {
        "jsonl": json.dumps({**record, "expected": EXPECTED}),
        "expected_calls": json.dumps([{**record, "expected_calls": EXPECTED}]),
        "list of lists": json.dumps([talk]),
        "one list": json.dumps(talk, indent=1),
        "one a line": "\n".join(map(json.dumps, talk)),
    }[form]
    (tmp_path / "runs.jsonl").write_text(text)
    with pytest.raises(SystemExit):
        main(["grade", str(tmp_path / "runs.jsonl"), "--output", str(tmp_path / "out"), "--set", "reports=[]"])
    (row,) = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    calls = row["predicted"]["calls"]
    assert [(each["name"], each["arguments"], each["turn"], each["step"]) for each in calls] == [
        ("find", {"ref": "A1"}, 0, 0),
        ("move", {"ref": "A1", "to": 2}, 0, 1),
    ]
    assert [each["status"] for each in calls] == ["ok", "error"]
    assert "taken" in calls[1]["error"]
    assert row["sample"]["input"] == "Move A1."
    assert row["passed"] is (form in {"jsonl", "expected_calls"})


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
