"""The content of summary.json: figures, gates, headline, failures and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from gradestack.errors import ConfigError
from gradestack.gates.measures import Scores
from gradestack.gates.paths import Aggregates, NoFigure, figure_at
from gradestack.gates.rules import BaselineGate
from gradestack.gates.successes import grader_figures, rule_text, successes, verdict_text
from gradestack.gates.texts import gate_warnings
from gradestack.gates.verdicts import Verdict, judge, limit_verdict, require_graded
from gradestack.grading.merging import Merged
from gradestack.grading.subset import subset_entry
from gradestack.jsonio.values import as_map, as_text, is_number
from gradestack.metrics.counts import Count, merge_counts
from gradestack.metrics.of_run import RunFigures
from gradestack.model import JSON, Outcome
from gradestack.outcome.baselines import Baselines
from gradestack.outcome.programs import ProgramResults
from gradestack.outcome.reasons import (
    FirstUngraded,
    add_reasons,
    all_failed_text,
    find_first_ungraded,
)
from gradestack.outcome.warnings import (
    component_warnings,
    grade_warnings,
    list_warnings,
)
from gradestack.report import Report
from gradestack.suites.spec import Figure, Suite

AVERAGES = ("avg_score_attempted", "avg_score_total")
_OF_A_MODEL = ("total", "total_attempted", *AVERAGES)
_OF_A_GRADER = (*AVERAGES, "pass_rate", "passed_attempts", "failed_attempts")
_NO_SUCCESSES = {"passed": 0, "failed": 0, "share": None, "share_interval": None}


def check_without_rows(suite: Suite) -> None:
    """Refuse to keep no rows where rows are what something is computed from."""
    problems = [
        f"gate {number}: compares task by task with a baseline, which needs rows"
        for number, gate in enumerate(suite.gates, 1)
        if isinstance(gate, BaselineGate)
    ]
    if suite.num_runs is not None:
        problems.append("num_runs: runs are told apart by their rows")
    for stage in suite.programs:
        if stage.component.needs_rows:
            problems.append(f"profile: the program of {stage.name} reads the rows")
    if problems:
        raise ConfigError("no rows are kept (rows: none), but the suite needs them", *problems)


class Evaluation(msgspec.Struct, frozen=True):
    """The data that a summary is made of."""

    suite: Suite
    run_figures: RunFigures
    merged: Merged
    """Counts of everything, or of one run of several."""
    recorded: Report
    """Its rows."""
    baselines: Baselines
    programs: ProgramResults
    part: Sequence[int] | None = None
    """Numbers of the rows of one run of several; None for everything."""

    @property
    def unreadable(self) -> int:
        """Records that could not be read.

        Nobody knows which of several runs they are of, and a part of a run is no run.
        """
        if self.part is None:
            return self.merged.bad - self.merged.bad_parts
        return 0


def summarise(evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of summary.json for everything, or for one run of several."""
    suite, merged = evaluation.suite, evaluation.merged
    counts_by_model = evaluation.run_figures.counts(evaluation.part)
    counts = {
        key: merge_counts(by_model.values()).with_unreadable(evaluation.unreadable)
        for key, by_model in counts_by_model.items()
    }
    averages = {key: grader_figures(count) for key, count in counts.items()}
    models = [*counts_by_model[suite.main]]
    if not any(models):
        models = []
    aggregates = evaluation.run_figures.figures(evaluation.part)
    gates = _judge_gates(evaluation, aggregates, counts)
    has_own_data = suite.reader.component.stack == "auto"
    doubted = ""
    if has_own_data and suite.success is not None:
        doubted = suite.success.grader
    first_ungraded = find_first_ungraded(counts, doubted, evaluation.recorded)
    broken, failed_metrics = _broken_components(evaluation)
    gates_passed = None
    if gates:
        gates_passed = all(gate.passed for gate in gates)
    metrics = _write_metrics(suite, models, averages, counts_by_model)
    pass_rule = rule_text(suite.main, suite.rule)
    outcome = _write_outcome(evaluation, models)
    content: dict[str, Any] = {
        "suite": suite.name,
        "config": suite.config,
        "metrics": metrics,
        "pass_rule": pass_rule,
        "outcome": outcome,
        "headline": {
            "letta": suite.headline.letta,
            "figures": headline_figures(suite, aggregates, averages),
        },
        "gates": [gate.as_json() for gate in gates],
        "gates_passed": gates_passed and not merged.interrupted,
        "warnings": [
            *list_warnings(suite, merged, models, evaluation.run_figures.merged.table),
            *grade_warnings(suite, counts, doubted, merged, first_ungraded),
            *(text for gate in gates for text in gate_warnings(gate)),
            *component_warnings(suite, broken | failed_metrics, aggregates),
        ],
    }
    states = {key: count.states for key, count in counts.items()}
    content["metrics"] |= {"states": states, "aggregates": aggregates}
    if evaluation.programs.entries:
        content["programs"] = evaluation.programs.entries
    if evaluation.part is None:
        content["failures"] = _write_failures(counts, first_ungraded)
    all_failed = all_failed_text(suite, counts, merged, first_ungraded)
    problems = {
        "all_failed": all_failed,
        "broken": broken,
        "failed_metrics": failed_metrics,
    }
    known_problems = {name: problem for name, problem in problems.items() if problem}
    records = _write_records(suite, merged)
    return content | records | known_problems


