"""Chat messages: calls with their results, turns, texts, and what is remarked."""

import json

import pytest

from gradestack import Status, Usage
from tests.core.outcomes import data
from tests.plugins.chat_files import read, written

DATA = data(__file__, "chat.yaml")

USER = {"role": "user", "content": "Refund T-3."}
TOOL = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}


def call(identifier, arguments='{"ticket": "T-3"}', name="refund"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


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
    found = sample(USER, made(call("a"), call("b")), result("b", "two"), result("a", "one"), made(call("c")))
    assert [(c.id, c.result, c.status, c.step, c.turn) for c in found.calls] == [
        ("a", "one", "ok", 0, 0),
        ("b", "two", "ok", 0, 0),
        ("c", None, None, 1, 0),
    ]
    assert found.remarks == {"id_made": 1, "call_without_result": 1}


def test_an_id_used_again_belongs_to_the_call_that_waits(sample):
    """Models that number calls anew in every answer do not lose results."""
    found = sample(USER, made(call("0")), result("0", "first"), made(call("0")), result("0", "second"))
    assert [c.result for c in found.calls] == ["first", "second"]
    assert found.remarks == {"id_made": 1}


def test_an_id_given_twice_while_the_first_waits_is_counted(sample):
    """Nobody can tell which call a result then belongs to; the older one has it."""
    found = sample(USER, made(call("a"), call("a")), result("a", "one"))
    assert [c.result for c in found.calls] == ["one", None]
    assert found.remarks == {"id_made": 1, "repeated_call_id": 1, "call_without_result": 1}


def test_results_without_a_call_and_second_results_are_counted(sample):
    """The first result stays; what has no call is left out, and both are remarked."""
    found = sample(USER, made(call("a")), result("a", "one"), result("a", "two"), result("x", "three"))
    assert found.calls[0].result == "one"
    assert found.remarks == {"id_made": 1, "second_result": 1, "result_without_call": 1}


@pytest.mark.parametrize("said", DATA["a_result_that_says_it_failed_is_an_error"])
def test_a_result_that_says_it_failed_is_an_error(sample, said):
    """The API has no mark for it, so it is read from the result."""
    found = sample(USER, made(call("a")), result("a", said)).calls[0]
    assert (found.status, found.result) == ("error", said)
    assert found.error


@pytest.mark.parametrize(
    "said", ["no Error: here", '{"error": null, "n": 1}', '{"error": false}', "", "Errors are rare."]
)
def test_a_result_that_only_speaks_of_errors_is_none(sample, said):
    """A word in it is no failure."""
    found = sample(USER, made(call("a")), result("a", said)).calls[0]
    assert (found.status, found.error, found.result) == ("ok", None, said)


def test_arguments_that_are_no_object_are_kept_as_text(sample):
    found = sample(USER, made(call("a", '{"ticket": T-8}'), call("b", "[1]")))
    assert [(c.arguments, c.raw_arguments) for c in found.calls] == [(None, '{"ticket": T-8}'), (None, "[1]")]
    assert found.remarks["undecodable_arguments"] == 2


def test_a_custom_call_has_its_text_as_input(sample):
    """A custom tool takes text, which is no undecodable object."""
    found = sample(USER, made({"id": "a", "type": "custom", "custom": {"name": "grep", "input": "a.*b"}}))
    assert (found.calls[0].name, found.calls[0].kind, found.calls[0].arguments) == ("grep", "custom", {"input": "a.*b"})


def test_legacy_results_answer_the_oldest_unanswered_call_of_their_name(sample):
    """``function_call`` has no ids; definitions in ``functions`` are remarked, not read."""
    asked = [
        {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}} for name in "fgf"
    ]
    told = [{"role": "function", "name": name, "content": text} for name, text in (("f", "1"), ("f", "2"), ("g", "3"))]
    found = sample(USER, *asked, *told, functions=[{"name": "f"}])
    assert [(c.name, c.result) for c in found.calls] == [("f", "1"), ("g", "3"), ("f", "2")]
    assert found.tools is None
    assert found.remarks["functions"] == 1


