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
    runs_path = EXAMPLE / "runs.jsonl"
    dataset = EXAMPLE / "dataset.jsonl"
    grade_files(
        [runs_path],
        dataset=dataset,
        output=tmp_path,
        overrides=["reports=[]"],
    )
    native_folder = tmp_path / "native"
    return (native_folder / "stability.json").read_text()


def test_the_docs_page_shows_these_very_figures(example):
    """Every figure of the worked example stands in the page, ours and the program's."""
    docs_folder = ROOT / "docs"
    stability_path = docs_folder / "stability.md"
    page = stability_path.read_text()
    values = [
        [json.loads(line) for line in (EXAMPLE / name).read_text().splitlines()]
        for name in ("runs.jsonl", "dataset.jsonl")
    ]
    document = json.loads(example)
    ours = document["metrics"]
    programs = stability_document(*values)["metrics"]
    for name in ("coverage", *MEANS):
        expected_text = f"| `{name}` | {ours[name]:.6f} | {programs[name]:.6f} |"
        assert expected_text in page


def test_the_native_file_has_the_suites_keys_in_its_order(example):
    """Heading, then the metrics, per gold label in canonical order, then counts of ours."""
    document = json.loads(example)
    assert list(document) == ["exp_name", "n_runs", "temperature", "metrics", "gradestack"]
    assert document["exp_name"] == "mcq_stability_k=5_T=0.7"
    assert document["n_runs"] == 5
    assert document["temperature"] == 0.7
    counts = ["n_items_total", "n_items_processed", "coverage"]
    per_gold = []
    for label in LABELS:
        for name in METRICS_PER_GOLD:
            per_gold.append(f"{name}_gold_{label}")
    expected = [*counts, *MEANS, *per_gold]
    metrics = list(document["metrics"])
    assert metrics == expected
    text = json.dumps(document, indent=2)
    assert example == text


def test_any_graders_outcomes_have_a_stability():
    """Scores of another family over repeated runs: pass or fail.

    Labels of the When2Call grader: labels.
    """
    samples = []
    for task, labels in {"a": ("tool_call", "tool_call"), "b": ("direct", "tool_call")}.items():
        for n, label in enumerate(labels):
            samples.append(
                {"id": task, "run": n, "model": "m", "expected": "tool_call", "predicted": label}
            )
    metrics = {"stability": {"kind": "stability", "of": "When2Call"}}
    graders = [When2Call()]
    report = gradestack.grade(samples, graders=graders, metrics=metrics)
    aggregates = report.metrics["aggregates"]
    stability = aggregates["When2Call"]["stability"]
    assert stability["stability_at_k"] == 0.5
    assert stability["mode_correct_rate"] == 0.5
    assert stability["mean_flip_rate"] == 0.5
    assert stability["labels"] == list(LABELS)
    report.close()


def test_samples_without_gold_or_label_say_what_they_need():
    """A clear message instead of a zero."""
    sample = Sample(id="a")
    report = gradestack.grade([sample], graders=["stability_label"])
    states = report.metrics["states"]
    skipped = states["stability_label"]["skipped"]
    assert skipped == 1
    report.close()
