"""Helpers for the When2Call tests.

Small datasets and predictions, read and graded without the kernel.
"""

import json

import attrs
import pytest

from gradestack import (
    BadRecord,
    ExportSummary,
    GraderSummary,
    Input,
    ProgramInput,
    figures,
)
from gradestack_plugins.when2call.aggregators import When2Call, When2CallExporter
from gradestack_plugins.when2call.program import When2CallProgram
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
    question = f"question {uuid}"
    row = {
        "uuid": uuid,
        "source": "s",
        "source_id": uuid,
        "question": question,
        "correct_answer": gold,
    }
    text = json.dumps(TOOL)
    return {**row, "answers": answers, "target_tool": None, "tools": [text], **more}


@pytest.fixture
def row():
    """Build a dataset row with one tool; keyword arguments override its fields."""
    return _row


@pytest.fixture
def read(read_joined):
    """Read predictions joined with a dataset."""

    def _read(predictions, dataset=None, **options):
        when2_call_reader = When2CallReader(**options)
        return read_joined(when2_call_reader, predictions, dataset, "predictions.jsonl")

    return _read


@attrs.frozen
class Result:
    """The classes, rates, counts and native figures of a graded prediction file."""

    classes: dict
    rates: dict
    counts: dict
    native: dict
    text: str


def _input(path):
    return Input(path=path, name=path.stem, shown=path.name)


@pytest.fixture
def evaluate(read, tmp_path):
    """Read, grade and aggregate."""

    def _evaluate(predictions, dataset=None, **options):
        reader = When2CallReader(**options)
        grader = When2Call()
        samples = read(predictions, dataset, **options)
        rows = []
        for sample in samples:
            if not isinstance(sample, BadRecord):
                rows.append((sample.id, None, None, grader.grade(sample)))
        aggregates = figures(
            {"classification": {}, "hallucination": {}, "when2call_counts": {}}, rows
        )
        graded = GraderSummary(key="label", grader=grader, states={}, aggregates=aggregates)
        path = tmp_path / "predictions.jsonl"
        summary = ExportSummary(
            input=_input(path),
            reader=reader,
            graders={"when2call": graded},
        )
        text = When2CallExporter().finish(summary).get("when2call.json", "null")
        document = json.loads(text)
        return Result(*aggregates.values(), document, text)

    return _evaluate


@pytest.fixture
def run_program(write):
    """Run the evaluation suite's program on predictions joined with a dataset."""

    def _run(predictions, dataset=None, *, grader=None, limit=None, **options):
        path = write("predictions.jsonl", predictions)
        predictions_file = _input(path)
        if dataset is None:
            dataset_file = None
        else:
            dataset_file = _input(write("dataset.jsonl", dataset))
        when2_call_reader = When2CallReader(**options)
        label = grader or When2Call()
        graders = {"label": label}
        program_input = ProgramInput(
            input=predictions_file,
            reader=when2_call_reader,
            dataset=dataset_file,
            max_samples=limit,
            graders=graders,
        )
        return When2CallProgram().run(program_input)

    return _run
