"""Several recorded runs of the same tasks.

Each with its own figures and gate, and statistics over the runs.

Rows are split by run as they stand in results.jsonl; the figures of a run are those of its part of
the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from gradestack.errors import DataError
from gradestack.grading.merging import Merged, Merging
from gradestack.model import Status
from gradestack.outcome.baselines import Baselines
from gradestack.outcome.programs import ProgramResults
from gradestack.outcome.summary import summary as summarise
from gradestack.report import HEADER, SUMMARY, Report
from gradestack.rows.packed import create_rows
from gradestack.rundir.place import Staging
from gradestack.suites.spec import Suite

AGGREGATE = "aggregate_stats.json"


def _order(run: Any) -> tuple[bool, int, str, str]:
    """Return what runs are sorted by: numbers first, by their value."""
    text = str(run)
    digits = text.lstrip("0") if text.isdecimal() else ""
    return not text.isdecimal(), len(digits), digits, text


def _runs(whole: Report, asked: int) -> list[Any]:
    """Return the runs that rows are of, in order; each model must have all that are asked for."""
    models: dict[str, set[Any]] = {}
    for row in whole.rows():
        if row["status"] != Status.MISSING:
            models.setdefault(row["model_name"] or "", set()).add(row["run"])
    everything = sorted(set().union(*models.values()), key=_order)
    lacking = [
        f"model {model or '(unnamed)'} lacks run {run}"
        for model, runs in models.items()
        for run in everything
        if run not in runs
    ]
    if len(everything) != asked or lacking:
        names = ", ".join("(unnamed)" if run is None else str(run) for run in everything)
        raise DataError(
            f"num_runs asks for {asked} run(s), the recording holds {len(everything)}: {names}",
            *lacking,
        )
    return everything


def _split(whole: Report, runs: list[Any], staging: Staging) -> list[list[int]]:
    """Write ``run_N/results.jsonl``; return the numbers of each run's rows.

    A missing sample is one of every run.
    """
    rows: dict[Any, list[int]] = {each: [] for each in runs}
    files = []
    try:
        for number in range(1, len(runs) + 1):
            folder = staging.path / f"run_{number}"
            folder.mkdir()
            files.append(create_rows(folder / Path(whole.rows_name).name))
        places = dict(zip(runs, files, strict=True))
        for number, _, line in whole.lines():
            run = whole.row(number, line)["run"]
            for each in [run] if run in places else runs:
                places[each].writelines([line])
                rows[each].append(number - 1)
    finally:
        for file in files:
            file.close()
    return list(rows.values())


def _block(values: list[float | None]) -> dict[str, Any]:
    """Return mean, sample standard deviation, min and max.

    Runs without a figure are left out, one has no deviation.
    """
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys(("mean", "std", "min", "max"))
    return {
        "mean": mean(known),
        "std": stdev(known) if len(known) > 1 else None,
        "min": min(known),
        "max": max(known),
    }


def statistics(metrics: list[Mapping[str, Any]], passed: list[bool | None]) -> dict[str, Any]:
    """Return aggregate_stats.json.

    Nested blocks as the document has them, flat fields as the program writes them.
    """
    runs_passed = sum(verdict is True for verdict in passed)
    keys = list(metrics[0]["by_metric"])
    averages = ("avg_score_attempted", "avg_score_total")
    blocks = {name: _block([each[name] for each in metrics]) for name in averages}
    per_metric: dict[str, dict[str, Any]] = {key: {} for key in keys}
    for key, name in itertools.product(keys, (*averages, "pass_rate")):
        per_metric[key][name] = _block([each["by_metric"][key][name] for each in metrics])
    return {
        "num_runs": len(metrics),
        "runs_passed": runs_passed,
        "runs_failed": sum(verdict is False for verdict in passed),
        "pass_rate": 100.0 * runs_passed / len(metrics) if None not in passed else None,
        **blocks,
        "per_metric": per_metric,
        **{f"mean_{name}": block["mean"] for name, block in blocks.items()},
        **{f"std_{name}": block["std"] for name, block in blocks.items()},
        "mean_scores": {key: per_metric[key]["avg_score_attempted"]["mean"] for key in keys},
        "std_scores": {key: per_metric[key]["avg_score_attempted"]["std"] for key in keys},
        "individual_run_metrics": [
            {k: value for k, value in each.items() if k != "aggregates"} for each in metrics
        ],
    }


def _runs_without(metrics: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence about runs of which nothing was graded, where others have an average."""
    without = sum(each["avg_score_attempted"] is None for each in metrics)
    if 0 < without < len(metrics):
        yield (
            f"{without} of {len(metrics)} runs have no average, as nothing of theirs was graded; "
            f"mean and std over the runs are of the other {len(metrics) - without}"
        )


def enough(rule: str | int, passed: int, runs: int) -> bool:
    """Return whether enough runs passed.

    ``any``, ``all``, ``majority`` (more than half) or a number.
    """
    needed = {"any": 1, "all": runs, "majority": runs // 2 + 1}.get(str(rule), rule)
    return passed >= int(needed)


def write_runs(
    suite: Suite,
    run: Merging,
    staging: Staging,
    header: dict[str, Any],
    summary: dict[str, Any],
    baselines: Baselines,
    programs: ProgramResults,
) -> dict[str, Any]:
    """Write ``run_N/`` folders of several runs and aggregate_stats.json.

    Return the summary over all runs.
    """
    whole = Report(path=staging.path, header={}, summary={})
    runs = _runs(whole, suite.num_runs or 1)
    if len(runs) == 1:
        return summary
    verdicts: list[bool | None] = []
    figures: list[Mapping[str, Any]] = []
    for number, (each, part) in enumerate(zip(runs, _split(whole, runs, staging), strict=True), 1):
        recorded = Report(path=staging.path / f"run_{number}", header={}, summary={})
        alone = Merged(table=run.merged.table, samples=len(part))
        content = summarise(suite, run, alone, recorded, baselines, programs, part)
        content["run"] = each
        staging.write_json(f"run_{number}/{SUMMARY}", content)
        staging.write_json(f"run_{number}/{HEADER}", {**header, "run": each})
        verdicts.append(content["gates_passed"])
        figures.append(content["metrics"])
    stats = statistics(figures, verdicts)
    summary = {**summary, "warnings": [*summary["warnings"], *_runs_without(figures)]}
    outcome: dict[str, Any] = {
        "rule": suite.runs_must_pass,
        "runs": [None if each is None else str(each) for each in runs],
        "avg_score_attempted": stats["avg_score_attempted"],
    }
    means = [
        each.stage.key
        for each in suite.metrics
        if each.of == suite.main and each.stage.name == "mean"
    ]
    aggregates = summary["metrics"]["aggregates"][suite.main]
    # its interval by tasks: what the deviation over runs is not
    if means and (uncertainty := aggregates.get(means[0], {}).get("mean_interval")) is not None:
        outcome["uncertainty"] = uncertainty
    if summary["gates"]:
        summary = {
            **summary,
            "gates_passed": enough(suite.runs_must_pass, stats["runs_passed"], len(runs)),
        }
        outcome |= {"passed": stats["runs_passed"], "failed": stats["runs_failed"]}
    staging.write_json(AGGREGATE, {**stats, "outcome": outcome})
    return {**summary, "runs": outcome}
