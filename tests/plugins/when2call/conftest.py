"""Helpers for the When2Call tests: small datasets and predictions, read and graded without the kernel."""

from __future__ import annotations

import json

import attrs
import pytest

from gradestack import BadRecord, ExportSummary, Grade, GraderSummary, Input, Inputs, Outcome, Sample, figures
from gradestack_plugins.when2call.exporter import When2CallExporter
from gradestack_plugins.when2call.grader import When2Call
from gradestack_plugins.when2call.reader import When2CallReader

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
TOOL = {"name": "search", "description": "Search.", "parameters": {"type": "dict", "properties": {}}}


def _row(uuid, gold="tool_call", **more):
    answers = {label: f"text of {label}" for label in LABELS}
    answers["tool_call"] = json.dumps({"name": "search", "arguments": {"q": uuid}})
    row = {"uuid": uuid, "source": "s", "source_id": uuid, "question": f"question {uuid}", "correct_answer": gold}
    return {**row, "answers": answers, "target_tool": None, "tools": [json.dumps(TOOL)], **more}


@pytest.fixture
def row():
    """Build a dataset row with one tool; keyword arguments override its fields."""
    return _row


@pytest.fixture
def write(tmp_path):
    def _write(name, records, *, as_list=False):
        path = tmp_path / name
        if as_list:
            path.write_text(json.dumps(records, indent=2))
        else:
            lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
            path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return _write


def _input(path):
    return Input(path=path, name=path.stem, shown=path.name)


@pytest.fixture
def read(write):
    """Read predictions (a path, or records) joined with a dataset (the same), and return samples and bad records."""

    def _read(predictions, dataset=None, **options):
        paths = []
        for name, given in (("predictions.jsonl", predictions), ("dataset.jsonl", dataset)):
            paths.append(write(name, given) if isinstance(given, list) else given)
        inputs = Inputs(data=(_input(paths[0]),), dataset=_input(paths[1]) if paths[1] is not None else None)
        reader = When2CallReader(**options)
        index = reader.index(inputs)
        shards = list(reader.plan(inputs, index))
        assert [shard.ordinal for shard in shards] == list(range(len(shards)))
        return [each for shard in shards for each in reader.read(shard, index)]

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
        if not (isinstance(predictions, list) and predictions and isinstance(predictions[0], Sample)):
            samples = read(predictions, dataset, profile=profile, **options)
        marker = When2Call(profile=profile, **(grader or {}))
        samples = [each for each in samples if not isinstance(each, BadRecord)]
        grades = [marker.grade(sample) for sample in samples]
        rows = [(sample.id, None, None, grade) for sample, grade in zip(samples, grades, strict=True)]
        found = figures({"classification": {}, "hallucination": {}, "when2call_counts": {}}, rows, profile=profile)
        states = {str(each): sum(grade.outcome is each for grade in grades) for each in Outcome}
        summary = ExportSummary(
            input=Input(path=tmp_path / "predictions.jsonl", name="predictions", shown="predictions.jsonl"),
            reader=reader,
            profile=profile,
            graders={"when2call": GraderSummary(key="label", grader=marker, states=states, aggregates=found)},
        )
        text = When2CallExporter().finish(summary).get("when2call.json", "null")
        return Result(grades, *found.values(), json.loads(text), text)

    return _evaluate
