"""The content of summary.json."""

from __future__ import annotations

from typing import Any

from gradestack.errors import ConfigError
from gradestack.gates.figures import grader_figures, overall
from gradestack.gates.rules import needs_scores
from gradestack.gates.scores import Counted, RowSeries
from gradestack.gates.success import rule_text
from gradestack.gates.verdicts import verdict
from gradestack.grading.counts import Count
from gradestack.grading.merging import Merged, Merging
from gradestack.model import JSON, Outcome
from gradestack.outcome.headline import finished, headline_figures, outcome
from gradestack.suites.spec import Suite


def check_without_rows(suite: Suite) -> None:
    """Refuse to keep no rows where rows are what something is computed from.

    Raises:
        ConfigError: Naming everything that needs them.
    """
    problems = [
        f"gate {number}: computed from rows, like every gate with an aggregation, `per` or conditions, and an accuracy "
        "after the first gate"
        for number, gate in enumerate(suite.gates, 1)
        if needs_scores(gate, suite.rule)
    ]
    if suite.num_runs is not None:
        problems.append("num_runs: runs are told apart by their rows")
    if problems:
        msg = "no rows are kept (rows: none), but the suite needs them"
        raise ConfigError(msg, *problems)


def _gates(suite: Suite, counts: dict[str, Count], series: RowSeries) -> list[dict[str, JSON]]:
    """Return every gate's verdict; rows are read only for gates that need their scores."""
    return [
        verdict(
            gate,
            series.everything if needs_scores(gate, suite.rule) else Counted(counts),
            series.groups,
            suite.profile,
        )
        for gate in suite.gates
    ]


def summary(suite: Suite, merging: Merging, merged: Merged, series: RowSeries) -> dict[str, Any]:
    """Return the content of summary.json for everything, or for one run of several.

    Args:
        suite: What was run.
        merging: The run, and what is broken in it.
        merged: The counts and states to report.
        series: Scores of the rows, read when a gate needs them.
    """
    keys = [stage.key for stage in suite.graders]
    counts = overall(merged.tally, keys)
    figures = {key: grader_figures(count, suite.profile) for key, count in counts.items()}
    head = figures[suite.main]
    aggregates, successes = finished(suite, merging, merged.states)
    gates = _gates(suite, counts, series)
    short = ("avg_score_attempted", "avg_score_total", "pass_rate", "passed_attempts", "failed_attempts")
    named = any(merged.tally)
    content: dict[str, Any] = {
        "suite": suite.name,
        "config": suite.config,
        "metrics": {
            **{name: head[name] for name in head if name != "pass_rate"},
            "per_model": [_model_row(suite, model, merged) for model in merged.tally] if named else None,
            "by_metric": {key: {name: figures[key][name] for name in short} for key in keys},
            "metrics": {key: figures[key]["pass_rate"] for key in keys},
            "states": {key: counts[key]["states"] for key in keys},
            "aggregates": aggregates,
        },
        "pass_rule": rule_text(suite.main, suite.rule),
        "outcome": outcome(suite, successes, list(merged.tally) if named else []),
        "headline": {"letta": suite.headline.letta, "figures": headline_figures(suite, aggregates, figures)},
        "gates": gates,
        "gates_passed": all(gate["passed"] for gate in gates) if gates else None,
        "bad_records": {"count": merged.bad, "listed": merged.bad_listed},
        "duplicates": {
            "policy": suite.duplicates,
            "count": merged.duplicates,
            "listed": merged.duplicates_listed,
        },
        "warnings": _warnings(suite, merged),
    }
    if merged.broken:
        content["broken"] = merged.broken
    if merged.interrupted:
        content["incomplete"] = "interrupted: the figures cover the samples graded before"
        content["gates_passed"] = False if gates else None
    return content


def _model_row(suite: Suite, model: str, merged: Merged) -> dict[str, Any]:
    profile, counts = suite.profile, merged.tally[model]
    head = grader_figures(counts[suite.main], profile)
    return {
        "model_name": model or None,
        "total": head["total"],
        "total_attempted": head["total_attempted"],
        "avg_score_attempted": head["avg_score_attempted"],
        "avg_score_total": head["avg_score_total"],
        "passed_samples": head["passed_attempts"],
        "failed_samples": head["failed_attempts"],
        "metrics": {key: grader_figures(count, profile)["pass_rate"] for key, count in counts.items()},
    }


def _warnings(suite: Suite, merged: Merged) -> list[str]:
    said = list(suite.warnings)
    if merged.duplicates:
        first = f", the first at {merged.duplicates_listed[0]}" if merged.duplicates_listed else ""
        what = {"keep": "all are kept", "last": "the last is kept"}[suite.duplicates]
        said.append(f"{merged.duplicates} record(s) repeat an (id, model, run){first}; {what}")
    for key, count in overall(merged.tally, [stage.key for stage in suite.graders]).items():
        if merged.samples and not count["states"][Outcome.GRADED]:
            others = ", ".join(f"{number} {state}" for state, number in count["states"].items() if number)
            said.append(f"grader {key!r} graded no sample ({others}); the rows say why")
    said += [f"{name} is broken and left out: {text}" for name, text in sorted(merged.broken.items())]
    return said
