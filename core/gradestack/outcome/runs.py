"""Several recorded runs of the same tasks: each with its own figures and gates, and statistics.

Rows are split by run as they stand in results.jsonl; the figures of a run are those of its part of
the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import msgspec

from gradestack.errors import DataError
from gradestack.grading.merging import Merged
from gradestack.model import Status
from gradestack.outcome.summary import AVERAGES, Evaluation, summarise
from gradestack.output import counted
from gradestack.report import HEADER, SUMMARY, Report
from gradestack.rows.packed import create_rows
from gradestack.rundir.place import Staging
from gradestack.suites.spec import Suite

AGGREGATE = "aggregate_stats.json"


def _sort_key(run: Any) -> tuple[bool, int, str, str]:
    """Return a key that sorts runs: numbers first, by their value."""
    text = str(run)
    is_number = text.isdecimal()
    digits = ""
    if is_number:
        digits = text.lstrip("0")
    return not is_number, len(digits), digits, text


def _list_runs(rows: Report, num_runs: int) -> list[Any]:
    """Return the runs that rows are of, in order.

    Raises:
        DataError: There are more or fewer than ``num_runs``, or a model lacks one.
    """
    runs_by_model: dict[str, set[Any]] = {}
    for row in rows.rows():
        if row["status"] != Status.MISSING:
            model = row["model_name"] or "without a name"
            runs_by_model.setdefault(model, set()).add(row["run"])
    all_runs = set().union(*runs_by_model.values())
    every_run = sorted(all_runs, key=_sort_key)
    problems = []
    for model, runs in runs_by_model.items():
        for run in every_run:
            if run not in runs:
                problems.append(f"model {model} lacks run {run}")
    if len(every_run) != num_runs or problems:
        if every_run == [None]:
            recorded = "and no record has the number of its run (`run`, `trial`)"
        else:
            names = ["no number" if run is None else str(run) for run in every_run]
            recorded = f"the recording holds {len(every_run)}: {', '.join(names)}"
        asked = counted(num_runs, "run")
        raise DataError(f"num_runs asks for {asked}, {recorded}", *problems)
    return every_run


def _split_rows(rows: Report, runs: list[Any], staging: Staging) -> list[list[int]]:
    """Write ``run_N/results.jsonl``; return the numbers of each run's rows.

    A missing sample is one of every run.
    """
    numbers: dict[Any, list[int]] = {run: [] for run in runs}
    files: dict[Any, Any] = {}
    try:
        for number, run in enumerate(runs, 1):
            folder = staging.path / f"run_{number}"
            folder.mkdir()
            name = Path(rows.rows_name).name
            path = folder / name
            files[run] = create_rows(path)
        for number, _, line in rows.lines():
            of_row = rows.row(number, line)["run"]
            for run in [of_row] if of_row in files else runs:
                files[run].writelines([line])
                numbers[run].append(number - 1)
    finally:
        for file in files.values():
            file.close()
    return [*numbers.values()]


def _block(values: list[float | None]) -> dict[str, Any]:
    """Return mean, sample standard deviation, min and max.

    Runs without a figure are left out, one has no deviation.
    """
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys(("mean", "std", "min", "max"))
    deviation = None
    if len(known) > 1:
        deviation = stdev(known)
    return {"mean": mean(known), "std": deviation, "min": min(known), "max": max(known)}


def statistics(metrics: list[Mapping[str, Any]], passed: list[bool | None]) -> dict[str, Any]:
    """Return aggregate_stats.json.

    Nested blocks as the document has them, flat fields as the program writes them.
    """
    runs_passed = passed.count(True)
    blocks = {name: _block([run[name] for run in metrics]) for name in AVERAGES}
    per_metric: dict[str, dict[str, Any]] = {}
    for key in metrics[0]["by_metric"]:
        of_grader = [run["by_metric"][key] for run in metrics]
        blocks_of_grader = per_metric[key] = {}
        for name in (*AVERAGES, "pass_rate"):
            blocks_of_grader[name] = _block([figures[name] for figures in of_grader])
    number = len(metrics)
    stats: dict[str, Any] = {**blocks, "num_runs": number, "per_metric": per_metric}
    stats["runs_passed"] = runs_passed
    stats["runs_failed"] = passed.count(False)
    stats["pass_rate"] = None if None in passed else 100.0 * runs_passed / number
    for statistic in ("mean", "std"):
        for name, block in blocks.items():
            stats[f"{statistic}_{name}"] = block[statistic]
        scores = stats[f"{statistic}_scores"] = {}
        for key, blocks_of_grader in per_metric.items():
            scores[key] = blocks_of_grader["avg_score_attempted"][statistic]
    stats["individual_run_metrics"] = [
        {name: figure for name, figure in run.items() if name != "aggregates"} for run in metrics
    ]
    return stats


def _missing_averages(metrics: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a warning about runs of which nothing was graded, where others have an average."""
    averages = [run["avg_score_attempted"] for run in metrics]
    without = averages.count(None)
    graded = len(metrics) - without
    if without and graded:
        what = f"{without} of {len(metrics)} runs have no average, as nothing of theirs was graded"
        yield f"{what}; mean and std over the runs are of the other {graded}"


