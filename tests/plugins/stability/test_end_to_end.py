"""From files to native/stability.json, the example of the docs page, and stability of other
families' grades.
"""

import json
from pathlib import Path

import pytest

import gradestack
from gradestack import Sample, grade_files
from gradestack_plugins.stability.aggregators import MEANS
from gradestack_plugins.stability.program import METRICS_PER_GOLD, stability_document
from gradestack_plugins.when2call.aggregators import When2Call

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "stability"
LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")


@pytest.fixture
def example(tmp_path):
    grade_files(
        [EXAMPLE / "runs.jsonl"],
        dataset=EXAMPLE / "dataset.jsonl",
        output=tmp_path,
        overrides=["reports=[]"],
    )
    return (tmp_path / "native" / "stability.json").read_text()


def test_the_docs_page_shows_these_very_figures(example):
    """Every figure of the worked example stands in the page, ours and the program's."""
    page = (ROOT / "docs" / "stability.md").read_text()
    values = [
        [json.loads(line) for line in (EXAMPLE / name).read_text().splitlines()]
        for name in ("runs.jsonl", "dataset.jsonl")
    ]
    ours = json.loads(example)["metrics"]
    programs = stability_document(*values)["metrics"]
    for name in ("coverage", *MEANS):
        assert f"| `{name}` | {ours[name]:.6f} | {programs[name]:.6f} |" in page


def test_the_native_file_has_the_suites_keys_in_its_order(example):
    """Heading, then the metrics, per gold label in canonical order, then counts of ours."""
    document = json.loads(example)
    assert list(document) == ["exp_name", "n_runs", "temperature", "metrics", "gradestack"]
    assert document["exp_name"] == "mcq_stability_k=5_T=0.7"
    assert (document["n_runs"], document["temperature"]) == (5, 0.7)
    counts = ["n_items_total", "n_items_processed", "coverage"]
    per_gold = [f"{name}_gold_{label}" for label in LABELS for name in METRICS_PER_GOLD]
    assert list(document["metrics"]) == [*counts, *MEANS, *per_gold]
    assert example == json.dumps(document, indent=2)


def test_any_graders_outcomes_have_a_stability():
    """Scores of another family over repeated runs: pass or fail.

    Labels of the When2Call grader: labels.
    """
    samples = [
        {"id": task, "run": n, "model": "m", "expected": "tool_call", "predicted": label}
        for task, labels in {"a": ("tool_call", "tool_call"), "b": ("direct", "tool_call")}.items()
        for n, label in enumerate(labels)
    ]
    metrics = {"stability": {"kind": "stability", "of": "When2Call"}}
    report = gradestack.grade(samples, graders=[When2Call()], metrics=metrics)
    stability = report.metrics["aggregates"]["When2Call"]["stability"]
    assert (
        stability["stability_at_k"],
        stability["mode_correct_rate"],
        stability["mean_flip_rate"],
    ) == (
        0.5,
        0.5,
        0.5,
    )
    assert stability["labels"] == list(LABELS)
    report.close()


def test_samples_without_gold_or_label_say_what_they_need():
    """A clear message instead of a zero."""
    report = gradestack.grade([Sample(id="a")], graders=["stability_label"])
    assert report.metrics["states"]["stability_label"]["skipped"] == 1
    report.close()
