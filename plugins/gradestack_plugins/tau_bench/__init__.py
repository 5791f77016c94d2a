"""The tau-bench family: its result files, partial credit for tool calls, recorded rewards, pass^k."""

from __future__ import annotations

from gradestack import Component, Panel, hookimpl

_HERE = "gradestack_plugins.tau_bench"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the components of this family."""
    return (
        Component(
            kind="reader",
            name="tau_bench",
            target=f"{_HERE}.reader:TauBench",
            summary="tau-bench result files: a JSON list with one object per task and trial",
        ),
        Component(
            kind="grader",
            name="tau_partial",
            target=f"{_HERE}.grader:TauPartial",
            summary="Partial credit per expected call: 0.4 for the tool, 0.6 for its arguments",
        ),
        Component(
            kind="grader",
            name="tau_reward",
            target=f"{_HERE}.reward:TauReward",
            summary="The reward the benchmark recorded, with a success tolerance",
        ),
        Component(
            kind="aggregator",
            name="partial_statistics",
            target=f"{_HERE}.aggregators:PartialStatistics",
            summary="Average, range, histogram, interesting cases, tool selection accuracy, argument precision",
        ),
        Component(
            kind="aggregator",
            name="binary",
            target=f"{_HERE}.binary:Binary",
            summary="Success rate (score above a threshold) and average",
        ),
        Component(
            kind="aggregator",
            name="pass_hat_k",
            target=f"{_HERE}.reliability:PassHatK",
            summary="pass^k: chance that k trials of a task all succeed",
        ),
        Component(
            kind="aggregator",
            name="pass_at_k",
            target=f"{_HERE}.reliability:PassAtK",
            summary="pass@k: chance that at least one of k trials of a task succeeds",
        ),
        Component(
            kind="exporter",
            name="tau_bench",
            target=f"{_HERE}.exporter:TauBenchExporter",
            summary="<input>_partial.json and tau_statistics.txt, as the partial scoring script writes them",
        ),
        Component(
            kind="stack",
            name="tau-bench",
            target=f"{_HERE}.stacks:tau_bench",
            summary="Partial scores and recorded rewards of tau-bench runs, with pass^k and pass@k",
        ),
    )


@hookimpl
def gradestack_panels() -> tuple[Panel, ...]:
    """Return what the family shows on pages."""
    return (
        Panel(
            name="reliability", place="overview", title="Reliability over trials", target=f"{_HERE}.panels:reliability"
        ),
    )
