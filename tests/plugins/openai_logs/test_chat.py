"""Chat messages: calls with their results, turns, texts, and what is remarked."""

import pytest

from tests.core.outcomes import data
from tests.plugins.chat_files import read, written

DATA = data(__file__, "chat.yaml")

USER = {"role": "user", "content": "Refund T-3."}


def call(identifier, arguments='{"ticket": "T-3"}', name="refund"):
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def made(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(identifier, content):
    return {"role": "tool", "tool_call_id": identifier, "content": content}


@pytest.fixture
def sample(tmp_path):
    def one(*messages, **more):
        (read_sample,) = read("openai", written(tmp_path, [{"messages": list(messages), **more}]))
        return read_sample

    return one


@pytest.mark.parametrize("result_text", DATA["a_result_that_says_it_failed_is_an_error"])
def test_a_result_that_says_it_failed_is_an_error(sample, result_text):
    """The API has no mark for it, so it is read from the result."""
    calls = sample(USER, made(call("a")), result("a", result_text)).calls
    call_found = calls[0]
    assert call_found.status == "error"
    assert call_found.result == result_text
    assert call_found.error


@pytest.mark.parametrize(
    "result_text",
    ["no Error: here", '{"error": null, "n": 1}', '{"error": false}', "", "Errors are rare."],
)
def test_a_result_that_only_speaks_of_errors_is_none(sample, result_text):
    """A word in it is no failure."""
    calls = sample(USER, made(call("a")), result("a", result_text)).calls
    call_found = calls[0]
    assert call_found.status == "ok"
    assert call_found.error is None
    assert call_found.result == result_text
