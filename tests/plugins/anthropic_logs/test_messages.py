"""Content blocks: calls with their results, thinking, turns, and what is remarked."""

import pytest

from tests.plugins.chat_files import read, written

USER = {"role": "user", "content": "Refund T-3."}


def use(identifier, name="refund", **given):
    return {"type": "tool_use", "id": identifier, "name": name, "input": given}


def result(identifier, content, **more):
    return {"type": "tool_result", "tool_use_id": identifier, "content": content, **more}


def says(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def told(*blocks):
    return {"role": "user", "content": list(blocks)}


@pytest.fixture
def sample(tmp_path):
    def one(*messages, **more):
        (found,) = read("anthropic", written(tmp_path, [{"messages": list(messages), **more}]))
        return found

    return one


def test_results_are_matched_by_id_and_start_no_turn(sample):
    """A user message that holds only results belongs to the turn at hand."""
    found = sample(
        USER, says(use("a", t=1), use("b", t=2)), told(result("b", "two"), result("a", "one")), says(use("c"))
    )
    assert [(c.id, c.arguments, c.result, c.status, c.turn, c.step) for c in found.calls] == [
        ("a", {"t": 1}, "one", "ok", 0, 0),
        ("b", {"t": 2}, "two", "ok", 0, 0),
        ("c", {}, None, None, 0, 1),
    ]
    assert found.input == "Refund T-3."
    assert [m.role for m in found.turns[0]] == ["user", "assistant", "tool", "tool", "assistant"]
    assert found.remarks == {"id_made": 1, "call_without_result": 1}


def test_a_message_with_results_and_text_begins_a_turn(sample):
    again = told(result("a", "one"), {"type": "text", "text": "And T-4?"})
    found = sample(USER, says(use("a")), again, {"role": "assistant", "content": "Done."})
    assert [[m.role for m in turn] for turn in found.turns] == [["user", "assistant", "tool"], ["user", "assistant"]]
    assert found.input == ("Refund T-3.", "And T-4?")
    assert (found.calls[0].result, found.text) == ("one", "Done.")


def test_errors_are_what_the_format_marks(sample):
    """A text that begins like one is a result like any other."""
    found = sample(
        USER, says(use("a"), use("b")), told(result("a", "used", is_error=True), result("b", "Error: no mark"))
    )
    assert [(c.status, c.error, c.result) for c in found.calls] == [
        ("error", "used", "used"),
        ("ok", None, "Error: no mark"),
    ]


def test_results_of_blocks_are_text_where_they_are_text_alone(sample):
    """Others are kept as they are."""
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    found = sample(
        USER,
        says(use("a"), use("b"), use("c")),
        told(result("a", texts), result("b", [{"type": "image"}]), result("c", [])),
    )
    assert [c.result for c in found.calls] == ["a\nb", [{"type": "image"}], []]
    assert {c.status for c in found.calls} == {"ok"}


def test_server_tools_carry_their_results_in_the_answer(sample):
    search = {"type": "server_tool_use", "name": "web_search", "input": {"query": "x"}}
    problem = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    found = sample(
        USER,
        says(
            {**search, "id": "1"},
            {"type": "web_search_tool_result", "tool_use_id": "1", "content": [{"title": "t"}]},
            {**search, "id": "2"},
            {"type": "web_search_tool_result", "tool_use_id": "2", "content": problem},
            {"type": "text", "text": "End"},
        ),
    )
    assert [(c.kind, c.status, c.error_type) for c in found.calls] == [
        ("builtin", "ok", None),
        ("builtin", "error", "max_uses_exceeded"),
    ]
    assert found.text == "End"


def test_mcp_tools_name_their_server(sample):
    tools = [{"type": "mcp_toolset", "mcp_server_name": "rail"}, {"name": "refund", "input_schema": {"type": "object"}}]
    found = sample(
        USER,
        says(
            {"type": "mcp_tool_listing", "mcp_server_name": "rail", "tools": [{"name": "find", "input_schema": {}}]},
            {"type": "mcp_tool_use", "id": "1", "name": "find", "server_name": "rail", "input": {}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "1",
                "is_error": True,
                "content": [{"type": "text", "text": "boom"}],
            },
        ),
        tools=tools,
    )
    assert (found.calls[0].kind, found.calls[0].server, found.calls[0].error) == ("mcp", "rail", "boom")
    assert [tool.name for tool in found.tools] == ["refund", "find"]
    assert found.tools[0].parameters == {"type": "object"}
    assert found.remarks == {"id_made": 1}


def test_thinking_is_reasoning_and_no_text(sample):
    """What is redacted is counted."""
    thoughts = [{"type": "thinking", "thinking": each, "signature": "s"} for each in ("one", "two")]
    found = sample(USER, says(*thoughts, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Done."}))
    assert found.turns[0][1].reasoning == "one\ntwo"
    assert found.text == "Done."
    assert found.remarks == {"id_made": 1, "block:redacted_thinking": 1}


def test_text_in_several_blocks_is_one_text(sample):
    """An answer with citations comes in pieces of a sentence."""
    found = sample(USER, says({"type": "text", "text": "Do", "citations": [{}]}, {"type": "text", "text": "ne."}))
    assert found.text == "Done."


def test_oddities_are_counted(sample):
    """Results without a call, calls answered twice, blocks and messages of no known kind."""
    found = sample(
        USER,
        7,
        {"content": "x"},
        says(use("a"), {"type": "hologram"}, {"type": "tool_use", "id": "b", "input": {}}),
        told(result("a", "one"), result("a", "two"), result("x", "three"), {"type": "document"}),
    )
    assert found.remarks == {
        "id_made": 1,
        "message:other": 1,
        "message_without_role": 1,
        "block:hologram": 1,
        "call_without_name": 1,
        "second_result": 1,
        "result_without_call": 1,
        "block:document": 1,
        "call_without_result": 1,
    }
