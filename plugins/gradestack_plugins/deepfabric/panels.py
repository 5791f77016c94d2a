"""Panel ``readiness``: advice on pages."""

from __future__ import annotations

from collections.abc import Iterable

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.pages import blocks


@blocks.panel("Readiness")
def readiness(about: Report) -> Iterable[blocks.Block] | None:
    """Advice for figures that are low; None without any."""
    for aggregates in about.aggregates.values():
        metrics = as_map(aggregates.get("deepfabric"))
        if "overall_score" in metrics:
            entries = map(as_map, as_list(as_map(metrics.get("interpretation")).get("advice")))
            texts = {as_text(each.get("metric")): as_text(each.get("advice")) for each in entries}
            return [
                blocks.Words(text, metric.replace("_", " ").capitalize())
                for metric, text in texts.items()
                if text
            ]
    return None
