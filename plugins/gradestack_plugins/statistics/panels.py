"""Panels for figures of any family: confusion matrix, trials, agreement of graders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_map, as_number, as_text
from gradestack_plugins.pages import blocks
from gradestack_plugins.statistics.agreement_table import agreements_of

_SEARCH = 'label:"{row} → {column}"'
_MOST_MODELS = 4


@blocks.panel("Expected against chosen", place="lead", replaces=["causes"])
def classes(about: Report) -> Iterable[blocks.Block] | None:
    """The confusion matrix of a classification and the rates of each class; None without one."""
    metrics = blocks.find_metrics(about, "classification", "confusion_matrix")
    matrix = as_map(metrics.get("confusion_matrix"))
    if not matrix:
        return None
    names = metrics.get("labels") or matrix
    rows = [str(name) for name in names if name in matrix]
    confusion = _confusion(rows, matrix)
    per_class = as_map(metrics["per_class"])
    by_class = _by_class(rows, per_class)
    return [*confusion, *by_class]


def _confusion(names: Sequence[str], matrix: Mapping[str, Any]) -> Iterable[blocks.Block]:
    """Yield the share of right labels and the confusion matrix of the labels that occur."""
    counts = {name: as_map(matrix[name]) for name in names}
    shown = [name for name in names if any(counts[name].values())]
    rows = counts.values()
    all_labels = [*names, *(str(name) for row in rows for name in row)]
    columns = [
        name
        for name in dict.fromkeys(all_labels)
        if name in shown or any(counts[row].get(name) for row in shown)
    ]
    wrong = {
        (row, column): counts[row].get(column) or 0
        for row in shown
        for column in columns
        if row != column
    }
    right = sum(counts[name].get(name) or 0 for name in shown)
    total_wrong = sum(wrong.values())
    total = right + total_wrong
    if not total:
        return
    share = _share(right, total)
    sentence: list[str | blocks.Part] = ["Right label in ", share]
    most = max(wrong.values(), default=0)
    most_frequent = [pair for pair, number in wrong.items() if number == most]
    if most and len(most_frequent) == 1:
        expected, chosen = most_frequent[0]
        sentence += ["; most often wrong: ", blocks.Part(f"{chosen} instead of {expected}", "bad")]
        sentence.append(f" ({most:,} runs)" if most > 1 else " (1 run)")
    yield blocks.Head(sentence)
    totals = [f"{sum(filter(None, counts[row].values())):,}" for row in shown]
    yield blocks.Matrix(
        shown,
        columns,
        [[counts[row].get(column) for column in columns] for row in shown],
        corner="expected ↓ chosen →",
        search=_SEARCH,
        is_confusion=True,
        totals=totals,
    )


def _share(part: int, total: int) -> blocks.Part:
    return blocks.Part(f"{100 * part / total:.1f}%", "good")


def _by_class(names: Iterable[str], by_class: Mapping[str, Any]) -> Iterable[blocks.Block]:
    """Yield the table of recall, precision and F1 by expected label."""
    rates = {"found": "recall", "right when chosen": "precision", "F1": "f1"}
    rows: dict[str, list[blocks.Cell]] = {}
    for name in names:
        class_metrics = as_map(by_class.get(name))
        if class_metrics.get("support"):
            values = [as_number(class_metrics.get(rate)) for rate in rates.values()]
            rows[name] = ["n/a" if value is None else f"{100 * value:.1f}%" for value in values]
    yield blocks.Table(list(rates), rows, "By expected label", "label")


@blocks.panel("With more trials", place="first")
def reliability(about: Report) -> Iterable[blocks.Block] | None:
    """Pass^k and pass@k over k by the outcome grader; None without trials."""
    outcome = as_map(about.summary.get("outcome"))
    grader = as_text(outcome.get("grader"))
    figures_of_grader = as_map(about.aggregates.get(grader))
    hat = as_map(figures_of_grader.get("pass_hat_k"))
    at = as_map(figures_of_grader.get("pass_at_k"))
    models = list({**as_map(hat.get("models")), **as_map(at.get("models"))})
    if not models:
        return _curve(hat, at)
    parts: list[blocks.Block] = []
    for model in models[:_MOST_MODELS]:
        hat_of_model, at_of_model = (
            as_map(as_map(metrics.get("models")).get(model)) for metrics in (hat, at)
        )
        curve = _curve(hat_of_model, at_of_model)
        if curve:
            section = blocks.Section(model or "(no name)", curve)
            parts.append(section)
    return parts or None


def _curve(hat: Mapping[str, Any], at: Mapping[str, Any]) -> list[blocks.Block]:
    """Draw pass^k and pass@k over the number of trials, if a curve has more than two points."""
    every_time = _points(hat, "pass_hat_k")
    at_least_once = _points(at, "pass_at_k")
    lines = {
        "every time": every_time,
        "at least once": at_least_once,
    }
    known = {name: points for name, points in lines.items() if len(points) > 2}
    if not known:
        return []
    return [blocks.Curve(known, x="trials of a task")]


def _points(metrics: Mapping[str, Any], key: str) -> dict[float, blocks.Figure]:
    values = as_map(metrics.get(key))
    intervals = as_map(metrics.get(f"{key}_interval"))
    points: dict[float, blocks.Figure] = {}
    for k, value in values.items():
        if k.isdecimal():
            value_interval = intervals.get(k)
            point_metrics = {"value": value, "value_interval": value_interval}
            points[int(k)] = blocks.figure_of(k, point_metrics, "value", unit="share")
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
    words = blocks.Words(_HOW_TO_READ)
    note = blocks.Section("How to read this table", [words], folded=True)
    return [table, note]
