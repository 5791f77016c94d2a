"""States of one conversation, and parts of one run, are no runs of their own."""

import json

import pytest

import gradestack
from gradestack import DataError
from tests.core.outcomes import data

PARTS = data(__file__, "parts.yaml")
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TALK = [
    {"role": "user", "content": "Go"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "ok"},
    {"role": "assistant", "content": "Done."},
]
OTHER = [{"role": "user", "content": "Stop"}, {"role": "assistant", "content": "Stopped."}]


@pytest.fixture
def grade(tmp_path):
    def graded(*records, **options):
        path = tmp_path / "log.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        output = tmp_path / "out"
        return gradestack.grade_files(
            [path], stack="trajectory", output=output, overrides=["reports=[]"], **options
        )

    return graded


def texts(report):
    rows = report.rows()
    return sorted(str(row["predicted"]["text"]) for row in rows)


@pytest.mark.parametrize("name", ["thread_id", "session_id", "trace_id", "conversation_id"])
@pytest.mark.parametrize("more_fields", [{}, {"values": 1, "next": []}])
def test_the_states_of_a_conversation_are_one_run(grade, name, more_fields):
    """In whatever order they stand; another conversation of the session is another run."""
    states = [TALK[:number] for number in (3, 1, 4, 2, 4)]
    records = [{name: "s", "messages": state, **more_fields} for state in [*states, OTHER]]
    report = grade(*records)
    assert texts(report) == ["Done.", "Stopped."]
    rows = report.rows()
    call_counts = [len(row["predicted"]["calls"]) for row in rows]
    assert call_counts.count(1) == 1


def test_checkpoints_are_one_run_of_their_thread(grade):
    states = []
    for number in (4, 3, 2, 1, 0):
        states.append({"values": {"messages": TALK[:number]}})
    report = grade(*[{**state, "checkpoint": {"thread_id": "t7"}} for state in states])
    rows = report.rows()
    ids = [row["sample"]["id"] for row in rows]
    assert ids == ["t7"]
    assert texts(report) == ["Done."]


@pytest.mark.parametrize("names", [{}, {"id": "task"}, {"thread_id": "s"}, {"task_id": "task"}])
def test_runs_with_names_of_their_own_stay_apart(grade, names):
    """Runs with names of their own stay apart, even where one begins like the other."""
    messages = TALK[:2]
    report = grade({**names, "run": 1, "messages": messages}, {**names, "run": 2, "messages": TALK})
    rows = list(report.rows())
    row_count = len(rows)
    assert row_count == 2


@pytest.mark.parametrize("names", [{}, {"id": "task"}, {"task_id": "task"}])
def test_records_of_a_task_stay_apart(grade, names):
    messages = TALK[:2]
    report = grade({**names, "messages": messages}, {**names, "messages": TALK})
    rows = list(report.rows())
    row_count = len(rows)
    assert row_count == 2


@pytest.mark.parametrize("form", PARTS)
def test_parts_of_a_run_are_refused_by_their_name(tmp_path, form):
    path = tmp_path / "log.jsonl"
    parts = PARTS[form]
    path.write_text("".join(json.dumps(part) + "\n" for part in parts))
    with pytest.raises(DataError) as refused:
        gradestack.grade_files([path], output=tmp_path / "out")
    expected_text = f"its records are {form}, of which several make a run"
    assert expected_text in str(refused.value)
