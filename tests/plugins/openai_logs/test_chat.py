"""Chat messages: calls with their results, turns, texts, and what is remarked."""

import json

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
        (found,) = read("openai", written(tmp_path, [{"messages": list(messages), **more}]))
        return found

    return one


def test_results_are_matched_by_id_whatever_their_order(sample):
    found = sample(
        USER, made(call("a"), call("b")), result("b", "two"), result("a", "one"), made(call("c"))
    )
    assert [(c.id, c.result, c.status, c.step, c.turn) for c in found.calls] == [
        ("a", "one", "ok", 0, 0),
        ("b", "two", "ok", 0, 0),
        ("c", None, None, 1, 0),
    ]
    assert found.remarks == {"id_made": 1, "call_without_result": 1}


def test_an_id_used_again_belongs_to_the_call_that_waits(sample):
    """Models that number calls anew in every answer do not lose results."""
    found = sample(
        USER, made(call("0")), result("0", "first"), made(call("0")), result("0", "second")
    )
    assert [c.result for c in found.calls] == ["first", "second"]
    assert found.remarks == {"id_made": 1}


def test_an_id_given_twice_while_the_first_waits_is_counted(sample):
    """Nobody can tell which call a result then belongs to; the older one has it."""
    found = sample(USER, made(call("a"), call("a")), result("a", "one"))
    assert [c.result for c in found.calls] == ["one", None]
    assert found.remarks == {"id_made": 1, "repeated_call_id": 1, "call_without_result": 1}


def test_results_without_a_call_and_second_results_are_counted(sample):
    """The first result stays; what has no call is left out, and both are remarked."""
    found = sample(
        USER, made(call("a")), result("a", "one"), result("a", "two"), result("x", "three")
    )
    assert found.calls[0].result == "one"
    assert found.remarks == {"id_made": 1, "second_result": 1, "result_without_call": 1}


@pytest.mark.parametrize("said", DATA["a_result_that_says_it_failed_is_an_error"])
def test_a_result_that_says_it_failed_is_an_error(sample, said):
    """The API has no mark for it, so it is read from the result."""
    found = sample(USER, made(call("a")), result("a", said)).calls[0]
    assert (found.status, found.result) == ("error", said)
    assert found.error


@pytest.mark.parametrize(
    "said",
    ["no Error: here", '{"error": null, "n": 1}', '{"error": false}', "", "Errors are rare."],
)
def test_a_result_that_only_speaks_of_errors_is_none(sample, said):
    """A word in it is no failure."""
    found = sample(USER, made(call("a")), result("a", said)).calls[0]
    assert (found.status, found.error, found.result) == ("ok", None, said)


def test_legacy_results_answer_the_oldest_unanswered_call_of_their_name(sample):
    """``function_call`` has no ids; definitions in ``functions`` are remarked, not read."""
    asked = [
        {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}}
        for name in "fgf"
    ]
    told = [
        {"role": "function", "name": name, "content": text}
        for name, text in (("f", "1"), ("f", "2"), ("g", "3"))
    ]
    found = sample(USER, *asked, *told, functions=[{"name": "f"}])
    assert [(c.name, c.result) for c in found.calls] == [("f", "1"), ("g", "3"), ("f", "2")]
    assert found.tools is None
    assert found.remarks["functions"] == 1


def test_results_of_text_parts_are_one_text(tmp_path):
    """Others are kept as they are."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    talk = [
        USER,
        made(call("a"), call("b")),
        result("a", parts),
        result("b", [*parts, {"type": "image"}]),
    ]
    (found,) = read("openai", written(tmp_path, [{"messages": talk}]))
    assert found.calls[0].result == "ab"
    assert found.calls[1].result[2] == {"type": "image"}
    assert json.dumps(found.calls[1].result)
