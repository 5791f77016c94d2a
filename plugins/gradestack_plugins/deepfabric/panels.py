"""Panels of the family: the band of the overall score, and advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.pages import blocks


@blocks.panel("Readiness", place="first")
def readiness(about: Report) -> Iterable[blocks.Block] | None:
    """The band, the lowest figure with its advice, and all advice; None in another run."""
    metrics = blocks.find_metrics(about, "deepfabric", "overall_score")
    return list(_blocks(metrics)) if metrics else None


def _blocks(metrics: Mapping[str, Any]) -> Iterable[blocks.Block]:
    """Yield the band of the overall score, and advice on the metrics that have some."""
    interpretation = as_map(metrics.get("interpretation"))
    bands = [
        f"{as_text(band.get('band'))} from {100 * (as_number(band.get('from')) or 0):.0f}%"
        for band in map(as_map, as_list(interpretation.get("bands")))
    ]
    if bands:
        band_reached = as_text(interpretation.get("band"))
        text: list[str | blocks.Part] = ["Overall score: ", blocks.Part(band_reached, "strong")]
        yield blocks.Words([*text, f" ({', '.join(bands)})."])
    advice = interpretation.get("advice")
    for entry in map(as_map, as_list(advice)):
        metric = entry.get("metric")
        title = as_text(metric).replace("_", " ").capitalize()
        if entry.get("advice"):
            words = blocks.Words(as_text(entry["advice"]))
            yield blocks.Section(title, [words], folded=True)
