"""Conversations as their own libraries write them.

Calls, results, errors and tokens are what the libraries hold.
"""

import asyncio
import json

import pytest

from tests.plugins.chat_files import read, written

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("default")]
ARGUMENTS = {"ref": "A1", "to": [2, None, {"é": 1.5}]}
USED = {"input_tokens": 30, "output_tokens": 7, "total_tokens": 37}


def described_calls(sample):
    return [
        (call.name, call.arguments, call.raw_arguments, call.result, call.status)
        for call in sample.calls
    ]


def spoken(messages):
    made = messages.AIMessage(
        content="I look.",
        tool_calls=[
            {"name": "find", "args": ARGUMENTS, "id": "c1"},
            {"name": "move", "args": {}, "id": "c2"},
        ],
        invalid_tool_calls=[{"name": "note", "args": '{"a": ', "id": "c3", "error": "no JSON"}],
        usage_metadata={
            **USED,
            "input_token_details": {"cache_read": 10},
            "output_token_details": {"reasoning": 3},
        },
        response_metadata={"model_name": "m-1"},
    )
    tool_message = messages.ToolMessage(content="taken", tool_call_id="c2", status="error")
    results = [
        tool_message,
        messages.ToolMessage(
            content=[{"type": "text", "text": "room 100"}], tool_call_id="c1", artifact={"x": 1}
        ),
    ]
    system_message = messages.SystemMessage("Desk.")
    human_message = messages.HumanMessage("Move A1.")
    return [
        system_message,
        human_message,
        made,
        *results,
        messages.AIMessage("Done."),
    ]


@pytest.mark.parametrize("form", ["messages_to_dict", "dumpd", "model_dump", "model_dump_json"])
@pytest.mark.parametrize("reader", ["records", "jsonl", "openai"])
def test_langchain(tmp_path, form, reader):
    messages = pytest.importorskip("langchain_core.messages")
    load = pytest.importorskip("langchain_core.load")
    talk = spoken(messages)
    forms = {
        "messages_to_dict": lambda: messages.messages_to_dict(talk),
        "dumpd": lambda: load.dumpd(talk),
        "model_dump": lambda: [message.model_dump() for message in talk],
        "model_dump_json": lambda: [json.loads(message.model_dump_json()) for message in talk],
    }
    (sample,) = read(reader, written(tmp_path, [{"id": "a", "messages": forms[form]()}]))
    assert described_calls(sample) == [
        ("find", ARGUMENTS, None, "room 100", "ok"),
        ("move", {}, None, "taken", "error"),
        ("note", None, '{"a": ', None, None),
    ]
    assert sample.text == "Done."
    assert sample.input == "Move A1."
    if reader != "jsonl":
        assert sample.model == "m-1"
        assert sample.usage.input_tokens == 30
        assert sample.usage.cached_input_tokens == 10
        assert sample.usage.output_tokens == 7
        assert sample.usage.reasoning_tokens == 3
        assert sample.usage.requests == 1


def test_agents_sdk(tmp_path):
    agents = pytest.importorskip("agents")
    responses = pytest.importorskip("openai.types.responses")

    class Model(agents.Model):
        async def get_response(self, *request, **more):
            done = "function_call_output" in str((request, more))
            call = {
                "type": "function_call",
                "call_id": "c1",
                "name": "move",
                "arguments": '{"ref": "A1"}',
            }
            output_message = {"type": "output_text", "text": "Done.", "annotations": []}
            last = {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "status": "completed",
                "content": [output_message],
            }
            if done:
                item = responses.ResponseOutputMessage(**last)
            else:
                item = responses.ResponseFunctionToolCall(**call)
            usage = agents.Usage()
            return agents.ModelResponse(output=[item], usage=usage, response_id=None)

        def stream_response(self, *request, **more):
            raise AssertionError

    @agents.function_tool
    def move(ref: str) -> str:
        raise LookupError(ref)

    agents.set_tracing_disabled(disabled=True)
    agent = agents.Agent(name="Desk", model=Model(), tools=[move])
    result = asyncio.run(agents.Runner.run(agent, "Move A1."))
    raws = [
        item.raw_item if isinstance(item.raw_item, dict) else item.raw_item.model_dump()
        for item in result.new_items
    ]
    pairs = zip(result.new_items, raws, strict=True)
    items = [{"type": item.type, "raw_item": raw} for item, raw in pairs]
    (one,) = read(
        "records", written(tmp_path, [{"id": "a", "input": "Move A1.", "new_items": items}])
    )
    input_list = result.to_input_list()
    (other,) = read("records", written(tmp_path, [{"id": "a", "items": input_list}]))
    for sample in (one, other):
        ((name, arguments, _, output, status),) = described_calls(sample)
        assert name == "move"
        assert arguments == {"ref": "A1"}
        assert status == "error"
        assert sample.text == "Done."
        assert sample.input == "Move A1."
        expected = next(
            item.output for item in result.new_items if item.type == "tool_call_output_item"
        )
        assert output == expected


def test_anthropic(tmp_path):
    types = pytest.importorskip("anthropic.types")
    use = {"type": "tool_use", "id": "t1", "name": "find", "input": ARGUMENTS}
    about = {"type": "message", "role": "assistant", "model": "m-1", "stop_sequence": None}
    usage = {
        "input_tokens": 10,
        "output_tokens": 4,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 1,
    }
    first = types.Message(id="msg_1", content=[use], stop_reason="tool_use", usage=usage, **about)
    text = {"type": "text", "text": "Done."}
    last = types.Message(id="msg_2", content=[text], stop_reason="end_turn", usage=usage, **about)
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "taken", "is_error": True}
    request = [{"role": "user", "content": "Move A1."}]
    talk = [
        *request,
        first.model_dump(),
        {"role": "user", "content": [result]},
        last.model_dump(exclude_none=True),
    ]
    for reader in ("anthropic", "openai", "records"):
        (sample,) = read(reader, written(tmp_path, [{"id": "a", "messages": talk}]))
        assert described_calls(sample) == [("find", ARGUMENTS, None, "taken", "error")]
        assert sample.model == "m-1"
        assert sample.usage.input_tokens == 32
        assert sample.usage.output_tokens == 8
        assert sample.text == "Done."
        assert sample.usage.cached_input_tokens == 10
        assert sample.usage.requests == 2