def has_enough(rule: str | int, passed: int, runs: int) -> bool:
    """Return whether enough runs passed: ``any``, ``all``, more than half, or a number."""
    most = runs // 2 + 1
    needed = {"any": 1, "all": runs, "majority": most}.get(str(rule), rule)
    return passed >= int(needed)


def write_runs(
    evaluation: Evaluation, staging: Staging, header: dict[str, Any], summary: dict[str, Any]
) -> dict[str, Any]:
    """Write ``run_N/`` folders of several runs and aggregate_stats.json.

    Args:
        evaluation: Everything that was graded.
        staging: The report directory.
        header: Content of its header.json.
        summary: Content of its summary.json.

    Returns:
        The summary over all runs.
    """
    suite = evaluation.suite
    rows = Report(path=staging.path, header={}, summary={})
    num_runs = suite.num_runs or 1
    runs = _list_runs(rows, num_runs)
    if len(runs) == 1:
        return summary
    verdicts: list[bool | None] = []
    metrics: list[Mapping[str, Any]] = []
    table = evaluation.run_figures.merged.table
    split_rows = _split_rows(rows, runs, staging)
    for number, part in enumerate(split_rows, 1):
        folder = f"run_{number}"
        path = staging.path / folder
        merged = Merged(main=suite.main, table=table, samples=len(part))
        recorded = Report(path=path, header={}, summary={})
        of_run = msgspec.structs.replace(evaluation, merged=merged, recorded=recorded, part=part)
        content = summarise(of_run)
        run = runs[number - 1]
        content["run"] = run
        of_header = {**header, "run": run}
        staging.write_json(f"{folder}/{SUMMARY}", content)
        staging.write_json(f"{folder}/{HEADER}", of_header)
        verdicts.append(content["gates_passed"])
        metrics.append(content["metrics"])
    stats = statistics(metrics, verdicts)
    passed = stats["runs_passed"]
    outcome = _interval_by_tasks(suite, summary)
    outcome["rule"] = suite.runs_must_pass
    outcome["runs"] = [None if run is None else str(run) for run in runs]
    outcome["avg_score_attempted"] = stats["avg_score_attempted"]
    warnings = [*summary["warnings"], *_missing_averages(metrics)]
    summary = {**summary, "warnings": warnings, "runs": outcome}
    if summary["gates"]:
        summary["gates_passed"] = has_enough(suite.runs_must_pass, passed, len(runs))
        outcome |= {"passed": passed, "failed": stats["runs_failed"]}
    staging.write_json(AGGREGATE, {**stats, "outcome": outcome})
    return summary


def _interval_by_tasks(suite: Suite, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interval of the mean score by tasks, which the deviation over runs is not."""
    aggregates = summary["metrics"]["aggregates"]
    of_main = aggregates[suite.main]
    for metric in suite.metrics:
        if metric.of == suite.main and metric.stage.name == "mean":
            interval = of_main.get(metric.stage.key, {}).get("mean_interval")
            if interval is None:
                return {}
            return {"uncertainty": interval}
    return {}
