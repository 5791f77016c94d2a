"""The example and the page of the family say the same as the program."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

import gradestack
from gradestack_plugins.letta.dataset import KEYS
from gradestack_plugins.letta.grader import Recorded
from gradestack_plugins.letta.messages import read_trajectory
from gradestack_plugins.text_graders.texts import BUILT_IN

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "letta"
PAGE = (ROOT / "docs" / "letta.md").read_text(encoding="utf-8")


def by_metric(report):
    """Return grader key -> (average over attempted, average over total, passed, failed)."""
    names = ("avg_score_attempted", "avg_score_total", "passed_attempts", "failed_attempts")
    return {key: tuple(each[name] for name in names) for key, each in report.metrics["by_metric"].items()}


def test_example_scores(tmp_path):
    """The example's graders give what its answers deserve, worked out by hand."""
    report = gradestack.run(EXAMPLE / "suite.yaml", output=tmp_path / "out", overrides=["reports=[]"])
    scores = [
        {key: grade["score"] for key, grade in row["grades"].items() if grade["state"] == "graded"}
        for row in report.rows()
    ]
    assert scores == [
        {"exact": 0.0, "mentions": 1.0, "quality": 0.9},
        {"exact": 1.0, "mentions": 1.0, "shelf_mark": 1.0, "lookup": 1.0, "quality": 1.0},
        {"exact": 0.0, "mentions": 1.0, "shelf_mark": 1.0, "lookup": 1.0, "quality": 0.8},
        {"exact": 1.0, "mentions": 1.0, "quality": 0.9},
        {},
        {"exact": 0.0, "mentions": 0.5, "quality": 0.4},
    ]
    assert report.passed
    assert by_metric(report)["mentions"] == (0.9, 0.75, 4, 1)


def test_recorded_grades_reproduce_the_recordings_own_summary(tmp_path):
    suite = {
        "target": {"paths": [str(EXAMPLE / "recorded")]},
        "graders": {key: {"kind": "recorded", "metric": key} for key in ("exact", "quality")},
        "gate": json.loads((EXAMPLE / "recorded" / "header.json").read_text(encoding="utf-8"))["config"]["gate"],
        "reports": [],
    }
    summary = json.loads((EXAMPLE / "recorded" / "summary.json").read_text(encoding="utf-8"))
    report = gradestack.run(suite, output=tmp_path / "out")
    for key, figures in summary["metrics"]["by_metric"].items():
        for name, value in figures.items():
            assert report.metrics["by_metric"][key][name] == pytest.approx(value, abs=1e-12), (key, name)
    assert report.passed is summary["gates_passed"]


def test_options_and_keys_are_on_the_page():
    words = [f"`{field.name}`" for field in attrs.fields(Recorded) if field.name != "profile"]
    words += [f"`{name}`" for name in KEYS - {"rubric", "rubric_path"}]
    assert [word for word in words if word not in PAGE] == []
    kinds = [line.split("|")[1] for line in PAGE.splitlines() if "_message`" in line.split("|")[:2][-1]]
    named = [name.strip(" `") for cell in kinds for name in cell.split(",")]
    assert len(named) == 8
    for name in named:
        (turn,) = read_trajectory([[{"message_type": name, "content": "x", "tool_call": {"name": "f"}}]]).turns
        assert turn[0].role in PAGE


def test_text_graders_are_on_their_page():
    page = (ROOT / "docs" / "text-graders.md").read_text(encoding="utf-8")
    for name, make in BUILT_IN.items():
        assert f"`{name}`" in page
        options = {field.name for field in attrs.fields(type(make("documented")))} - {"profile"}
        assert [option for option in options if f"`{option}`" not in page] == []
