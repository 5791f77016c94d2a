"""Grades of Letta runs: faults, models, documents."""

import json
from pathlib import Path

import msgspec
import pytest

import gradestack
from gradestack import Fault, Grade, Sample, Status, grade_to_json, replace, testing
from gradestack_plugins.letta.messages import read_trajectory
from gradestack_plugins.readers.recorded import Recorded, grade_fault
from tests.core.outcomes import at, data

DATA = data(__file__, "grader.yaml")


def sample(**recorded):
    return Sample(id="t", recorded=recorded)


def grade_of_recorded(grade, *, metric=None):
    recorded = Recorded(metric=metric)
    return recorded.grade(sample(grade=grade, grades={"a": grade, "b": grade}))


def test_grader_keeps_the_contract(letta):
    odd = []
    for value in (
        None,
        1,
        "x",
        [],
        {},
        {"score": "1"},
        {"score": None},
        {"score": float("nan")},
        {"state": "?"},
    ):
        odd.append(sample(grade=value, grades={"a": value}))
    odd += [
        sample(grade={"state": "graded", "score": 1.0, "metadata": 3}),
        sample(grade={"state": "graded", "score": 1.0, "items": 3}),
        sample(grade={"state": "graded", "score": 1.0, "parts": {"a": "NaN"}}),
        sample(grade={"state": "failed", "fault": {"nonsense": 1}}),
        sample(grade=letta.grade(0.5), error={"category": 3}),
        sample(grades=[1]),
    ]
    for metric in (None, "a"):
        recorded = Recorded(metric=metric)
        testing.check_grader(recorded, odd)


@pytest.mark.parametrize("case", data(__file__, "grades.yaml"))
def test_a_grade_is_taken(case):
    sample = Sample(id="t", recorded=case["recorded"])
    if "status" in case:
        status = Status(case["status"])
        error = case.get("error") and Fault(**case["error"])
        sample = replace(
            sample,
            status=status,
            error=error,
        )
    metric = case.get("metric")
    recorded = Recorded(metric=metric)
    grade = recorded.grade(sample)
    paths = case["grade"]
    assert {path: at(grade, path) for path in paths} == case["grade"]


def test_grades_per_turn_become_items(letta):
    turns = DATA["turns"]
    grade = grade_of_recorded(letta.grade(0.5) | {"per_turn_grades": turns})
    assert [(item.id, item.outcome, item.score) for item in grade.items] == [
        ("turn 1", "graded", 1.0),
        ("turn 2", "failed", None),
    ]
    first_item = grade.items[0]
    assert first_item.metadata == {"submission": "a", "ground_truth": "a", "rationale": "ok"}


@pytest.mark.parametrize("grade", msgspec.convert(DATA["own_grades"], list[Grade]))
def test_grades_of_gradestack_come_back_whole(grade):
    text = json.dumps(grade_to_json(grade))
    written = json.loads(text)
    grade_read = grade_of_recorded(written, metric="a")
    assert grade_to_json(grade_read) == written
    assert grade_read.outcome == grade.outcome


@pytest.mark.parametrize(
    ("rationale", "metadata", "category", "message", "kind"),
    data(__file__, "cases.yaml")["no_judgements"],
)
def test_what_a_grade_says_in_place_of_a_judgement(
    letta, rationale, metadata, category, message, kind
):
    """Its rationale behind the prefix, what its metadata adds, and the type."""
    fault = grade_fault({"score": 0.0, "rationale": rationale, "metadata": metadata})
    assert fault.category == category
    assert fault.message == message
    assert fault.type == kind


@pytest.mark.parametrize(
    "grade", [None, 3, {}, {"rationale": 3, "metadata": 3}, {"rationale": "An Error: none"}]
)
def test_a_judgement_is_no_fault(grade):
    fault = grade_fault(grade)
    assert fault is None


ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "letta"
PAGE = (ROOT / "docs" / "letta.md").read_text(encoding="utf-8")


def by_metric(report):
    """Return grader key -> (average over attempted, average over total, passed, failed)."""
    names = ("avg_score_attempted", "avg_score_total", "passed_attempts", "failed_attempts")
    return {
        key: tuple(value[name] for name in names)
        for key, value in report.metrics["by_metric"].items()
    }


def test_recorded_grades_reproduce_the_recordings_own_summary(tmp_path):
    header_path = EXAMPLE / "recorded" / "header.json"
    text = header_path.read_text(encoding="utf-8")
    document = json.loads(text)
    gate = document["config"]["gate"]
    paths = [str(EXAMPLE / "recorded")]
    target = {"paths": paths}
    graders = {key: {"kind": "recorded", "metric": key} for key in ("exact", "quality")}
    suite = {
        "target": target,
        "graders": graders,
        "gate": gate,
        "reports": [],
    }
    recorded_folder = EXAMPLE / "recorded"
    summary_path = recorded_folder / "summary.json"
    summary = json.loads(summary_path.read_text(encoding="utf-8"))
    output = tmp_path / "out"
    report = gradestack.run(suite, output=output)
    for key, figures in summary["metrics"]["by_metric"].items():
        for name, value in figures.items():
            assert report.metrics["by_metric"][key][name] == pytest.approx(value, abs=1e-12), (
                key,
                name,
            )
    assert report.passed is summary["gates_passed"]


def test_kinds_of_messages_are_on_the_page():
    kinds = []
    for line in PAGE.splitlines():
        if "_message`" in line.split("|")[:2][-1]:
            kinds.append(line.split("|")[1])
    named = [name.strip(" `") for cell in kinds for name in cell.split(",")]
    assert len(named) == 8
    for name in named:
        (turn,) = read_trajectory(
            [[{"message_type": name, "content": "x", "tool_call": {"name": "f"}}]]
        ).turns
        assert turn[0].role in PAGE
