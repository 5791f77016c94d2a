"""From files to native/when2call.json through the command's own path, the example of the docs page, and real data."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from gradestack import grade_files, run

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "when2call"
LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")


def native(out):
    return json.loads((out / "native" / "when2call.json").read_text())


def aggregates(out):
    return json.loads((out / "summary.json").read_text())["metrics"]["aggregates"]["label"]


@pytest.fixture
def grade(tmp_path):
    def _grade(path, dataset, *, name="out", **options):
        overrides = ["reports=[]", *options.pop("overrides", [])]
        grade_files([path], dataset=dataset, output=tmp_path / name, overrides=overrides, **options)
        return tmp_path / name

    return _grade


def example(grade, profile):
    return grade(EXAMPLE / "judge_decisions.jsonl", EXAMPLE / "dataset.jsonl", name=profile, profile=profile)


def test_the_example_in_documented_gives_the_figures_worked_out_by_hand(grade):
    """Eleven of twelve rows have a prediction, one label is read again, one is an alias, one is invalid."""
    out = example(grade, "documented")
    metrics = native(out)["metrics"]
    assert metrics["n_total"] == 11
    assert metrics["accuracy"] == 6 / 11
    f1 = {"direct": 1 / 2, "tool_call": 4 / 7, "request_for_info": 2 / 3, "cannot_answer": 1 / 2}
    assert metrics["per_class_f1"] == {label: pytest.approx(value) for label, value in f1.items()}
    assert metrics["macro_f1"] == pytest.approx(47 / 84)
    assert metrics["macro_f1_no_direct"] == pytest.approx(73 / 126)
    assert metrics["tool_hallucination_rate"] == 1 / 2
    assert metrics["answer_hallucination_rate"] == 1 / 11
    assert metrics["parameter_hallucination_rate"] == 1 / 3
    assert [metrics[name] for name in ("n_missing_uuid", "n_invalid_label", "n_converted_to_cannot_answer")] == [
        1,
        1,
        0,
    ]
    assert native(out)["gradestack"] == {"n_relabelled": 1, "n_relabel_differs": 0, "n_predictions_not_in_dataset": 1}
    assert aggregates(out)["mean"]["mean"] == 6 / 11


def test_the_example_upstream_gives_the_figures_worked_out_by_hand(grade):
    """Twelve rows, the fall-back kept, alias, invalid and missing labels turned into cannot_answer."""
    metrics = native(example(grade, "upstream"))["metrics"]
    assert metrics["n_total"] == 12
    assert metrics["accuracy"] == 1 / 3
    f1 = {"direct": 0.0, "tool_call": 0.5, "request_for_info": 0.4, "cannot_answer": 0.25}
    assert metrics["per_class_f1"] == {label: pytest.approx(value) for label, value in f1.items()}
    assert metrics["macro_f1"] == pytest.approx(0.2875)
    assert metrics["macro_f1_no_direct"] == pytest.approx(1.15 / 3)
    assert metrics["tool_hallucination_rate"] == 1 / 2
    assert metrics["answer_hallucination_rate"] == 1 / 12
    assert metrics["parameter_hallucination_rate"] == 1 / 3
    assert [metrics[name] for name in ("n_missing_uuid", "n_invalid_label", "n_converted_to_cannot_answer")] == [
        1,
        3,
        3,
    ]


def test_the_docs_page_shows_these_very_figures(grade):
    """Every figure of the worked example stands in the page, for both profiles."""
    page = (ROOT / "docs" / "when2call.md").read_text()
    names = ["accuracy", "macro_f1", "macro_f1_no_direct", "tool_hallucination_rate", "answer_hallucination_rate"]
    blocks = [native(example(grade, profile))["metrics"] for profile in ("documented", "upstream")]
    for name in [*names, "parameter_hallucination_rate", "n_total", "n_missing_uuid", "n_invalid_label"]:
        shown = [f"{block[name]:.6f}" if isinstance(block[name], float) else str(block[name]) for block in blocks]
        assert f"| `{name}` | {shown[0]} | {shown[1]} |" in page


def test_the_docs_page_names_every_option():
    import attrs

    from gradestack_plugins.statistics.classification import Classification
    from gradestack_plugins.when2call.grader import When2Call
    from gradestack_plugins.when2call.reader import When2CallReader

    page = (ROOT / "docs" / "when2call.md").read_text()
    for component in (When2CallReader, When2Call, Classification):
        for field in attrs.fields(component):
            assert not field.init or f"`{field.name}`" in page, f"{component.__name__}.{field.name}"


def test_the_example_suite_runs_and_passes_its_gate(tmp_path):
    """The suite of the example names the audit file; its events are in the artefact."""
    report = run(EXAMPLE / "suite.yaml", overrides=["reports=[]"], output=tmp_path / "out")
    assert report is not None
    summary = native(tmp_path / "out")["metrics"]["audit_fallbacks_summary"]
    assert (summary["audit_path"], summary["n_events_total"]) == ("audit_fallbacks.jsonl", 6)
    assert (summary["n_forced_fallback_events"], summary["n_forced_fallback_uuids"]) == (5, 4)
    gates = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert gates["gates_passed"] is True


def test_overrides_reach_reader_and_grader(grade):
    out = grade(
        EXAMPLE / "judge_decisions.jsonl",
        EXAMPLE / "dataset.jsonl",
        overrides=["reader.relabel=recorded", "graders.label.invalid_policy=drop"],
    )
    metrics = native(out)["metrics"]
    assert (metrics["n_total"], metrics["accuracy"]) == (10, 5 / 10)
    assert native(out)["gradestack"]["n_relabel_differs"] == 1


def test_another_formats_trajectory_is_labelled_by_its_calls(tmp_path):
    """Samples of any reader can be graded: a call is a tool_call, silence waits for a judge."""
    import gradestack
    from gradestack import Expectation, Sample, ToolCall
    from gradestack_plugins.when2call.grader import When2Call

    samples = [
        Sample(id="a", calls=(ToolCall(name="f"),), expected=Expectation(label="tool_call")),
        Sample(id="b", calls=(), expected=Expectation(label="direct")),
    ]
    report = gradestack.grade(samples, graders=[When2Call()], output=tmp_path / "out")
    assert report.metrics["states"]["When2Call"]["graded"] == 1
    assert report.metrics["states"]["When2Call"]["skipped"] == 1


@pytest.fixture
def reference():
    """The 300 test items with gold labels, where they are at hand."""
    folder = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not folder:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    return Path(folder) / "when2call" / "when2call_test_llm_judge.jsonl"


def test_the_real_test_items_load(reference, read):
    """300 items, 100 per gold label and none direct; 17 without tools, all of them cannot_answer; every call parses."""
    found = read([{"uuid": "nobody", "predicted_label": "direct"}], reference)
    rows = [sample for sample in found if sample.id != "nobody"]
    assert len(rows) == 300
    golds = [sample.expected.label for sample in rows]
    assert {label: golds.count(label) for label in LABELS} == dict(zip(LABELS, (0, 100, 100, 100), strict=True))
    without = [sample for sample in rows if sample.native.no_tools]
    assert len(without) == 17
    assert {sample.expected.label for sample in without} == {"cannot_answer"}
    assert max(len(sample.tools) for sample in rows) == 26
    assert all(sample.expected.calls is not None for sample in rows)
    called = [sample for sample in rows if sample.expected.label == "tool_call"]
    assert all(len(sample.expected.calls) == 1 and sample.expected.calls[0].arguments is not None for sample in called)


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_the_real_test_items_grade_against_synthetic_predictions(reference, grade, write, profile):
    """A noisy model of our own: the native artefact agrees with counts made here."""
    noise = random.Random(7)  # noqa: S311 - test data
    items = [json.loads(line) for line in reference.read_text().splitlines()]
    choices = [*LABELS, "invalid"]
    labels = {item["uuid"]: noise.choice([item["correct_answer"], noise.choice(choices)]) for item in items[:-20]}
    records = [
        {"uuid": uuid, "predicted_label": label, "predicted_index": choices.index(label), "raw_mcq_output": ""}
        for uuid, label in labels.items()
    ]
    metrics = native(grade(write("mcq.jsonl", records), reference, profile=profile))["metrics"]
    upstream = profile == "upstream"
    counted = {item["uuid"]: item for item in items if upstream or item["uuid"] in labels}
    final = {uuid: labels.get(uuid, "invalid") for uuid in counted}
    if upstream:
        final = {uuid: label if label in LABELS else "cannot_answer" for uuid, label in final.items()}
    right = sum(final[uuid] == item["correct_answer"] for uuid, item in counted.items())
    assert metrics["n_total"] == len(counted)
    assert metrics["accuracy"] == right / len(counted)
    bare = [uuid for uuid, item in counted.items() if item["correct_answer"] == "cannot_answer" and not item["tools"]]
    assert metrics["tool_hallucination_rate"] == sum(final[uuid] == "tool_call" for uuid in bare) / len(bare)
    directs = sum(final[uuid] == "direct" != item["correct_answer"] for uuid, item in counted.items())
    assert metrics["answer_hallucination_rate"] == directs / len(counted)
