"""What terminal and Markdown show of a sample."""

import io
import json

import pytest

from gradestack import Report
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.sample import gist, grade_view, grades_of
from gradestack_plugins.pages.show import Style, sample_texts
from tests.core.outcomes import data

DATA = data(__file__, "samples.yaml")


def text_of(row, width=80, max_text=1000):
    report = Report(path=None, header={}, summary={}, held=io.BytesIO(json.dumps(row).encode()))
    (entry,) = index_of(report).entries
    return next(sample_texts(report, [(entry, row)], Style(width, False, max_text)))


def talk(*trajectory, **options):
    return text_of({"trajectory": list(trajectory)}, **options).partition("Conversation")[2]


def said(content, **more):
    return {"role": "user", "content": content, **more}


@pytest.mark.parametrize(("trajectory", "lines"), DATA["a_conversation"])
def test_a_conversation(trajectory, lines):
    """Roles, names, turns where there are several, calls with their arguments, content
    of any type.
    """
    assert [line.strip() for line in talk(*trajectory).splitlines() if line.strip()] == lines


def test_long_conversations_are_cut_and_counted():
    found = talk([said("a")] * 150, [said("a")] * 150)
    assert (found.count("user\n"), "100 more messages" in found) == (200, True)
    assert "… 4,000 more characters" in talk([said("x" * 5000)], max_text=1000)


@pytest.mark.parametrize(
    "trajectory", [None, 3, "x", [], [[]], [None, 3], [[{"tool_calls": [1, {}]}]]]
)
def test_odd_trajectories_never_raise(trajectory):
    assert "row 1 of results.jsonl" in text_of({"trajectory": trajectory})


def test_an_ungraded_sample_has_no_zero():
    grade = {"score": 0.0, "state": "skipped", "rationale": "no reference"}
    row = {"sample": {"id": "t"}, "state": "skipped", "grade": grade, "grades": {"g": grade}}
    assert text_of(row).startswith("t  skipped\n")
    assert [each.score for each in grades_of(row)] == ["skipped"]


def test_a_broken_sample_says_why():
    fault = {"category": "target", "code": "boom", "type": "ValueError", "message": "bad thing"}
    grade = {"score": 0.0, "state": "failed", "fault": fault}
    row = {"state": "failed", "grade": grade, "grades": {"g": grade}, "error": fault}
    assert gist(row) == "target boom (ValueError): bad thing"
    assert f"Recorded run failed: {gist(row)}" in text_of(row)


def test_labels_and_plans_stand_side_by_side():
    row = {
        "grade": {"score": 0.0, "state": "graded", "label": "direct", "gold": "tool_call"},
        "expected": {"label": "tool_call", "plan": {"steps": [1]}},
        "predicted": {"label": "direct", "plan": {"steps": [2]}},
    }
    text = text_of(row)
    assert "expected tool_call, predicted direct" in text
    assert text.index("Expected plan") < text.index('{"steps": [1]}') < text.index("Predicted plan")
    assert gist(row) == "predicted direct, expected tool_call"


def test_another_grader_may_say_why():
    head, other = (
        {"score": 0.5, "state": "graded"},
        {"score": 0.0, "state": "graded", "reasons": [{"code": "wrong"}]},
    )
    assert gist({"state": "graded", "grade": head, "grades": {"a": head, "b": other}}) == "b: wrong"


def test_reasons_of_items_are_not_repeated():
    inside = {"code": "wrong", "pointer": "/a"}
    grade = {
        "score": 0.5,
        "state": "graded",
        "rationale": "because",
        "reasons": [inside, {"code": "extra", "message": "because"}],
        "items": [
            {
                "id": "1",
                "outcome": "graded",
                "score": 0.5,
                "reasons": [inside],
                "parts": {"args": None},
            }
        ],
    }
    assert grade_view("g", grade).reasons == ["extra"]
    (item,) = grade["items"]
    assert (grade_view("1", item).reasons, grade_view("1", item).parts) == (
        ["wrong /a"],
        [("args", "n/a")],
    )


def test_what_a_grader_raised_is_said_once():
    fault = {
        "category": "grading",
        "code": "raised",
        "type": "ValueError",
        "message": "boom (m.py:5)",
    }
    grade = {"state": "failed", "score": 0.0, "rationale": "boom (m.py:5)", "fault": fault}
    assert (
        text_of({"state": "failed", "grade": grade, "grades": {"g": grade}}).count("boom (m.py:5)")
        == 1
    )


def test_items_without_score_show_their_state():
    items = [
        {"id": "s", "outcome": "failed", "score": None, "fault": {"code": "c", "message": "m"}}
    ]
    grade = {"score": 1.0, "state": "graded", "items": items}
    row = {"state": "graded", "grade": grade, "grades": {"g": grade}}
    assert [
        line.strip() for line in text_of(row).splitlines() if "s  failed" in line or "c: m" in line
    ] == [
        "s  failed",
        "- c: m",
    ]


CALLS = [{"name": "a"}, None, 3]


@pytest.mark.parametrize(
    ("expected", "made", "said"),
    [
        (None, CALLS, "Calls  3 made calls made: 1 a 2 (no name) 3 (no name)"),
        ([], [], "Calls  0 expected, 0 made No call was expected, and none was made."),
        ([], CALLS[:1], "Calls  0 expected, 1 made No call was expected. calls made: 1 a"),
        (CALLS[:1], None, "Calls  1 expected, none recorded ✗ a not called"),
        (CALLS[:1] * 70, CALLS[1:2] * 65, "✗ a not called other calls made:"),
        (CALLS[:1] * 70, CALLS[1:2] * 65, "60 (no name) 15 more calls"),
        (
            CALLS[:1],
            [{"name": "a", "raw_arguments": '{"id": 1'}],
            'a closest call: no. 1 arguments are no object: {"id": 1',
        ),
    ],
)
def test_what_is_said_of_calls(expected, made, said):
    text = text_of({"expected": {"calls": expected}, "predicted": {"calls": made}})
    assert " ".join(said.split()) in " ".join(text.split())


def test_an_empty_row_is_shown():
    assert "row 1 of results.jsonl" in text_of({})
