"""However messages are wrapped: the same samples, with ids, usage and how they ended."""

import pytest

from gradestack import BadRecord, testing
from gradestack_plugins.readers.api_logs import AnthropicLogs
from tests.core.outcomes import data
from tests.plugins.chat_files import certainties, read, written

DATA = data(__file__, "records.yaml")

CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
ASKED = {
    "model": "claude-x",
    "max_tokens": 9,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "hi"}],
}
USAGE = {
    "input_tokens": 5,
    "output_tokens": 6,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 2,
}


def message(*blocks, **more):
    message_record = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(blocks),
    }
    return {**message_record, "stop_reason": "end_turn", "usage": USAGE, **more}


SAID = {"type": "text", "text": "hello"}


@pytest.mark.parametrize(
    "text",
    DATA["every_layout_is_recognised"],
    ids=["indented", "list", "conversation", "lines of lists", "by its model"],
)
def test_every_layout_is_recognised(tmp_path, text):
    """By blocks, tools, wrapping, or the model's name where nothing else tells."""
    path = tmp_path / "log.json"
    path.write_text(text, encoding="utf-8")
    largest_certainty = max(certainties(path).items(), key=lambda entry: entry[1])
    assert largest_certainty[0] == "anthropic"
    records = read("anthropic", path)
    assert not [record for record in records if isinstance(record, BadRecord)]


def test_openai_calls_of_a_claude_model_are_openais(tmp_path):
    """Gateways log other models in OpenAI's form."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    talk = [*ASKED["messages"], {"role": "assistant", "content": None, "tool_calls": [call]}]
    path = written(tmp_path, [{"model": "claude-x", "messages": talk}])
    assert list(certainties(path)) == ["openai"]


def test_reader_keeps_the_contract(tmp_path):
    response = message(SAID, CALL)
    path = written(tmp_path, [{**ASKED, "response": response}, message(SAID)])
    testing.check_reader(AnthropicLogs(), path, scratch=tmp_path)
