"""One answer in several lines is one answer: a law of every dialect with ids of messages."""

import json

import pytest

from gradestack import Inputs
from gradestack.suites.recognition import name_inputs
from gradestack_plugins.readers.chat.conversation import conversation_of
from tests.core.outcomes import data
from tests.plugins.test_published_forms import REGISTRY

TALKS = data(__file__, "whole_answers.yaml")


def pieces(message):
    """Yield a line for each part of an answer, and for each of its calls; others as they are."""
    parts = message["content"]
    tool_calls = message.get("tool_calls")
    calls = tool_calls or []
    role = message["role"]
    if role != "assistant" or not isinstance(parts or [], list):
        yield message
        return
    for part in parts or ():
        yield {**message, "content": [part], "tool_calls": None}
    for call in calls:
        yield {**message, "content": None, "tool_calls": [call]}


def conversation_fields(messages):
    conversation = conversation_of(messages)
    fields = conversation.fields_beside(())
    turns = []
    for turn in fields["turns"]:
        turns.append([entry.role for entry in turn])
    return {**fields, "turns": turns}


@pytest.mark.parametrize("name", TALKS)
def test_an_answer_in_pieces_is_one_answer(name):
    """Its usage counts once, its calls share a step, whatever results stand between the lines."""
    conversation = TALKS[name]
    messages = [piece for message in conversation for piece in pieces(message)]
    assert conversation_fields(messages) == conversation_fields(conversation)


@pytest.mark.parametrize("name", TALKS)
def test_a_later_state_of_an_answer_is_that_answer(name):
    conversation = TALKS[name]
    growing = []
    for message in conversation:
        content = message["content"]
        role = message["role"]
        is_in_parts = role == "assistant" and isinstance(content, list)
        if is_in_parts:
            lengths = range(1, len(content) + 1)
        else:
            lengths = [None]
        growing += [{**message, "content": content[:length]} for length in lengths]
    assert conversation_fields(growing) == conversation_fields(conversation)


def test_an_id_that_questions_have_too_is_no_answer_s():
    """It is that of the conversation: each answer is one."""
    messages = [
        {"id": "talk", "role": "user", "content": "Go"},
        {"id": "talk", "role": "assistant", "content": "One."},
        {"id": "talk", "role": "assistant", "content": "Two."},
    ]
    talk = conversation_of(messages)
    assert talk.step == 1
    assert talk.text == "Two."


def test_the_lines_of_a_file_are_pieces_too(tmp_path):
    path = tmp_path / "talk.jsonl"
    blocks = TALKS["blocks"]
    lines = [piece for message in blocks for piece in pieces(message)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reader = REGISTRY.load("reader", "anthropic")()
    inputs = Inputs(data=name_inputs([path]))
    (shard,) = reader.plan(inputs, None)
    index = reader.index(inputs)
    (sample,) = reader.read(shard, index)
    assert sample.usage.requests == 2
    assert sample.usage.input_tokens == 215
    steps = [call.step for call in sample.calls]
    assert steps == [0, 0]
