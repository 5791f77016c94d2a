"""Stability: does a model give the same answer when the same task is run k times."""

from __future__ import annotations

from typing import Any

from gradestack import Component, hookimpl

_TABLE = """
reader stability .reader:StabilityReader Stability sweeps: a line per task, with labels of its k
    runs
grader stability_label .aggregators:StabilityLabel The label of one run of a task against the gold
    label
aggregator stability .aggregators:Stability Stability@k, consistency, entropy, flip rate over runs
exporter stability .exporter:StabilityExporter native/stability.json: the suite's metrics file
program stability .program:StabilityProgram The suite's metrics file as the suite computes it
panel stability .panels:stability Figures over runs with their intervals, and by expected answer
stack stability :stack Labels of repeated runs with the stability metrics
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))


def stack() -> dict[str, Any]:
    """Return the stack; the grader brings its aggregators: mean and stability."""
    figures = {
        "Stability@k": "stability_at_k",
        "Consistency@k": "mean_consistency_at_k",
        "Stable and correct": "stable_and_correct_rate",
        "Stable but wrong": "stable_but_wrong_rate",
        "Mode correct": "mode_correct_rate",
        "Accuracy across runs": "mean_accuracy_across_runs",
        "Entropy": "mean_entropy",
        "Normalized entropy": "mean_normalized_entropy",
        "Flip rate": "mean_flip_rate",
        "Coverage": "coverage",
    }
    headline = {
        "figures": {label: f"label.stability.{name}" for label, name in figures.items()},
    }
    return {
        "graders": {"label": {"kind": "stability_label"}},
        "outcome": "label",
        "headline": headline,
    }
