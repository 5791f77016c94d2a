"""OrchestrationBench: call/rejection decisions, function calls and workflow plans of orchestrating agents."""

from __future__ import annotations

from gradestack import Component, Kind, hookimpl

_PACKAGE = "gradestack_plugins.orchestrationbench"
_COMPONENTS: tuple[tuple[Kind, str, str, str], ...] = (
    (
        "reader",
        "orchestrationbench",
        ".reader:OrchestrationBenchReader",
        "OrchestrationBench scenario outputs: a directory of *_out.json or single files",
    ),
    (
        "reader",
        "orchestrationbench_scenario",
        ".scenario_reader:ScenarioReader",
        "OrchestrationBench scenario YAML: gold calls and plans as a dataset",
    ),
    (
        "grader",
        "orchestrationbench",
        ".graders:OrchestrationBench",
        "OrchestrationBench as a whole: decisions, calls and plans in one grade",
    ),
    (
        "grader",
        "orchestration_decision",
        ".graders:OrchestrationDecision",
        "call a tool or refuse to: decision of every sub-agent turn against gold",
    ),
    (
        "grader",
        "orchestration_call",
        ".graders:OrchestrationCall",
        "F1 of function names, argument keys and argument values where both sides call",
    ),
    (
        "grader",
        "orchestration_plan",
        ".graders:OrchestrationPlan",
        "similarity of workflow plans by graph edit distance",
    ),
    (
        "aggregator",
        "orchestrationbench",
        ".aggregators:OrchestrationBenchFigures",
        "Average, Call Rejection Classification Accuracy, FC and Plan with all details",
    ),
    (
        "aggregator",
        "orchestration_decisions",
        ".aggregators:OrchestrationDecisions",
        "call/rejection matrix, precision, recall, F1, over- and underaction",
    ),
    (
        "aggregator",
        "orchestration_calls",
        ".aggregators:OrchestrationCalls",
        "function name, key and value F1 over files, and FC",
    ),
    (
        "aggregator",
        "orchestration_plans",
        ".aggregators:OrchestrationPlans",
        "plan similarity with and without failures over files",
    ),
    (
        "exporter",
        "orchestrationbench",
        ".exporter:OrchestrationBenchExporter",
        "orchestrationbench.json, the original's result file",
    ),
    ("stack", "orchestrationbench", ".stacks:orchestrationbench", "all graders of OrchestrationBench"),
    ("panel", "decisions", ".panels:Decisions", "What was decided where a call, or a rejection, was right"),
    ("panel", "plans", ".panels:Plans", "Workflows of a sample, as expected and as made"),
)


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return tuple(
        Component(kind=k, name=name, target=_PACKAGE + path, summary=text) for k, name, path, text in _COMPONENTS
    )
