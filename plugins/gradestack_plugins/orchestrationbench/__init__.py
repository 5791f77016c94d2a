"""OrchestrationBench.

Call/rejection decisions, function calls and workflow plans of orchestrating agents.
"""

from __future__ import annotations

from typing import Any

from gradestack import Component, hookimpl

_TABLE = """
reader orchestrationbench .reader:OrchestrationBenchReader Scenario outputs: a directory of
    *_out.json or single files
reader orchestrationbench_scenario .reader:ScenarioReader Scenario YAML: gold calls and plans as a
    dataset
grader orchestrationbench .graders:OrchestrationBench Decisions, calls and plans in one grade
grader orchestration_decision .graders:OrchestrationDecision call a tool or refuse to: every
    sub-agent turn against gold
grader orchestration_call .graders:OrchestrationCall F1 of names, argument keys and values where
    both sides call
grader orchestration_plan .graders:OrchestrationPlan similarity of workflow plans by graph edit
    distance
aggregator orchestrationbench .aggregators:OrchestrationBenchFigures Average, classification
    accuracy, FC and Plan, with
    details
aggregator orchestration_decisions .aggregators:OrchestrationDecisions call/rejection matrix,
    precision, recall, F1,
    overaction
aggregator orchestration_calls .aggregators:OrchestrationCalls function name, key, value F1 over
    files, and FC
aggregator orchestration_plans .aggregators:OrchestrationPlans plan similarity with and without
    failures over files
exporter orchestrationbench .exporter:OrchestrationBenchExporter orchestrationbench.json, the
    original's result file
program orchestrationbench .program:OrchestrationBenchProgram OrchestrationBench's own evaluator
stack orchestrationbench :stack all graders of OrchestrationBench
panel decisions .panels:decisions What was decided where a call, or a rejection, was right
panel plans .panels:plans Workflows of a sample, as expected and as made
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))


def stack() -> dict[str, Any]:
    """Return the graders of the family.

    The first gives the score of a trial, the others show single steps.
    """
    steps = {name: {"kind": f"orchestration_{name}"} for name in ("decision", "call", "plan")}
    keys = ("average", "call_rejection_accuracy", "fc", "plan")
    labels = ("Average", "Call Rejection Classification Accuracy", "FC", "Plan")
    figures = {
        label: f"orchestrationbench.orchestrationbench.{key}"
        for label, key in zip(labels, keys, strict=True)
    }
    return {
        "graders": {"orchestrationbench": {"kind": "orchestrationbench"}, **steps},
        "outcome": "none",
        "headline": {"figures": figures},
    }