def _write_records(suite: Suite, merged: Merged) -> dict[str, Any]:
    """Return the entries about records: bad ones, duplicates, those left out, and remarks."""
    duplicates = {"policy": suite.duplicates, "count": merged.duplicates}
    bad_records = {"count": merged.bad, "listed": merged.bad_listed}
    entries: dict[str, Any] = {
        "bad_records": bad_records,
        "duplicates": {**duplicates, "listed": merged.duplicates_listed},
    }
    if merged.left_out or suite.subset:
        entries["subset"] = subset_entry(suite.taken, merged.samples, merged.left_out)
    if merged.remarks:
        remarks = entries["remarks"] = {}
        for kind, (times, where) in sorted(merged.remarks.items()):
            remarks[kind] = {"count": times, "first": where}
    if merged.interrupted:
        entries["incomplete"] = "interrupted: the figures cover the runs graded before"
    return entries


def _judge_gates(
    evaluation: Evaluation, aggregates: Aggregates, counts: Mapping[str, Count]
) -> list[Verdict]:
    """Return the verdicts of all gates, the limit of failed samples included."""
    suite, part = evaluation.suite, evaluation.part
    run_figures = evaluation.run_figures
    graders = {stage.key: stage.component for stage in suite.graders}
    native_files = evaluation.programs.native_files()
    scores = Scores(
        table=run_figures.merged.table,
        part=part,
        graders=graders,
        figures=lambda rows: aggregates if rows is part else run_figures.figures(rows),
        unreadable=evaluation.unreadable,
        min_graded=suite.min_graded,
        native=native_files,
    )
    baselines = evaluation.baselines
    # rows are read for baselines only, once
    read_sides = cache(lambda: baselines.this_run(suite, evaluation.recorded, aggregates))
    verdicts = []
    for gate in suite.gates:
        if isinstance(gate, BaselineGate):
            verdict = baselines.verdict(gate, suite, read_sides)
            key = verdict.metric_key or ""
            require_graded(verdict, [key], scores)
        else:
            verdict = judge(gate, scores)
        verdicts.append(verdict)
    add_reasons(verdicts, evaluation.recorded)
    if suite.max_failed is not None:
        verdicts.append(limit_verdict(suite.max_failed, counts))
    return verdicts


def _broken_components(evaluation: Evaluation) -> tuple[dict[str, str], dict[str, str]]:
    """Return the errors of broken exporters and programs, and those of broken metrics, by name."""
    suite = evaluation.suite
    errors = evaluation.run_figures.merged.broken
    broken = {
        f"exporter {stage.name} ({stage.distribution})": errors[stage.name]
        for stage in suite.exporters
        if stage.name in errors
    }
    for name, error in evaluation.programs.broken.items():
        broken[f"program {name}"] = error
    metrics = {}
    for metric in suite.metrics:
        if metric.name in errors:
            metrics[metric.name] = errors[metric.name]
    return broken, metrics


def _write_metrics(
    suite: Suite,
    models: Sequence[str],
    averages: Mapping[str, Mapping[str, JSON]],
    counts_by_model: Mapping[str, Mapping[str, Count]],
) -> dict[str, Any]:
    """Return letta-evals' figures: of the main grader, by model and by grader."""
    average = averages[suite.main]
    metrics: dict[str, Any] = {**average}
    del metrics["pass_rate"]
    rows = [_write_model(suite, model, counts_by_model) for model in models]
    metrics["per_model"] = rows or None
    metrics["by_metric"], metrics["metrics"] = {}, {}
    for key, figures in averages.items():
        metrics["by_metric"][key] = {name: figures[name] for name in _OF_A_GRADER}
        metrics["metrics"][key] = figures["pass_rate"]
    return metrics


def _write_model(
    suite: Suite, model: str, counts_by_model: Mapping[str, Mapping[str, Count]]
) -> dict[str, Any]:
    """Write a model's row of the summary: its main figures and its pass rate by each grader."""
    main = grader_figures(counts_by_model[suite.main][model])
    pass_rates = {}
    for key, by_model in counts_by_model.items():
        figures = grader_figures(by_model[model])
        pass_rates[key] = figures["pass_rate"]
    row: dict[str, Any] = {name: main[name] for name in _OF_A_MODEL}
    row["model_name"] = model or None
    row["passed_samples"] = main["passed_attempts"]
    row["failed_samples"] = main["failed_attempts"]
    row["metrics"] = pass_rates
    return row


