"""Responses: items of one answer, built-in and MCP tools, approvals, and how a response ended."""

import pytest

from gradestack import Status
from tests.plugins.chat_files import read, written

USER = {"role": "user", "content": "Book it."}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def function_call(identifier, name="f", arguments="{}"):
    return {
        "type": "function_call",
        "id": f"fc_{identifier}",
        "call_id": identifier,
        "name": name,
        "arguments": arguments,
    }


def output(identifier, text, **more):
    return {"type": "function_call_output", "call_id": identifier, "output": text, **more}


@pytest.fixture
def items(tmp_path):
    def one(*given):
        (found,) = read("openai", written(tmp_path, [list(given)]))
        return found

    return one


@pytest.fixture
def response(tmp_path):
    def one(*given, **more):
        whole = {
            "id": "resp_1",
            "object": "response",
            "model": "m",
            "status": "completed",
            "output": list(given),
            **more,
        }
        (found,) = read("openai", written(tmp_path, [whole]))
        return found

    return one


def test_items_of_one_answer_are_one_message(items):
    """Reasoning, text and calls up to the next result belong to one step."""
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    found = items(USER, thought, function_call("a"), function_call("b"), output("b", "2"), output("a", "1"), SAID)
    assert [(m.role, len(m.tool_calls), m.reasoning) for m in found.turns[0]] == [
        ("user", 0, None),
        ("assistant", 2, "hm"),
        ("tool", 0, None),
        ("tool", 0, None),
        ("assistant", 0, None),
    ]
    assert [(c.id, c.result, c.step, c.kind) for c in found.calls] == [
        ("a", "1", 0, "function"),
        ("b", "2", 0, "function"),
    ]
    assert found.text == "Done."


def test_an_output_without_call_id_answers_by_name(items):
    """The oldest unanswered call of that name; one that names none has no call."""
    bare = {"type": "function_call_output", "output": "x"}
    found = items(USER, function_call("a", "f"), function_call("b", "g"), output(None, "of g", name="g"), bare)
    assert [c.result for c in found.calls] == [None, "of g"]
    assert found.remarks["result_without_call"] == 1


@pytest.mark.parametrize("error", ["boom", {"type": "http_error", "code": 500, "message": "boom"}])
def test_an_mcp_call_is_call_and_result_in_one(items, error):
    """The error is text in older releases and an object in newer ones."""
    common = {"type": "mcp_call", "server_label": "rail", "name": "find", "arguments": '{"a": 1}'}
    found = items(USER, {**common, "id": "1", "output": "ok"}, {**common, "id": "2", "error": error})
    assert [(c.server, c.kind, c.status, c.result) for c in found.calls] == [
        ("rail", "mcp", "ok", "ok"),
        ("rail", "mcp", "error", None),
    ]
    assert found.calls[1].error == "boom"
    assert found.calls[1].error_type == (None if isinstance(error, str) else "http_error")


def test_approvals_tell_what_was_run(items):
    """Approved: the call that follows is the same one. Refused: denied. Without an answer: not run."""
    ask = {"type": "mcp_approval_request", "server_label": "rail", "name": "book", "arguments": '{"seat": 1}'}
    done = {
        "type": "mcp_call",
        "id": "m",
        "approval_request_id": "1",
        "name": "book",
        "arguments": "{}",
        "output": "ok",
    }
    found = items(
        USER,
        {**ask, "id": "1"},
        {"type": "mcp_approval_response", "approval_request_id": "1", "approve": True},
        done,
        {**ask, "id": "2"},
        {"type": "mcp_approval_response", "approval_request_id": "2", "approve": False, "reason": "too dear"},
        {**ask, "id": "3"},
    )
    assert [(c.status, c.result, c.error) for c in found.calls] == [
        ("ok", "ok", None),
        ("denied", None, "too dear"),
        ("not_run", None, None),
    ]
    assert all(c.arguments == {"seat": 1} for c in found.calls)
    assert found.remarks == {"id_made": 1}


