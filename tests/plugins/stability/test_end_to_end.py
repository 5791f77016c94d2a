"""From files to native/stability.json, the example of the docs page, and stability of other
families' grades.
"""

import json
from pathlib import Path

import pytest

import gradestack
from gradestack import Sample, grade_files
from gradestack_plugins.stability.aggregators import PER_GOLD, RATES, heading
from gradestack_plugins.when2call.aggregators import When2Call
from tests.core.outcomes import data

DATA = data(__file__, "end_to_end.yaml")

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "stability"
LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")


def native(out):
    return json.loads((out / "native" / "stability.json").read_text())


@pytest.fixture
def example(tmp_path):
    def _example(profile, **options):
        out = tmp_path / profile
        files = [EXAMPLE / "runs.jsonl"]
        overrides = ["reports=[]", *options.pop("overrides", [])]
        grade_files(
            files,
            dataset=EXAMPLE / "dataset.jsonl",
            output=out,
            profile=profile,
            overrides=overrides,
        )
        return out

    return _example


def test_the_docs_page_shows_these_very_figures(example):
    """Every figure of the worked example stands in the page, for both profiles."""
    page = (ROOT / "docs" / "stability.md").read_text()
    one, two = (native(example(profile))["metrics"] for profile in ("documented", "upstream"))
    for name in ("coverage", *RATES):
        assert f"| `{name}` | {one[name]:.6f} | {two[name]:.6f} |" in page


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_the_artefact_has_the_suites_keys_in_its_order(example, profile):
    """Heading, then the metrics, per gold label in canonical order.

    Documented adds one key at the end.
    """
    found = native(example(profile))
    added = ["gradestack"] if profile == "documented" else []
    assert list(found) == ["exp_name", "n_runs", "temperature", "metrics", *added]
    assert (found["exp_name"], found["n_runs"], found["temperature"]) == (
        "mcq_stability_k=5_T=0.7",
        5,
        0.7,
    )
    per_gold = [f"{name}_gold_{label}" for label in LABELS for name in PER_GOLD]
    assert list(found["metrics"]) == [
        "n_items_total",
        "n_items_processed",
        "coverage",
        *RATES,
        *per_gold,
    ]
    text = (example(profile) / "native" / "stability.json").read_text()
    assert text == json.dumps(found, indent=2)


@pytest.mark.parametrize(("record", "expected"), DATA["the_heading_follows_the_kind_of_sweep"])
def test_the_heading_follows_the_kind_of_sweep(record, expected):
    """Names and temperatures of multiple choice, scoring and judge sweeps.

    The file's name when nothing is known.
    """
    found = heading(record, "file")
    assert found == expected
    assert list(found) == list(expected)


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
    found = report.metrics["aggregates"]["When2Call"]["stability"]
    assert (found["stability_at_k"], found["mode_correct_rate"], found["mean_flip_rate"]) == (
        0.5,
        0.5,
        0.5,
    )
    assert found["labels"] == list(LABELS)
    report.close()


def test_samples_without_gold_or_label_say_what_they_need():
    """A clear message instead of a zero."""
    report = gradestack.grade([Sample(id="a")], graders=["stability_label"])
    assert report.metrics["states"]["stability_label"]["skipped"] == 1
    report.close()
