"""What every run shows on pages: sentences that its metrics say in their documents' words."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import override

from gradestack import Report
from gradestack.jsonio import as_list
from gradestack_plugins.pages import blocks


class Statements(blocks.Panel):
    """The sentences that metrics say of their figures; None without any."""

    place = "overview"
    title = "In the benchmark's words"

    @override
    def show(self, about: Report) -> Iterable[blocks.Block] | None:
        texts = [
            text
            for metrics in about.aggregates.values()
            for figures in metrics.values()
            for text in as_list(figures.get("statements"))
            if isinstance(text, str)
        ]
        return [blocks.Words(text) for text in dict.fromkeys(texts)] or None