def test_built_in_calls_say_themselves_how_they_went(items):
    """Those that the API runs carry status and results; of a client's own, the output item does."""
    found = items(
        USER,
        {"type": "web_search_call", "id": "1", "status": "completed", "action": {"query": "x"}},
        {"type": "code_interpreter_call", "id": "2", "status": "failed", "code": "1/0", "container_id": "c"},
        {"type": "file_search_call", "id": "3", "status": "completed", "queries": ["q"], "results": [{"text": "t"}]},
        {"type": "shell_call", "call_id": "4", "status": "completed", "action": {"commands": ["ls"]}},
        {"type": "apply_patch_call", "call_id": "5", "status": "completed", "operation": {"path": "x"}},
        {"type": "local_shell_call", "id": "lsh", "call_id": "6", "status": "completed", "action": {}},
        {"type": "shell_call_output", "call_id": "4", "output": [{"stdout": "a"}]},
        {"type": "apply_patch_call_output", "call_id": "5", "status": "failed", "output": "no such file"},
        {"type": "local_shell_call_output", "id": "6", "output": "b"},
    )
    assert [(c.name, c.kind, c.status) for c in found.calls] == [
        ("web_search", "builtin", "ok"),
        ("code_interpreter", "builtin", "error"),
        ("file_search", "builtin", "ok"),
        ("shell", "builtin", "ok"),
        ("apply_patch", "builtin", "error"),
        ("local_shell", "builtin", "ok"),
    ]
    assert found.calls[1].arguments == {"code": "1/0", "container_id": "c"}
    assert found.calls[4].error == "no such file"


def test_unknown_items_are_counted_by_type(items):
    found = items(USER, SAID, {"type": "hologram"}, {"id": "msg_1"}, {"type": "item_reference", "id": "x"})
    assert found.remarks == {"id_made": 1, "item:hologram": 1, "item:item_reference": 2}


def test_a_responses_object_brings_instructions_tools_and_usage(response):
    tools = [
        {"type": "function", "name": "f", "parameters": {}},
        {"type": "mcp", "server_label": "s"},
        {"type": "web_search"},
    ]
    listed = {"type": "mcp_list_tools", "tools": [{"name": "find", "input_schema": {"type": "object"}}]}
    usage = {
        "input_tokens": 9,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 1},
    }
    found = response(listed, SAID, tools=tools, usage=usage, instructions="Be brief.", conversation={"id": "conv_1"})
    assert [t.name for t in found.tools] == ["f", "web_search", "find"]
    assert found.tools[2].parameters == {"type": "object"}
    assert (found.usage.input_tokens, found.usage.cached_input_tokens, found.usage.cache_write_tokens) == (9, 3, 1)
    assert (found.turns[0][0].role, found.turns[0][0].content) == ("system", "Be brief.")
    assert found.trace == {"response_id": "resp_1", "session_id": "conv_1"}
    assert found.cluster == "conv_1"
    assert response(SAID, tools=tools).remarks["tool:mcp"] == 1


@pytest.mark.parametrize(
    ("more", "ended", "status"),
    [
        ({}, "completed", Status.OK),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "limit:max_tokens",
            Status.OK,
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "limit:content_filter",
            Status.OK,
        ),
        ({"status": "cancelled"}, "cancelled", Status.OK),
        ({"status": "failed", "error": {"code": "server_error", "message": "x"}}, "error", Status.FAILED),
    ],
)
def test_only_an_error_makes_a_run_failed(response, more, ended, status):
    """A limit or a cancellation is said, and the run is graded."""
    found = response(SAID, **more)
    assert (found.ended, found.status) == (ended, status)


def test_a_response_that_waits_for_a_result_has_not_ended(response):
    """It is completed as an answer, the run goes on."""
    assert response(function_call("a")).ended is None