def _write_outcome(evaluation: Evaluation, models: Sequence[str]) -> dict[str, Any] | None:
    """Count the runs that are successes, in the run's words; None without a rule of success."""
    suite = evaluation.suite
    if suite.success is None:
        return None
    table = evaluation.run_figures.merged.table
    counts = successes(table, suite.success, evaluation.part)
    graded = counts["passed"] + counts["failed"]
    rows = []
    for model in models:
        of_model = counts["models"].get(model, _NO_SUCCESSES)
        model_name = model or None
        rows.append({"model_name": model_name, **of_model})
    outcome = {name: counts[name] for name in _NO_SUCCESSES}
    outcome["grader"] = suite.success.grader
    outcome["rule"] = verdict_text(suite.success, graded, counts["own_verdicts"])
    outcome["words"] = {"passed": suite.headline.passed, "failed": suite.headline.failed}
    outcome["per_model"] = rows or None
    return outcome


def _write_failures(counts: Mapping[str, Count], first: FirstUngraded) -> dict[str, Any]:
    """Count the grades of each grader that failed, with the first error."""
    failures: dict[str, Any] = {}
    for key, count in counts.items():
        number = count.states[Outcome.FAILED]
        if number:
            failures[key] = {"count": number}
            state = str(Outcome.FAILED)
            run = first.get((key, state))
            if run is not None:
                failures[key]["first"] = {"reason": run.reason, "at": run.where}
    return failures


def headline_figures(
    suite: Suite, aggregates: Aggregates, averages: Aggregates
) -> list[dict[str, JSON]]:
    """Return the figures of the headline: label, path, value, and interval or reason.

    A figure that corrects the share of successes (``corrects``) has no value while it is
    uncalibrated.
    """
    entries = []
    for figure in suite.headline.figures:
        of_grader = aggregates[figure.grader] if figure.metric else averages
        metrics = as_map(of_grader[figure.metric or figure.grader])
        label = _label(figure.label, metrics)
        entry: dict[str, JSON] = {"label": label, "figure": figure.path}
        reason_uncalibrated = None
        if figure.corrects:
            entry["corrects"] = figure.corrects
            reason_uncalibrated = metrics.get("uncalibrated")
        if reason_uncalibrated is not None:
            entry |= {"value": None, "reason": reason_uncalibrated}
        else:
            entry |= _estimate(figure, metrics)
            models = as_map(metrics.get("models")).items()
            by_model = {str(name): _estimate(figure, as_map(of_model)) for name, of_model in models}
            if _is_made_by_model(entry, by_model):
                entry["models"] = by_model
        entries.append(entry)
    return entries


def _is_made_by_model(
    entry: Mapping[str, JSON], by_model: Mapping[str, Mapping[str, JSON]]
) -> bool:
    """Return whether a figure is made of each model: a total, say, is made of all runs alone."""
    has_values = any(of_model["value"] is not None for of_model in by_model.values())
    return bool(by_model) and (has_values or entry["value"] is None)


def _label(label: str, metrics: Mapping[str, Any]) -> str:
    """Return a label of a figure at k with the number of runs, where its metric has one ``k``."""
    k = metrics.get("k")
    if label.endswith("@k") and is_number(k):
        label = f"{label.removesuffix('k')}{k}"
    return label


def _estimate(figure: Figure, metrics: Mapping[str, Any]) -> dict[str, JSON]:
    """Return value, and interval or reason, of a number or a map of numbers.

    The value is null where there is none of that name.
    """
    with suppress(NoFigure):
        value, path, reason, interval = figure_at(metrics, figure.name, (figure.metric,), "")
        numbers = value.values() if isinstance(value, Mapping) and value else [value]
        if path and all(number is None or is_number(number) for number in numbers):
            entry: dict[str, JSON] = {"value": value}
            if isinstance(interval, Mapping):
                entry["interval"] = dict(interval)
            if value is None:
                undefined = as_map(metrics.get("undefined"))
                of_interval = as_map(interval).get("reason")
                entry["reason"] = _first_reason(reason, undefined.get(path), of_interval)
            return entry
    name = figure.name or figure.metric
    missing = f"{figure.metric} has no figure {name!r}"
    error = as_text(metrics.get("error"))
    return {"value": None, "reason": error or missing}


def _first_reason(*reasons: JSON) -> str:
    for text in map(as_text, reasons):
        if text not in ("", "undefined"):
            return text
    return "not defined"
