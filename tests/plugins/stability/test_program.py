"""The evaluation suite's own program: what it computes, and the file it writes."""

import json
from pathlib import Path

import pytest

from gradestack import Input, ProgramInput
from gradestack_plugins.stability.aggregators import StabilityLabel
from gradestack_plugins.stability.program import (
    StabilityProgram,
    derive_fields,
    head_document,
    stability_document,
)
from gradestack_plugins.stability.reader import StabilityReader
from tests.core.outcomes import data

DATA = data(__file__, "program.yaml")
EXAMPLE = Path(__file__).parents[3] / "examples" / "stability"
NAMED = {"ids": lambda case: case["name"]}


def run_program(runs, dataset=None, **options):
    inputs = []
    for path in (runs, dataset):
        inputs.append(path and Input(path=path, name=path.stem, shown=path.name))
    return StabilityProgram().run(
        ProgramInput(input=inputs[0], reader=StabilityReader(), dataset=inputs[1], **options)
    )


@pytest.mark.parametrize("case", DATA["sweeps"], **NAMED)
def test_metrics_of_a_sweep(case):
    dataset = case.get("dataset")
    limit = case.get("limit")
    document = stability_document(case["records"], dataset, "", limit)
    metrics = document["metrics"]
    metrics_by_name = {name: metrics[name] for name in case["is"]}
    assert metrics_by_name == pytest.approx(case["is"])
    assert {type(value) for value in metrics.values()} <= {float}
    exp_name = case.get("exp_name", "")
    assert document["exp_name"] == exp_name


@pytest.mark.parametrize("case", DATA["fields"], **NAMED)
def test_derived_fields_of_a_record(case):
    record = {"gold_label": "tool_call", **case["record"]}
    derived = derive_fields(record)
    names = case["is"]
    assert {name: derived[name] for name in names} == pytest.approx(case["is"])


@pytest.mark.parametrize("case", DATA["skipped"], ids=lambda case: repr(case["record"])[:40])
def test_a_record_that_is_skipped(case):
    """Runs, mode and figures that are not finite only matter for a known gold label."""
    record = {"uuid": "a", "run_labels": ["direct", "tool_call"], **case["record"]}
    counts = [
        stability_document([{**record, "gold_label": gold}], [{"uuid": "a"}])["metrics"]
        for gold in ("tool_call", "weird")
    ]
    expected = [0.0, 0.0 if case["always"] else 1.0]
    assert [count["n_items_processed"] for count in counts] == expected


@pytest.mark.parametrize(("record", "expected"), DATA["heads"])
def test_the_head_follows_the_kind_of_sweep(record, expected):
    head = head_document(record, "file")
    assert head == expected
    assert list(head) == list(expected)


def test_its_file_and_figures_beside_ours():
    runs = EXAMPLE / "runs.jsonl"
    dataset = EXAMPLE / "dataset.jsonl"
    graders = {"label": StabilityLabel()}
    run = run_program(runs, dataset, graders=graders)
    text = run.files["stability.json"]
    document = json.loads(text)
    assert list(document) == ["exp_name", "n_runs", "temperature", "metrics"]
    metric_count = len(document["metrics"])
    assert metric_count == 40
    stability_json = run.files["stability.json"]
    expected = json.dumps(document, indent=2)
    assert stability_json == expected
    by_name = {figure.label: figure for figure in run.figures}
    stable = by_name["stability_at_k"]
    stability_at_k = document["metrics"]["stability_at_k"]
    assert stable.value == stability_at_k
    assert stable.figure == "label.stability.stability_at_k"
    assert stable.why
    assert run.console == ""
    assert run.exit_code is None


def test_a_broken_line_is_skipped(tmp_path):
    runs = tmp_path / "sweep.jsonl"
    runs.write_text('{"uuid": "a", "gold_label": "direct", "run_labels": ["direct"]}\n{oops\n[1]\n')
    run = run_program(runs)
    text = run.files["stability.json"]
    document = json.loads(text)
    assert document["exp_name"] == "sweep"
    n_items_total = document["metrics"]["n_items_total"]
    assert n_items_total == 1.0
    figures = {figure.figure for figure in run.figures}
    assert figures == {""}
