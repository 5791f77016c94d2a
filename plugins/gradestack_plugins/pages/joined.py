"""The sides of a comparison as one run, each a model of it, so that it has the page of a run."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import msgspec
from msgspec import Raw

from gradestack import Comparison, DataError, Outcome, Registry, Report
from gradestack.jsonio import as_list, as_map, as_text, dumps
from gradestack_plugins.pages.figures import headline
from gradestack_plugins.pages.tallies import sum_over

_SUCCESSES = ("passed", "failed", "share", "share_interval")
_BUFFER = 1 << 18
"""Bytes of rows that are written at once: a row or two at a time take three times as long."""
_decode, _encode = msgspec.json.Decoder(dict[str, Raw]).decode, msgspec.json.Encoder().encode


def joined(comparison: Comparison, registry: Registry | None) -> Report:
    """Return the sides of a comparison as one run, in which each side is a model of its name.

    The run has the rows of all sides, and figures by model. Components and words are the
    baseline's. Tasks that were matched by something else than their ids have the id of the first
    side.
    """
    sides = _with_distinct_names(comparison.sides)
    row_buffer = tempfile.TemporaryFile(buffering=_BUFFER)  # noqa: SIM115 - closed with the report
    try:
        _write_rows(row_buffer, sides)
    except BaseException:
        row_buffer.close()
        raise
    reports_by_id = {id(side.report): side.report for side in sides}.values()
    reports = list(reports_by_id)
    inputs = [source for report in reports for source in as_list(report.header.get("inputs"))]
    names = [side.name for side in sides]
    shared = list(comparison.data["metrics"])
    metrics = _metrics(sides, shared)
    outcome = _outcome(sides)
    figures = list(_headline(sides))
    suite = f"{', '.join(names[1:])} against {names[0]}"
    warnings = _warnings(comparison.data)
    summary: dict[str, Any] = {
        "side": "run" if len(reports) > 1 else "model",
        "suite": suite,
        "metrics": metrics,
        "outcome": outcome,
        "headline": {"letta": False, "figures": figures},
        "gates": [],
        "gates_passed": None,
        "warnings": list(warnings),
    }
    header = {**reports[0].header, "notes": [], "inputs": inputs}
    report = Report(
        path=None, header=header, summary=summary, row_buffer=row_buffer, registry=registry
    )
    return report.closing_itself()


def _with_distinct_names(sides: Sequence[Any]) -> list[Any]:
    """Return the sides, numbered from the second of a name on: ``big``, ``big (2)``."""
    times = Counter[str]()
    renamed_sides = []
    for side in sides:
        times[side.name] += 1
        number = ""
        if times[side.name] > 1:
            number = f" ({times[side.name]})"
        structs = msgspec.structs.replace(side, name=side.name + number)
        renamed_sides.append(structs)
    return renamed_sides


def _write_rows(file: IO[bytes], sides: Sequence[Any]) -> None:
    """Write the rows of all sides, one side after the other."""
    ids = dict[str, Raw]()
    for side in sides:
        file.writelines(_lines(side, ids))


def _warnings(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the warnings of a comparison, and the graders that were not compared."""
    for difference in data["incomparable"]:
        yield f"compared although: {difference} (--force)"
    yield from data.get("warnings", ())
    for reason in data.get("not_compared", {}).values():
        yield f"not compared: {reason}"


def _lines(side: Any, ids: dict[str, Raw]) -> Iterator[bytes]:
    """Yield the rows of a side, with the side's name as their model.

    Args:
        side: A side of the comparison.
        ids: Task -> id of its sample on the first side that has it, as JSON; is added to.
    """
    tasks = {row: task for task, rows in side.tasks.items() for row in rows}
    text = dumps(side.name)
    name = Raw(text.encode())
    other = side.match != "id"
    facts = side.samples.facts
    positions = ((row, facts[row].first_byte) for row in sorted(tasks))
    for number, _, line in side.report.lines(positions):
        try:
            row = _decode(line)
            sample = _decode(row["sample"]) if other else {}
        except (msgspec.MsgspecError, RecursionError):  # numbers that msgspec does not know
            decoded_row = side.report.row(number, line)
            row = _encode_values(decoded_row)
            sample = _encode_values(decoded_row["sample"])
        grade = bytes(row["grade"])
        if not grade.startswith(b"{"):
            raise DataError(f"{side.report.rows_name}:{number}: expected an object at $.grade")
        row["model_name"] = name
        if other:
            identifier = ids.setdefault(tasks[number - 1], sample["id"])
            row["sample"] = Raw(_encode({**sample, "id": identifier}))
        yield _encode(row) + b"\n"


