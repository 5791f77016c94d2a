"""However messages are wrapped: the same samples, with ids, usage and how they ended."""

import json

import pytest

from gradestack import BadRecord, Status, Usage, testing
from gradestack_plugins.anthropic_logs.reader import AnthropicLogs
from tests.core.outcomes import data
from tests.plugins.chat_files import certainties, check_reference, read, written

DATA = data(__file__, "records.yaml")

CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
ASKED = {"model": "claude-x", "max_tokens": 9, "system": "Be brief.", "messages": [{"role": "user", "content": "hi"}]}
USAGE = {"input_tokens": 5, "output_tokens": 6, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}


def message(*blocks, **more):
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": list(blocks)}
    return {**whole, "stop_reason": "end_turn", "usage": USAGE, **more}


SAID = {"type": "text", "text": "hello"}


def test_published_files_give_their_samples():
    """Every file of the form says what its expectations say."""
    check_reference("anthropic")


@pytest.mark.parametrize(
    "record",
    [
        {**ASKED, "messages": [*ASKED["messages"], {"role": "assistant", "content": [SAID]}]},
        {"request": ASKED, "response": message(SAID)},
        {"request": {"body": json.dumps(ASKED)}, "response": {"status_code": 200, "body": message(SAID)}},
        {**ASKED, "response": message(SAID)},
        {**ASKED, "response": [SAID]},
        {**ASKED, "response": "hello"},
        {"params": ASKED, "result": {"type": "succeeded", "message": message(SAID)}, "custom_id": "a"},
        {
            **ASKED,
            "messages": [*ASKED["messages"], {"role": "assistant", "content": [SAID]}],
            "response": message(SAID),
        },
    ],
    ids=range(8),
)
def test_requests_and_answers_make_one_conversation(tmp_path, record):
    """The answer stands behind the request, once."""
    (found,) = read("anthropic", written(tmp_path, [record]))
    assert [(m.role, m.content) for turn in found.turns for m in turn] == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", "hello"),
    ]
    assert (found.model, found.text, found.calls) == ("claude-x", "hello", ())


def test_usage_adds_what_the_cache_read_and_wrote(tmp_path):
    """The API's input tokens leave both out."""
    details = {"output_tokens_details": {"thinking_tokens": 4}}
    (found,) = read("anthropic", written(tmp_path, [message(SAID, usage={**USAGE, **details})]))
    assert found.usage == Usage(
        requests=1, input_tokens=10, cached_input_tokens=3, cache_write_tokens=2, output_tokens=6, reasoning_tokens=4
    )
    assert found.trace == {"response_id": "msg_1"}


@pytest.mark.parametrize(("reason", "ended"), DATA["the_stop_reason_says_how_a_run_ended"])
def test_the_stop_reason_says_how_a_run_ended(tmp_path, reason, ended):
    """One that waits for results, or is paused, has not."""
    (found,) = read("anthropic", written(tmp_path, [message(SAID, stop_reason=reason)]))
    assert (found.ended, found.status) == (ended, Status.OK)


def test_batch_results_that_failed_are_failed_runs(tmp_path):
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    results = [{"type": "errored", "error": error}, {"type": "expired"}, {"type": "canceled"}]
    lines = [{"custom_id": each["type"], "result": each} for each in results]
    found = read("anthropic", written(tmp_path, lines))
    assert [(each.id, each.status, each.ended, each.calls) for each in found] == [
        ("errored", Status.FAILED, "error", None),
        ("expired", Status.FAILED, "error", None),
        ("canceled", Status.FAILED, "cancelled", None),
    ]
    assert (found[0].error.type, found[0].error.message) == ("invalid_request_error", "no")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(message(SAID), indent=2),
        json.dumps([ASKED, {"messages": [{"role": "assistant", "content": [CALL]}]}]),
        json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": [CALL]}]),
        "\n".join(
            json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": [CALL]}]) for _ in "ab"
        ),
        json.dumps({"model": "claude-x", "messages": ASKED["messages"]}),
    ],
    ids=["indented", "list", "conversation", "lines of lists", "by its model"],
)
def test_every_layout_is_recognised(tmp_path, text):
    """By blocks, tools, wrapping, or the model's name where nothing else tells."""
    path = tmp_path / "log.json"
    path.write_text(text, encoding="utf-8")
    assert max(certainties(path).items(), key=lambda each: each[1])[0] == "anthropic"
    assert not [each for each in read("anthropic", path) if isinstance(each, BadRecord)]


def test_openai_calls_of_a_claude_model_are_openais(tmp_path):
    """Gateways log other models in OpenAI's form."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    talk = [*ASKED["messages"], {"role": "assistant", "content": None, "tool_calls": [call]}]
    path = written(tmp_path, [{"model": "claude-x", "messages": talk}])
    assert list(certainties(path)) == ["openai"]


def test_bad_records_are_placed(tmp_path):
    """A line that is nothing of the kind is bad, with its line and why."""
    found = read("anthropic", written(tmp_path, [message(SAID), {"rows": 1}, "x"]))
    assert [(each.source.line, "expected" in each.reason) for each in found[1:]] == [(2, True), (3, True)]


def test_reader_keeps_the_contract(tmp_path):
    path = written(tmp_path, [{**ASKED, "response": message(SAID, CALL)}, message(SAID)])
    testing.check_reader(AnthropicLogs(), path, scratch=tmp_path)
