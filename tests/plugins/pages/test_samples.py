import io
import json

import pytest

from gradestack import Report
from gradestack_plugins.pages.index import Entry, index_of
from gradestack_plugins.pages.sample import SharedTexts, conversation, sample


def view(row, limit=1000):
    report = Report(path=None, header={}, summary={}, held=io.BytesIO(json.dumps(row).encode()))
    (entry,) = index_of(report).entries
    return sample(Entry.of(entry), row, limit, SharedTexts(limit))


def talk(trajectory, limit=1000):
    shared = SharedTexts(limit)
    return conversation(trajectory, limit, shared), shared


def test_messages_keep_roles_names_and_calls():
    """Every message has its role, content and calls; argument text is laid out as JSON."""
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"id": 1}'}}]
    found, _ = talk(
        [
            [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "name": "look", "content": "ok"},
            ]
        ]
    )
    first, second = found.turns[0].messages
    assert (first.style, first.body.shown, first.calls[0].name) == ("assistant", "", "look")
    assert first.calls[0].arguments.shown == '{"id": 1}'
    assert (second.style, second.name, second.body.shown) == ("tool", "look", "ok")
    assert (found.count, found.left_out, found.turns[0].number) == (2, 0, 0)


def test_turns_are_numbered_when_there_are_several():
    """Several turns are told apart; messages without turns are one turn."""
    messages = [{"role": "user", "content": "a"}]
    assert [turn.number for turn in talk([messages, messages])[0].turns] == [1, 2]
    assert [turn.number for turn in talk(messages)[0].turns] == [0]


def test_long_system_messages_are_kept_once():
    """A long system message is put aside once for all samples, a short one stays in place."""
    long, short = {"role": "system", "content": "p" * 700}, {"role": "system", "content": "short"}
    shared = SharedTexts(1000)
    first = conversation([[long, short]], 1000, shared)
    second = conversation([[long]], 1000, shared)
    assert [message.shared for message in first.turns[0].messages] == [1, 0]
    assert second.turns[0].messages[0].shared == 1
    assert [text.shown for text in shared.texts] == ["p" * 700]


def test_long_conversations_are_cut_and_counted():
    """Beyond two hundred messages the rest is counted."""
    found, _ = talk([[{"role": "user", "content": "a"}] * 150] * 2)
    assert (sum(len(turn.messages) for turn in found.turns), found.count, found.left_out) == (200, 300, 100)


def test_long_messages_are_cut_and_folded():
    """A message over the limit shows its beginning, says what is left out, and is folded."""
    message = talk([[{"role": "user", "content": "x" * 5000}]])[0].turns[0].messages[0]
    assert (len(message.body.shown), message.body.dropped, message.folded, message.size) == (1000, 4000, True, 5000)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([{"type": "text", "text": "a"}, {"type": "image", "url": "u"}, "b"], 'a\n{"type": "image", "url": "u"}\nb'),
        ({"x": 1}, '{"x": 1}'),
        (3, "3"),
        (None, ""),
    ],
)
def test_content_of_any_type_is_shown(content, shown):
    """Content given as parts or as any other value becomes text."""
    assert talk([[{"role": "user", "content": content}]])[0].turns[0].messages[0].body.shown == shown


@pytest.mark.parametrize(
    "trajectory", [None, 3, "x", [], [[]], [None, 3], [[None, 3, "x"]], [[{"tool_calls": [1, {}]}]]]
)
def test_odd_trajectories_never_raise(trajectory):
    """Whatever stands where the conversation should be, the sample is shown."""
    talk(trajectory)


def test_an_ungraded_sample_has_no_zero():
    """The 0.0 that a row carries for an ungraded sample is not shown as a score."""
    grade = {"score": 0.0, "state": "skipped", "rationale": "no reference"}
    found = view({"sample": {"id": "t"}, "state": "skipped", "grade": grade, "grades": {"g": grade}})
    assert (found.entry.score, found.entry.shown, found.entry.verdict) == (None, "skipped", "skipped")
    assert [(each.score, each.fraction, each.shade) for each in found.grades] == [("skipped", None, "skipped")]


