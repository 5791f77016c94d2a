"""Builders of records and replies for the tests of this folder."""

import json
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradestack import (
    ExportSummary,
    Fault,
    Grade,
    GraderSummary,
    Input,
    Inputs,
    Key,
    Outcome,
    ProgramInput,
    Shard,
    Source,
    Status,
    figures,
)
from gradestack.metrics.computed import compute_figures
from gradestack.testing.components import make_grades
from gradestack_plugins.deepfabric.exporter import DeepFabricExporter
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.program import DeepFabricProgram
from gradestack_plugins.deepfabric.reader import DeepFabricReader
from gradestack_plugins.deepfabric.samples import build, split_entry

PARTS = ("tool_selection", "parameter_accuracy", "execution_success")


def make_tool(name: str = "f", required: Any = (), **types: Any) -> dict[str, Any]:
    """Return a tool in the OpenAI form; a type is a word, or a whole property."""
    properties = {}
    for key, word in types.items():
        properties[key] = word if isinstance(word, dict) else {"type": word}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": schema},
    }


def make_execution(name: str, arguments: Any) -> dict[str, Any]:
    """Return an execution; arguments that are no text are encoded."""
    if isinstance(arguments, str):
        text = arguments
    else:
        text = json.dumps(arguments)
    return {"function_name": name, "arguments": text, "reasoning": "r", "result": "x"}


def make_record(expected: Any = None, tools: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a record that expects a call ``(name, arguments)``, or none."""
    record: dict[str, Any] = {"messages": [{"role": "user", "content": "the query"}]}
    if tools is not None:
        record["tools"] = tools
    if expected is not None:
        executions = [make_execution(*expected)]
        record["tool_context"] = {"executions": executions}
    return {**record, **fields}


def make_reply(call: Any = None, content: Any = "said") -> dict[str, Any]:
    """Return a reply with a call ``(name, arguments)``, or none."""
    if call is None:
        made = None
    else:
        made = {"name": call[0], "arguments": call[1]}
    return {"kind": "tool_call", "content": content, "tool_call": made}


def make_sample(record: Any, reply: Any) -> Any:
    line = {"sample": record, "recorded": reply}
    return build(split_entry(line), row=0, source=Source(file="x"))


def make_grade(record: Any, reply: Any, **options: Any) -> Any:
    """Return the grade of a record and its reply."""
    deep_fabric = DeepFabric(**options)
    sample = make_sample(record, reply)
    return deep_fabric.grade(sample)


def verdict(grade: Any) -> tuple[int, ...] | None:
    """Return the three verdicts of a grade as 0 and 1, None when it has none."""
    if grade.parts:
        return tuple(int(grade.parts[name]) for name in PARTS)
    return None


def read(reader: DeepFabricReader, *paths: Any, dataset: Any = None) -> list[Any]:
    inputs_given = []
    for path in paths:
        inputs_given.append(Input(path=path, name=path.stem, shown=path.name))
    if dataset is None:
        side = None
    else:
        side = Input(path=dataset, name=dataset.stem, shown=dataset.name)
    inputs = Inputs(data=tuple(inputs_given), dataset=side)
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    return [record for shard in shards for record in reader.read(shard, index)]


def write_lines(path: Any, *lines: Any) -> Any:
    path.write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    )
    return path


def fold(aggregator: Any, grades: Any) -> Any:
    keys = []
    for ordinal in range(len(grades)):
        key = Key(id=str(ordinal), ordinal=ordinal)
        keys.append(key)
    pairs = list(zip(keys, grades, strict=True))
    return compute_figures(aggregator, make_grades(aggregator, [pairs]))


def native_text(grader: DeepFabric, graded_samples: Any, shown: str = "in.jsonl") -> str:
    """Return the native file of samples and their grades."""
    exporter = DeepFabricExporter()
    input_file = Input(path=Path(), name="in", shown=shown)
    grades = [grade for _, grade in graded_samples]
    aggregates = figures({"deepfabric": {}}, [("s", None, None, grade) for grade in grades])
    states = {
        str(outcome): sum(grade.outcome is outcome for grade in grades) for outcome in Outcome
    }
    part = GraderSummary(key="tools", grader=grader, states=states, aggregates=aggregates)
    reader = DeepFabricReader()
    graders = {"deepfabric": part}
    summary = ExportSummary(input=input_file, reader=reader, graders=graders)
    shard = Shard(ordinal=0, input=input_file)
    rows = [
        text
        for sample, grade in graded_samples
        for _, text in exporter.row(sample, {"deepfabric": grade}, shard)
    ]
    head, tail = exporter.frame("deepfabric.json", summary)
    ending = exporter.finish(summary)
    assert bool(rows) is not bool(ending)
    if rows:
        return head + exporter.separator.join(rows) + tail
    return ending["deepfabric.json"]


def evaluate(lines: Any, **options: Any) -> Any:
    """Return metrics and the native file of decoded joined lines."""
    grader = DeepFabric(**options)
    with tempfile.TemporaryDirectory() as folder:
        samples = read(DeepFabricReader(), write_lines(Path(folder) / "lines.jsonl", *lines))
    fault = Fault(category="data", code="missing_reply")
    missing = Grade(outcome=Outcome.MISSING, fault=fault)
    grades = []
    for sample in samples:
        grades.append(missing if sample.status is Status.MISSING else grader.grade(sample))
    rows = [("s", None, None, grade) for grade in grades]
    deepfabric = figures({"deepfabric": {}}, rows)["deepfabric"]
    metrics = SimpleNamespace(**deepfabric)
    pairs = zip(samples, grades, strict=True)
    graded_samples = list(pairs)
    text = native_text(grader, graded_samples, "")
    return SimpleNamespace(
        metrics=metrics,
        text=text,
    )


def run_program(lines: Any, dataset: Any = None, **options: Any) -> Any:
    """Run DeepFabric's program on decoded lines, or on replies to a dataset; return its output."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = {}
        for name, values in (("lines", lines), ("dataset", dataset)):
            if values is not None:
                path = write_lines(Path(folder) / f"{name}.jsonl", *values)
                inputs[name] = Input(path=path, name=name, shown="")
        program_input = ProgramInput(
            input=inputs["lines"],
            dataset=inputs.get("dataset"),
            reader=DeepFabricReader(),
            graders={"tools": DeepFabric(**options)},
        )
        return DeepFabricProgram().run(program_input)


@pytest.fixture(scope="session")
def df() -> Any:
    return SimpleNamespace(
        tool=make_tool,
        execution=make_execution,
        record=make_record,
        reply=make_reply,
        sample=make_sample,
        grade=make_grade,
        verdict=verdict,
        read=read,
        write=write_lines,
        fold=fold,
    )
