"""What the family shows on pages: advice."""

from __future__ import annotations

from collections.abc import Iterable

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.deepfabric.aggregators import LABELS
from gradestack_plugins.pages import blocks


@blocks.panel("Readiness")
def readiness(about: Report) -> Iterable[blocks.Block] | None:
    """Advice for figures that are low; None without any."""
    for held in about.aggregates.values():
        metrics = as_map(held.get("deepfabric"))
        if "overall_score" in metrics:
            told = as_map(metrics.get("interpretation"))
            advice = map(as_map, as_list(told.get("advice")))
            texts = [
                (_title(as_text(each.get("metric"))), as_text(each.get("advice")))
                for each in advice
            ]
            return [blocks.Words(text, title) for title, text in texts if text]
    return None


def _title(metric: str) -> str:
    return LABELS.get(metric) or metric.replace("_", " ").capitalize()
