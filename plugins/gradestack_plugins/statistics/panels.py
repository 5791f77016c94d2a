"""Panels of the family: the confusion matrix, and reliability over the number of trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.pages import blocks
from gradestack_plugins.statistics.agreement_table import agreements_of


@blocks.panel("Confusion matrix")
def classes(about: Report) -> Iterable[blocks.Block] | None:
    """The confusion matrix of a classification and the F1 of each class.

    None in a run without one.
    """
    for aggregates in about.aggregates.values():
        metrics = as_map(aggregates.get("classification"))
        matrix = as_map(metrics.get("confusion_matrix"))
        if matrix:
            names = [str(name) for name in metrics.get("labels") or matrix if name in matrix]
            by_class = as_map(metrics.get("per_class"))
            figures = [_f1_of(name, as_map(by_class.get(name))) for name in names]
            return [_confusion(names, matrix), blocks.Interval(figures, "F1 of each class")]
    return None


def _confusion(names: list[str], matrix: Mapping[str, Any]) -> blocks.Block:
    rows = {name: as_map(row) for name, row in matrix.items()}
    columns = dict.fromkeys([*names, *(str(column) for row in rows.values() for column in row)])
    values = [[rows[name].get(column) for column in columns] for name in names]
    corner, query = "expected \\ predicted", 'label:"{row} → {column}"'
    return blocks.Matrix(names, list(columns), values, "Samples", corner, query)


def _f1_of(name: str, figures: Mapping[str, Any]) -> blocks.Figure:
    support = figures.get("support")
    note = f"{support} sample{'' if support == 1 else 's'}" if isinstance(support, int) else ""
    return blocks.figure_of(name, figures, "f1", note)


@blocks.panel("Reliability over trials", place="figures")
def reliability(about: Report) -> Iterable[blocks.Block] | None:
    """Pass^k and pass@k over k by the outcome grader, and how often tasks succeed.

    None without trials.
    """
    grader = as_text(as_map(about.summary.get("outcome")).get("grader"))
    aggregates = as_map(about.aggregates.get(grader))
    hat, at = as_map(aggregates.get("pass_hat_k")), as_map(aggregates.get("pass_at_k"))
    models = {**as_map(hat.get("models")), **as_map(at.get("models"))}
    if not models:
        return _curves(hat, at) or None
    parts: dict[str, list[blocks.Block]] = {}
    for model in models:
        of_model = [as_map(as_map(metrics.get("models")).get(model)) for metrics in (hat, at)]
        parts[model] = _curves(*of_model)
    return [blocks.Section(model or "(no name)", part) for model, part in parts.items() if part]


def _curves(hat: Mapping[str, Any], at: Mapping[str, Any]) -> list[blocks.Block]:
    points = {
        "pass^k: all of k trials succeed": _points(hat, "pass_hat_k"),
        "pass@k: one of k trials does": _points(at, "pass_at_k"),
    }
    curves: list[blocks.Block] = [
        blocks.Series(series, title) for title, series in points.items() if len(series) > 1
    ]
    by_successes = as_map(hat.get("tasks_by_successes"))
    counts = {str(times): count for times, count in by_successes.items()}
    if curves and counts:
        curves.append(blocks.Counts(counts, "Tasks by number of successes"))
    return curves


def _points(metrics: Mapping[str, Any], key: str) -> dict[int, blocks.Figure]:
    values, intervals = as_map(metrics.get(key)), as_map(metrics.get(f"{key}_interval"))
    points: dict[int, blocks.Figure] = {}
    for k, value in values.items():
        if k.isdecimal():
            figure = {"value": value, "value_interval": intervals.get(k)}
            points[int(k)] = blocks.figure_of(k, figure, "value")
    return points


_HOW_TO_READ = (
    "A verdict is the grader's own where it has one, otherwise score = 1. Two graders agree when "
    "the 95% interval of the share of equal verdicts lies at or above 90%. Kappa, AC1 and alpha "
    "are 1 for full agreement and 0 for agreement by chance; kappa and alpha drop when nearly all "
    "verdicts are equal, AC1 does not."
)


@blocks.panel("Do the graders agree?", place="figures")
def agreement(about: Report) -> Iterable[blocks.Block] | None:
    """The share of samples with equal verdicts by each pair of graders; None without two."""
    pairs = agreements_of(about)
    if not pairs:
        return None
    columns = ["agree", "same verdict", "of", "only the first passes", "only the second"]
    rows: dict[str, list[blocks.Cell]] = {}
    for pair in pairs:
        same = blocks.Figure("same verdict", pair.same, pair.interval, unit="share")
        cells: list[blocks.Cell] = [pair.agree, same, pair.both, pair.only_a, pair.only_b]
        cells += [pair.kappa, pair.ac1, pair.alpha]
        rows[f"{pair.a} and {pair.b}"] = cells
    table = blocks.Table([*columns, "kappa", "AC1", "alpha"], rows, corner="Graders")
    note = blocks.Section("How to read this table", [blocks.Words(_HOW_TO_READ)], folded=True)
    return [table, note]