def _encode_values(document: Mapping[str, Any]) -> dict[str, Raw]:
    return {key: Raw(dumps(value).encode()) for key, value in document.items()}


def _figure_of_side(side: Any, figure: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one side's part of a figure or of an aggregator's figures."""
    models = as_map(figure.get("models"))
    if side.model in models:
        return as_map(models[side.model])
    return {key: figure[key] for key in figure if key != "models"}


def _metrics(sides: Sequence[Any], shared: Sequence[str]) -> dict[str, Any]:
    """Return ``metrics`` of the summary: counts, averages and aggregates of the shared graders."""
    by_metric = {}
    states = {}
    aggregates = dict[str, dict[str, Any]]()
    for key in shared:
        grades = [grade for side in sides for grade in _grades(side, key)]
        counts = Counter(grade.outcome for grade in grades)
        scores = [grade.score for grade in grades if grade.score is not None]
        attempted = len(scores)
        count = counts[Outcome.FAILED]
        total = attempted + count + counts[Outcome.MISSING]
        avg_score_attempted = sum_over(scores, attempted) if attempted else None
        avg_score_total = sum_over(scores, total) if total else None
        by_metric[key] = {
            "avg_score_attempted": avg_score_attempted,
            "avg_score_total": avg_score_total,
        }
        states[key] = {state.value: counts[state] for state in Outcome}
        aggregates[key] = _aggregates(sides, key)
    totals = {side.name: sum(map(len, side.tasks.values())) for side in sides}
    per_model = [{"model_name": name, "total": total} for name, total in totals.items()]
    total_totals = sum(totals.values())
    return {
        "total": total_totals,
        "per_model": per_model,
        "by_metric": by_metric,
        "states": states,
        "aggregates": aggregates,
    }


def _aggregates(sides: Sequence[Any], key: str) -> dict[str, Any]:
    """Return the aggregators' figures of a grader, by aggregator and side."""
    by_name: dict[str, Any] = {}
    for side in sides:
        for name, metrics in side.report.aggregates.get(key, {}).items():
            models = by_name.setdefault(name, {"models": {}})["models"]
            figure = as_map(metrics)
            models[side.name] = _figure_of_side(side, figure)
    return by_name


def _grades(side: Any, key: str) -> Iterator[Any]:
    table = side.samples.table
    grades = table.grades(key)
    codes = table.verdicts[key].codes
    tasks = side.tasks.values()
    return (grades[codes[row]] for rows in tasks for row in rows)


def _outcome(sides: Sequence[Any]) -> dict[str, Any] | None:
    """Return the successes of the sides by their common outcome; None where they have none."""
    first_side = sides[0]
    if first_side.outcome is None or any(side.outcome != sides[0].outcome for side in sides):
        return None
    per_model = [_successes(side) for side in sides]
    totals = {}
    for name in _SUCCESSES[:2]:
        counts = [successes[name] for successes in per_model]
        if not all(isinstance(count, int) for count in counts):  # of a damaged summary
            return None
        totals[name] = sum(counts)
    outcome = sides[0].report.summary["outcome"]
    return {
        **outcome,
        **totals,
        "share": None,
        "share_interval": None,
        "per_model": per_model,
    }


def _successes(side: Any) -> dict[str, Any]:
    """Return the numbers of passed and failed runs of a side, with the share that passed."""
    outcome = as_map(side.report.summary["outcome"])
    models = {}
    per_model = outcome.get("per_model")
    for entry in map(as_map, as_list(per_model)):
        models[as_text(entry.get("model_name"))] = entry
    counts = models.get(side.model, outcome)
    return {**{name: counts.get(name) for name in _SUCCESSES}, "model_name": side.name}


def _headline(sides: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the figures of the baseline's headline, of each side that has them."""
    headlines = []
    for side in sides:
        figures = headline(side.report.summary)
        headlines.append({as_text(figure.get("figure")): figure for figure in figures})
    for path, entry in headlines[0].items():
        models = {}
        for side, figures_by_path in zip(sides, headlines, strict=True):
            if path in figures_by_path:
                models[side.name] = _figure_of_side(side, figures_by_path[path])
        label = entry.get("label")
        yield {"label": label, "figure": path, "value": None, "models": models}
