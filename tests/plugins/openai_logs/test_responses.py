"""Responses: items of one answer, built-in and MCP tools, approvals, and how a response ended."""

import pytest

from tests.core.outcomes import data
from tests.plugins.chat_files import read, written

DATA = data(__file__, "responses.yaml")

USER = {"role": "user", "content": "Book it."}
SAID = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Done."}],
}


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


def test_items_of_one_answer_are_one_message(items):
    """Reasoning, text and calls up to the next result belong to one step."""
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    found = items(
        USER,
        thought,
        function_call("a"),
        function_call("b"),
        output("b", "2"),
        output("a", "1"),
        SAID,
    )
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
    found = items(
        USER, function_call("a", "f"), function_call("b", "g"), output(None, "of g", name="g"), bare
    )
    assert [c.result for c in found.calls] == [None, "of g"]
    assert found.remarks["result_without_call"] == 1


@pytest.mark.parametrize("error", ["boom", {"type": "http_error", "code": 500, "message": "boom"}])
def test_an_mcp_call_is_call_and_result_in_one(items, error):
    """The error is text in older releases and an object in newer ones."""
    common = {"type": "mcp_call", "server_label": "rail", "name": "find", "arguments": '{"a": 1}'}
    found = items(
        USER, {**common, "id": "1", "output": "ok"}, {**common, "id": "2", "error": error}
    )
    assert [(c.server, c.kind, c.status, c.result) for c in found.calls] == [
        ("rail", "mcp", "ok", "ok"),
        ("rail", "mcp", "error", None),
    ]
    assert found.calls[1].error == "boom"
    assert found.calls[1].error_type == (None if isinstance(error, str) else "http_error")


def test_approvals_tell_what_was_run(items):
    """Approved: the call that follows is the same one.

    Refused: denied. Without an answer: not run.
    """
    ask = {
        "type": "mcp_approval_request",
        "server_label": "rail",
        "name": "book",
        "arguments": '{"seat": 1}',
    }
    done = DATA["approvals_tell_what_was_run"]
    found = items(
        USER,
        {**ask, "id": "1"},
        {"type": "mcp_approval_response", "approval_request_id": "1", "approve": True},
        done,
        {**ask, "id": "2"},
        {
            "type": "mcp_approval_response",
            "approval_request_id": "2",
            "approve": False,
            "reason": "too dear",
        },
        {**ask, "id": "3"},
    )
    assert [(c.status, c.result, c.error) for c in found.calls] == [
        ("ok", "ok", None),
        ("denied", None, "too dear"),
        ("not_run", None, None),
    ]
    assert all(c.arguments == {"seat": 1} for c in found.calls)
    assert found.remarks == {"id_made": 1}
