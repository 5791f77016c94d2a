"""Pages of a run of very many models: they show the first of them, and say so."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.pages.text import counted

MOST_MODELS = 50
"""Models whose figures a page shows."""


def with_first_models(report: Report) -> Report:
    """Return a report whose summary has the figures of the first 50 models alone.

    A warning of its summary counts the others, and ``models_left_out`` has their number. A report
    of fewer models is returned as it is, and the same one for every reporter of a run.
    """
    made_from, shortened = report.shared.get("first_models", (None, None))
    if made_from is not report.summary:
        shortened = _shortened(report)
        report.shared["first_models"] = (report.summary, shortened)
    result: Report = report if shortened is None else shortened
    return result


def _shortened(report: Report) -> Report | None:
    summary = report.summary
    models = dict.fromkeys(_models_of(summary))
    left_out = len(models) - MOST_MODELS
    if left_out <= 0:
        return None
    first = set(list(models)[:MOST_MODELS])
    side = summary.get("side") or "model"
    text = (
        f"pages show the figures of the first {MOST_MODELS} of {len(models):,} {side}s; those of "
        f"{counted(left_out, f'other {side}s')} are in summary.json"
    )
    warnings = [*as_list(summary.get("warnings")), text]
    only = _only(summary, first)
    short = {**only, "warnings": warnings, "models_left_out": left_out}
    return attrs.evolve(report, summary=short)


def _models_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the models that have figures, some of them several times."""
    outcome = as_map(summary.get("outcome"))
    metrics = as_map(summary.get("metrics"))
    for holder in (metrics, outcome):
        for entry in as_list(holder.get("per_model")):
            yield _model_name(entry)
    headline = summary.get("headline")
    for entry in as_list(as_map(headline).get("figures")):
        models = as_map(entry).get("models")
        yield from as_map(models)
    aggregates = metrics.get("aggregates")
    for aggregators in as_map(aggregates).values():
        for figures in as_map(aggregators).values():
            yield from as_map(as_map(figures).get("models"))


def _only(summary: Mapping[str, Any], models: Collection[str]) -> dict[str, Any]:
    """Return a summary without the figures of other models."""
    headline = as_map(summary.get("headline"))
    metrics = as_map(summary.get("metrics"))
    entries = as_list(headline.get("figures"))
    figures = [_keep_models(entry, models) for entry in entries]
    aggregates = {}
    for grader, aggregators in as_map(metrics.get("aggregates")).items():
        aggregates[grader] = {
            name: _keep_models(by_model, models) for name, by_model in as_map(aggregators).items()
        }
    short = dict(summary)
    if headline:
        short["headline"] = {**headline, "figures": figures}
    if metrics:
        rows = _with_rows(metrics, models)
        short["metrics"] = {**rows, "aggregates": aggregates}
    if outcome := as_map(summary.get("outcome")):
        short["outcome"] = _with_rows(outcome, models)
    return short


def _keep_models(figures: Any, models: Collection[str]) -> Any:
    """Return figures whose values by model are those of some models alone."""
    by_model = as_map(as_map(figures).get("models"))
    if not by_model:
        return figures
    return {**figures, "models": {name: by_model[name] for name in by_model if name in models}}


def _with_rows(holder: Mapping[str, Any], models: Collection[str]) -> dict[str, Any]:
    if not as_list(holder.get("per_model")):
        return dict(holder)
    per_model = holder["per_model"]
    rows = [row for row in per_model if _model_name(row) in models]
    return {**holder, "per_model": rows}


def _model_name(row: Any) -> str:
    return as_text(as_map(row).get("model_name"))
