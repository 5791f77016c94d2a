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
        USER,
        says(use("a", t=1), use("b", t=2)),
        told(result("b", "two"), result("a", "one")),
        says(use("c")),
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
    assert [[m.role for m in turn] for turn in found.turns] == [
        ["user", "assistant", "tool"],
        ["user", "assistant"],
    ]
    assert found.input == ("Refund T-3.", "And T-4?")
    assert (found.calls[0].result, found.text) == ("one", "Done.")


def test_errors_are_what_the_format_marks(sample):
    """A text that begins like one is a result like any other."""
    found = sample(
        USER,
        says(use("a"), use("b")),
        told(result("a", "used", is_error=True), result("b", "Error: no mark")),
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