def test_each_user_message_begins_a_turn(sample):
    """What stands before the first belongs to it."""
    again = {"role": "user", "content": [{"type": "text", "text": "And"}, {"type": "text", "text": "T-4."}]}
    system = {"role": "developer", "content": "Be brief."}
    found = sample(system, {"role": "assistant", "content": "Hello!"}, USER, made(call("a")), again, made(call("b")))
    assert [[m.role for m in turn] for turn in found.turns] == [
        ["developer", "assistant", "user", "assistant"],
        ["user", "assistant"],
    ]
    assert found.input == ("Refund T-3.", "And\nT-4.")
    assert [c.turn for c in found.calls] == [0, 1]


@pytest.mark.parametrize(
    ("last", "text"),
    [*DATA["the_text_is_what_the_last_answer_says"], ({"content": "", "tool_calls": [call("z")]}, None)],
)
def test_the_text_is_what_the_last_answer_says(sample, last, text):
    """Not what an earlier one said: a run that ends in a call has no answer."""
    found = sample(USER, {"role": "assistant", "content": "Let me look."}, {"role": "assistant", **last})
    assert found.text == text


def test_parts_that_are_no_text_are_counted_by_type(sample):
    """They stay in the message; of a type that is no word, only that there was one is said."""
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "\u202e"}, {"x": 1}, 7]
    found = sample({"role": "user", "content": parts}, {"role": "assistant", "content": "b"})
    assert found.input == "a"
    assert found.turns[0][0].content == parts
    assert found.remarks == {"id_made": 1, "part:image_url": 1, "part:other": 3}


def test_odd_messages_are_counted_and_kept_where_they_can_be(sample):
    """Nothing of a conversation vanishes without a word."""
    found = sample(USER, 7, {"content": "no role"}, {"role": "critic", "content": "x"}, made(7, {"id": "a"}))
    assert found.calls == ()
    assert found.remarks == {"id_made": 1, "message:other": 1, "item:other": 1, "role:critic": 1, "call:other": 2}


def test_usage_has_cached_and_reasoning_tokens(sample):
    """What is not recorded is None, never 0; the record's own words are kept."""
    raw = {"prompt_tokens": 10, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 0}}
    found = sample(USER, {"role": "assistant", "content": "b"}, usage=raw)
    assert found.usage == Usage(requests=1, input_tokens=10, output_tokens=4, reasoning_tokens=0)
    assert found.agent_usage == raw
    assert sample(USER, {"role": "assistant", "content": "b"}, usage={"total": 3}).usage is None


def test_tools_are_read_in_every_form(sample):
    """Wrapped, flat, custom; what cannot be one is remarked."""
    tools = [
        TOOL,
        {"type": "function", "name": "flat"},
        {"type": "custom", "custom": {"name": "grep"}},
        {"type": "function"},
    ]
    found = sample(USER, {"role": "assistant", "content": "b"}, tools=tools)
    assert [tool.name for tool in found.tools] == ["refund", "flat", "grep"]
    assert found.remarks["tool:function"] == 1
    assert sample(USER, tools=[]).tools == ()


def test_a_question_alone_has_no_recorded_calls(sample):
    """Calls are unknown, not none, and it is said that there is nothing to grade."""
    found = sample(USER)
    assert (found.calls, found.text, found.status) == (None, None, Status.OK)
    assert found.remarks == {"id_made": 1, "question_without_answer": 1}


def test_reasoning_is_kept_beside_the_answer(sample):
    """As other servers of the same form write it."""
    found = sample(USER, {"role": "assistant", "content": "b", "reasoning_content": "thought"})
    assert found.turns[0][1].reasoning == "thought"


def test_keys_beside_those_of_the_form_are_counted(sample):
    """A score of the user's own is not read, and that is said."""
    found = sample(USER, {"role": "assistant", "content": "b"}, score=0.5, temperature=0)
    assert found.remarks == {"id_made": 1, "key:score": 1}


def test_results_of_text_parts_are_one_text(tmp_path):
    """Others are kept as they are."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    talk = [USER, made(call("a"), call("b")), result("a", parts), result("b", [*parts, {"type": "image"}])]
    (found,) = read("openai", written(tmp_path, [{"messages": talk}]))
    assert found.calls[0].result == "ab"
    assert found.calls[1].result[2] == {"type": "image"}
    assert json.dumps(found.calls[1].result)
