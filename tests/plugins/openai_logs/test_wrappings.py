"""However messages are wrapped and lie in a file: the same samples, with ids, runs and places."""

import json

import pytest

from gradestack import BadRecord, Status, testing
from gradestack_plugins.openai_logs.reader import OpenAILogs
from tests.core.outcomes import data
from tests.plugins.chat_files import certainties, check_reference, read, written

DATA = data(__file__, "wrappings.yaml")

TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
ASKED = {"model": "m", "messages": TALK[:1], "tools": [{"type": "function", "function": {"name": "f"}}]}


def completion(*texts, **more):
    choices = [
        {"index": number, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        for number, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "m-1", "choices": choices, "usage": usage, **more}


def test_published_files_give_their_samples():
    """Every file of the form says what its expectations say."""
    check_reference("openai")


FILES = {
    "lines": "\n".join(json.dumps({"messages": TALK}) for _ in range(2)),
    "list": json.dumps([{"messages": TALK}, {"messages": TALK}]),
    "indented list": json.dumps([{"messages": TALK}, {"messages": TALK}], indent=1),
    "lines of lists": "\n".join(json.dumps(TALK) for _ in range(2)),
    "list of lists": json.dumps([TALK, TALK]),
    "page": json.dumps({"object": "list", "data": [{"messages": TALK}, {"messages": TALK}]}),
    "indented page": json.dumps({"object": "list", "data": [{"messages": TALK}, {"messages": TALK}]}, indent=2),
    "byte order mark": "\ufeff" + "\n".join(json.dumps({"messages": TALK}) for _ in range(2)),
}
ALONE = {
    "one list": json.dumps(TALK),
    "indented": json.dumps({"messages": TALK}, indent=2),
    "indented, messages in a line": '{"messages": [\n  ' + ",\n  ".join(map(json.dumps, TALK)) + "\n]}",
    "one line": json.dumps({"messages": TALK}),
    "a message a line": "\n".join(map(json.dumps, TALK)),
}


@pytest.mark.parametrize("name", [*FILES, *ALONE])
def test_every_layout_is_recognised_and_read(tmp_path, name):
    """Two conversations, or one: whatever stands between them."""
    path = tmp_path / "talk.v1.jsonl"
    path.write_text({**FILES, **ALONE}[name], encoding="utf-8")
    found = read("openai", path)
    ids = ["talk:0", "talk:1"] if name in FILES else ["talk:0"]
    assert max(certainties(path).items(), key=lambda each: each[1])[0] == "openai"
    assert [each.id for each in found] == ids
    assert {(each.input, each.text) for each in found} == {("hi", "hello")}
    assert [each.facets for each in found] == [{"id_made": True}] * len(ids)


@pytest.mark.parametrize(
    "record",
    [
        {"messages": TALK},
        {"request": ASKED, "response": completion("hello")},
        {"request": {"body": ASKED}, "response": {"body": completion("hello")}},
        {"request": json.dumps(ASKED), "response": json.dumps(completion("hello"))},
        {**ASKED, "response": completion("hello")},
        {**ASKED, "choices": completion("hello")["choices"]},
        {**ASKED, "messages": TALK, "response": completion("hello")},
        {**ASKED, "response": TALK[1]},
        {**ASKED, "response": "hello"},
        {"input": TALK[:1], "output": TALK[1:]},
        {"input": "hi", "output": [{"type": "message", "role": "assistant", "content": "hello"}], "object": "response"},
        {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": TALK}},
    ],
    ids=range(12),
)
def test_requests_and_answers_make_one_conversation(tmp_path, record):
    """The answer stands behind the request, once."""
    (found,) = read("openai", written(tmp_path, [record]))
    assert [(m.role, m.content) for turn in found.turns for m in turn] == [("user", "hi"), ("assistant", "hello")]
    assert (found.input, found.text, found.calls) == ("hi", "hello", ())


def test_several_choices_are_runs_of_one_task(tmp_path):
    """They share id and cluster; their usage, which is one for all, is nobody's."""
    record = {"custom_id": "t", "request": ASKED, "response": completion("a", "b")}
    found = read("openai", written(tmp_path, [record]))
    assert [(each.id, each.run, each.cluster, each.text, each.usage) for each in found] == [
        ("t", 0, "t", "a", None),
        ("t", 1, "t", "b", None),
    ]
    assert found[0].remarks == {"usage_of_several_choices": 1}
    assert found[1].remarks == {}


def test_preferences_are_runs_of_one_task(tmp_path):
    """Preference fine-tuning has a better and a worse answer to one request."""
    record = {"input": {"messages": TALK[:1]}, "preferred_output": TALK[1:], "non_preferred_output": TALK[1:]}
    found = read("openai", written(tmp_path, [record]))
    assert [(each.id, each.run) for each in found] == [("log:0", "preferred"), ("log:0", "non_preferred")]


@pytest.mark.parametrize(("more", "identifier"), DATA["the_id_is_the_first_that_names_a_task"])
def test_the_id_is_the_first_that_names_a_task(tmp_path, more, identifier):
    """Ids of answers go to the trace; without any, one is made up and marked."""
    (found,) = read("openai", written(tmp_path, [{"messages": TALK, **more}]))
    assert found.id == identifier
    assert found.facets.get("id_made", False) is (identifier == "log:0")
    answer = str(more.get("id"))
    assert found.trace.get("response_id") == (
        answer if answer.startswith(("chatcmpl-", "resp_", "msg_", "gen-")) else None
    )


def test_recorded_trials_and_metadata(tmp_path):
    record = {"messages": TALK, "id": "a", "trial": 2, "metadata": {"domain": "rail", "n": 1, "deep": {}}}
    (found,) = read("openai", written(tmp_path, [record]))
    assert (found.run, found.facets) == (2, {"domain": "rail", "n": 1})


def test_files_of_one_name_make_up_different_ids(tmp_path):
    """Where a stem is shared, as much of the path as tells them apart."""
    for folder in "ab":
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, [{"messages": TALK}])
    paths = [tmp_path / "a/log.jsonl", tmp_path / "b/log.jsonl"]
    assert [each.id for each in read("openai", *paths)] == ["a/log:0", "b/log:0"]


def test_batch_lines_that_failed_are_failed_runs(tmp_path):
    """An error in place of an answer is the run's own."""
    bad = {"status_code": 400, "body": {"error": {"message": "no", "type": "invalid_request_error"}}}
    lines = [
        {
            "id": "batch_req_1",
            "custom_id": "a",
            "response": {"status_code": 200, "body": completion("x")},
            "error": None,
        },
        {"id": "batch_req_2", "custom_id": "b", "response": bad, "error": None},
        {
            "id": "batch_req_3",
            "custom_id": "c",
            "response": None,
            "error": {"code": "batch_expired", "message": "late"},
        },
    ]
    found = read("openai", written(tmp_path, lines))
    assert [each.id for each in found] == ["a", "b", "c"]
    assert [each.status for each in found] == [Status.OK, Status.FAILED, Status.FAILED]
    assert [each.calls for each in found] == [(), None, None]
    assert (found[1].error.message, found[2].error.type) == ("no", "batch_expired")


def test_wrappings_may_be_mixed_and_bad_records_are_placed(tmp_path):
    """Each line is read by itself; one that is nothing of the kind is bad, with its line and why."""
    path = written(
        tmp_path, [{"messages": TALK}, TALK, completion("x"), {"rows": 3}, 7, {"object": "chat.completion.chunk"}]
    )
    path.write_text(path.read_text() + '{"messages": [\n')
    found = read("openai", path)
    bad = [(each.source.line, each.reason) for each in found if isinstance(each, BadRecord)]
    assert [each.id for each in found if not isinstance(each, BadRecord)] == ["log:0", "log:1", "log:2"]
    assert [line for line, _ in bad] == [4, 5, 6, 7]
    assert "no messages" in bad[0][1]
    assert "an object or a list of messages" in bad[1][1]
    assert "streamed" in bad[2][1]
    assert "not JSON" in bad[3][1]


def test_a_damaged_first_line_does_not_hide_the_others(tmp_path):
    path = written(tmp_path, [{"messages": TALK}, {"messages": TALK}])
    path.write_text('{"messages": [{"role": "us\n' + path.read_text())
    found = read("openai", path)
    assert [type(each).__name__ for each in found] == ["BadRecord", "Sample", "Sample"]
    assert certainties(path)["openai"] > 0.5


def test_a_long_first_line_of_a_list_is_still_a_line(tmp_path):
    """Whether lines or one conversation is told by what follows, however far that is."""
    long = [TALK[0], {"role": "assistant", "content": "x" * 100_000}]
    path = written(tmp_path, [long, TALK])
    assert [len(each.text) for each in read("openai", path)] == [100_000, 5]
    assert certainties(path)


@pytest.mark.parametrize("name", [name for name in FILES if "page" not in name])
def test_reader_keeps_the_contract(tmp_path, name):
    path = tmp_path / "talk.jsonl"
    path.write_text(FILES[name], encoding="utf-8")
    testing.check_reader(OpenAILogs(), path, scratch=tmp_path)


@pytest.mark.parametrize("name", ["lines", "list", "lines of lists", "list of lists"])
def test_any_split_gives_the_same_samples(tmp_path, monkeypatch, name):
    """Where files are cut does not matter."""
    path = tmp_path / "talk.jsonl"
    path.write_text(FILES[name], encoding="utf-8")
    whole = read("openai", path)
    for place in ("records", "files", "lists"):
        monkeypatch.setattr(f"gradestack.jsonio.{place}.SHARD_BYTES", 1)
    assert read("openai", path) == whole
