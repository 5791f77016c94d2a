"""OrchestrationBench: call/rejection decisions, function calls and workflow plans of orchestrating agents."""

from __future__ import annotations

from gradestack import Component, Panel, hookimpl

_PACKAGE = "gradestack_plugins.orchestrationbench"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the readers, graders, aggregators, exporter and stack of the family."""
    return (
        Component(
            kind="reader",
            name="orchestrationbench",
            target=f"{_PACKAGE}.reader:OrchestrationBenchReader",
            summary="OrchestrationBench scenario outputs: a directory of *_out.json or single files",
        ),
        Component(
            kind="reader",
            name="orchestrationbench_scenario",
            target=f"{_PACKAGE}.scenario_reader:ScenarioReader",
            summary="OrchestrationBench scenario YAML: gold calls and plans as a dataset",
        ),
        Component(
            kind="grader",
            name="orchestrationbench",
            target=f"{_PACKAGE}.graders:OrchestrationBench",
            summary="OrchestrationBench as a whole: decisions, calls and plans in one grade",
        ),
        Component(
            kind="grader",
            name="orchestration_decision",
            target=f"{_PACKAGE}.graders:OrchestrationDecision",
            summary="call a tool or refuse to: decision of every sub-agent turn against gold",
        ),
        Component(
            kind="grader",
            name="orchestration_call",
            target=f"{_PACKAGE}.graders:OrchestrationCall",
            summary="F1 of function names, argument keys and argument values where both sides call",
        ),
        Component(
            kind="grader",
            name="orchestration_plan",
            target=f"{_PACKAGE}.graders:OrchestrationPlan",
            summary="similarity of workflow plans by graph edit distance",
        ),
        Component(
            kind="aggregator",
            name="orchestrationbench",
            target=f"{_PACKAGE}.aggregators:OrchestrationBenchFigures",
            summary="Average, Call Rejection Classification Accuracy, FC and Plan with all details",
        ),
        Component(
            kind="aggregator",
            name="orchestration_decisions",
            target=f"{_PACKAGE}.aggregators:OrchestrationDecisions",
            summary="call/rejection matrix, precision, recall, F1, over- and underaction",
        ),
        Component(
            kind="aggregator",
            name="orchestration_calls",
            target=f"{_PACKAGE}.aggregators:OrchestrationCalls",
            summary="function name, key and value F1 over files, and FC",
        ),
        Component(
            kind="aggregator",
            name="orchestration_plans",
            target=f"{_PACKAGE}.aggregators:OrchestrationPlans",
            summary="plan similarity with and without failures over files",
        ),
        Component(
            kind="exporter",
            name="orchestrationbench",
            target=f"{_PACKAGE}.exporter:OrchestrationBenchExporter",
            summary="orchestrationbench.json, the original's result file",
        ),
        Component(
            kind="stack",
            name="orchestrationbench",
            target=f"{_PACKAGE}.stacks:orchestrationbench",
            summary="all graders of OrchestrationBench",
        ),
    )


@hookimpl
def gradestack_panels() -> tuple[Panel, ...]:
    """Return what the family shows on pages."""
    return (
        Panel(name="decisions", place="overview", title="Calls and rejections", target=f"{_PACKAGE}.panels:decisions"),
        Panel(name="plans", place="sample", title="Plans", target=f"{_PACKAGE}.panels:plans"),
    )