def test_a_broken_sample_says_why():
    """The fault of a failed grade is the first thing said."""
    fault = {"category": "target", "code": "boom", "type": "ValueError", "message": "bad thing"}
    grade = {"score": 0.0, "state": "failed", "fault": fault}
    found = view({"state": "failed", "grade": grade, "grades": {"g": grade}, "error": fault})
    assert found.gist == "target boom (ValueError): bad thing"
    assert found.error == found.gist


def test_labels_and_plans_stand_side_by_side():
    """A classification shows both labels, a planner both plans."""
    row = {
        "grade": {"score": 0.0, "state": "graded", "label": "direct", "gold": "tool_call"},
        "expected": {"label": "tool_call", "plan": {"steps": [1]}},
        "predicted": {"label": "direct", "plan": {"steps": [2]}},
    }
    found = view(row)
    assert found.labels == (("Expected", "tool_call"), ("Predicted", "direct"))
    assert [name for name, _ in found.plans] == ["Expected plan", "Predicted plan"]
    assert found.gist == "predicted direct, expected tool_call"


def test_another_grader_may_say_why():
    """Where the headline grade gives no reason, the first other grade that does is quoted."""
    head, other = {"score": 0.5, "state": "graded"}, {"score": 0.0, "state": "graded", "reasons": [{"code": "wrong"}]}
    assert view({"state": "graded", "grade": head, "grades": {"a": head, "b": other}}).gist == "b: wrong"


def test_reasons_of_items_are_not_repeated():
    """A reason told at its item is not told again at the grade, and one that only repeats the rationale loses it."""
    inside = {"code": "wrong", "pointer": "/a"}
    grade = {
        "score": 0.5,
        "state": "graded",
        "rationale": "because",
        "reasons": [inside, {"code": "extra", "message": "because"}],
        "items": [{"id": "1", "outcome": "graded", "score": 0.5, "reasons": [inside], "parts": {"args": None}}],
    }
    (found,) = view({"state": "graded", "grade": grade, "grades": {"g": grade}}).grades
    assert found.reasons == ("extra",)
    assert [(item.id, item.score, item.reasons, item.parts) for item in found.items] == [
        ("1", "0.500", ("wrong /a",), "args n/a")
    ]


def test_items_without_score_show_their_state():
    """An ungraded item shows its state, not a zero."""
    items = [{"id": "s", "outcome": "failed", "score": None, "fault": {"code": "c", "message": "m"}}]
    grade = {"score": 1.0, "state": "graded", "items": items}
    (found,) = view({"state": "graded", "grade": grade, "grades": {"g": grade}}).grades
    assert [(item.score, item.reasons) for item in found.items] == [("failed", ("c: m",))]


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"sample": None, "grade": 3, "grades": "x", "expected": [], "predicted": None, "source": 3, "tools": {}},
        {
            "sample": {"id": ["x"], "input": {"a": 1}, "ground_truth": [1]},
            "run": {"k": 1},
            "recorded": [1],
            "facets": 2,
        },
        {"grade": {"state": 3, "score": "x", "items": [None], "reasons": [None], "parts": [1], "metadata": 3}},
        {"grade": {"score": float("nan"), "state": "graded"}, "passed": "yes", "error": "text", "agent_usage": [1]},
    ],
)
def test_odd_rows_never_raise(row):
    """Any key of a row may be missing or of another type."""
    found = view(row)
    assert found.entry.score is None


def test_what_a_run_took_and_thought_is_shown_where_recorded():
    """Usage and how it ended stand among the facts, reasoning before its message, and nothing where there is none."""
    usage = {"input_tokens": 1200, "cost_usd": 0.5, "seconds": 3}
    message = {"role": "assistant", "content": "Hi", "reasoning": "Think"}
    found = view({"usage": usage, "ended": "stopped", "trajectory": [[message]]})
    facts = dict(found.facts)
    assert facts["Ended"] == "stopped"
    assert sorted(facts["Took"].split(", ")) == ["cost_usd 0.500", "input_tokens 1,200", "seconds 3"]
    assert found.conversation.turns[0].messages[0].reasoning.shown == "Think"
    bare = view({"trajectory": [[{"role": "assistant", "content": "Hi", "reasoning": None}]]})
    assert not {"Took", "Ended"} & dict(bare.facts).keys()
    assert bare.conversation.turns[0].messages[0].reasoning.shown == ""
