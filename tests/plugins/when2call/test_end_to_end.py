"""From files to native/when2call.json through the command's own path, the example of the docs page,
and real data.
"""

import json
import os
from pathlib import Path

import pytest

from gradestack import grade_files

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "when2call"
LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")


def native(out):
    native_folder = out / "native"
    when2call_path = native_folder / "when2call.json"
    text = when2call_path.read_text()
    return json.loads(text)


@pytest.fixture
def grade(tmp_path):
    def _grade(path, dataset, *, name="out", **options):
        overrides = ["reports=[]", *options.pop("overrides", [])]
        output = tmp_path / name
        grade_files([path], dataset=dataset, output=output, overrides=overrides, **options)
        return tmp_path / name

    return _grade


def example(grade, profile):
    judge_decisions_path = EXAMPLE / "judge_decisions.jsonl"
    dataset_path = EXAMPLE / "dataset.jsonl"
    return grade(judge_decisions_path, dataset_path, name=profile, profile=profile)


def test_the_docs_page_shows_these_very_figures(grade):
    """Every figure of the worked example stands in the page, for both profiles."""
    docs_folder = ROOT / "docs"
    when2call_path = docs_folder / "when2call.md"
    page = when2call_path.read_text()
    names = [
        "accuracy",
        "macro_f1",
        "macro_f1_no_direct",
        "tool_hallucination_rate",
        "answer_hallucination_rate",
    ]
    blocks = []
    for profile in ("documented", "upstream"):
        blocks.append(native(example(grade, profile))["metrics"])
    for name in [
        *names,
        "parameter_hallucination_rate",
        "n_total",
        "n_missing_uuid",
        "n_invalid_label",
    ]:
        shown = []
        for block in blocks:
            shown.append(
                f"{block[name]:.6f}" if isinstance(block[name], float) else str(block[name])
            )
        expected_text = f"| `{name}` | {shown[0]} | {shown[1]} |"
        assert expected_text in page


def test_another_formats_trajectory_is_labelled_by_its_calls(tmp_path):
    """Samples of any reader can be graded: a call is a tool_call, silence waits for a judge."""
    import gradestack
    from gradestack import Expectation, Sample, ToolCall
    from gradestack_plugins.when2call.aggregators import When2Call

    tool_call = ToolCall(name="f")
    expected = Expectation(label="tool_call")
    sample = Sample(id="a", calls=(tool_call,), expected=expected)
    expectation = Expectation(label="direct")
    samples = [
        sample,
        Sample(id="b", calls=(), expected=expectation),
    ]
    graders = [When2Call()]
    output = tmp_path / "out"
    report = gradestack.grade(samples, graders=graders, output=output)
    states = report.metrics["states"]
    graded = states["When2Call"]["graded"]
    assert graded == 1
    when2_call = report.metrics["states"]["When2Call"]
    skipped = when2_call["skipped"]
    assert skipped == 1


@pytest.fixture
def reference():
    """The 300 test items with gold labels, where they are at hand."""
    folder = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not folder:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    when2call_folder = Path(folder) / "when2call"
    return when2call_folder / "when2call_test_llm_judge.jsonl"


def test_the_real_test_items_load(reference, read):
    """300 items, 100 per gold label and none direct; 17 without tools, all of them cannot_answer.

    Every call parses.
    """
    samples = read([{"uuid": "nobody", "predicted_label": "direct"}], reference)
    rows = [sample for sample in samples if sample.id != "nobody"]
    assert len(rows) == 300
    golds = [sample.expected.label for sample in rows]
    pairs = dict(zip(LABELS, (0, 100, 100, 100), strict=True))
    assert {label: golds.count(label) for label in LABELS} == pairs
    without = [sample for sample in rows if sample.tools == ()]
    assert len(without) == 17
    labels = {sample.expected.label for sample in without}
    assert labels == {"cannot_answer"}
    largest_tool_count = max(len(sample.tools) for sample in rows)
    assert largest_tool_count == 26
    assert all(sample.expected.calls is not None for sample in rows)
    called = [sample for sample in rows if sample.expected.label == "tool_call"]
    assert all(
        len(sample.expected.calls) == 1 and sample.expected.calls[0].arguments is not None
        for sample in called
    )
