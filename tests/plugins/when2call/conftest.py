"""Helpers for the When2Call tests.

Small datasets and predictions, read and graded without the kernel.
"""

import json

import attrs
import pytest

from gradestack import (
    BadRecord,
    ExportSummary,
    Grade,
    GraderSummary,
    Input,
    Outcome,
    Sample,
    figures,
)
from gradestack_plugins.when2call.aggregators import When2Call, When2CallExporter
from gradestack_plugins.when2call.reader import When2CallReader

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
TOOL = {
    "name": "search",
    "description": "Search.",
    "parameters": {"type": "dict", "properties": {}},
}


def _row(uuid, gold="tool_call", **more):
    answers = {label: f"text of {label}" for label in LABELS}
    answers["tool_call"] = json.dumps({"name": "search", "arguments": {"q": uuid}})
    row = {
        "uuid": uuid,
        "source": "s",
        "source_id": uuid,
        "question": f"question {uuid}",
        "correct_answer": gold,
    }
    return {**row, "answers": answers, "target_tool": None, "tools": [json.dumps(TOOL)], **more}


@pytest.fixture
def row():
    """Build a dataset row with one tool; keyword arguments override its fields."""
    return _row


@pytest.fixture
def read(read_joined):
    """Read predictions joined with a dataset."""

    def _read(predictions, dataset=None, **options):
        return read_joined(When2CallReader(**options), predictions, dataset, "predictions.jsonl")

    return _read


@attrs.frozen
class Result:
    """What came of a prediction file."""

    grades: list[Grade]
    classes: dict
    rates: dict
    counts: dict
    native: dict
    text: str


@pytest.fixture
def evaluate(read, tmp_path):
    """Read, grade and aggregate; samples may be given in place of predictions."""

    def _evaluate(predictions, dataset=None, *, profile="documented", grader=None, **options):
        samples = predictions
        reader = When2CallReader(profile=profile, **options)
        if not (
            isinstance(predictions, list) and predictions and isinstance(predictions[0], Sample)
        ):
            samples = read(predictions, dataset, profile=profile, **options)
        marker = When2Call(profile=profile, **(grader or {}))
        samples = [each for each in samples if not isinstance(each, BadRecord)]
        grades = [marker.grade(sample) for sample in samples]
        rows = [
            (sample.id, None, None, grade) for sample, grade in zip(samples, grades, strict=True)
        ]
        found = figures(
            {"classification": {}, "hallucination": {}, "when2call_counts": {}},
            rows,
            profile=profile,
        )
        states = {str(each): sum(grade.outcome is each for grade in grades) for each in Outcome}
        summary = ExportSummary(
            input=Input(
                path=tmp_path / "predictions.jsonl", name="predictions", shown="predictions.jsonl"
            ),
            reader=reader,
            profile=profile,
            graders={
                "when2call": GraderSummary(
                    key="label", grader=marker, states=states, aggregates=found
                )
            },
        )
        text = When2CallExporter().finish(summary).get("when2call.json", "null")
        return Result(grades, *found.values(), json.loads(text), text)

    return _evaluate
