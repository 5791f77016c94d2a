"""``native/orchestrationbench.json``: the result file of the original program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import JSON, Exporter, ExportSummary
from gradestack_plugins.orchestrationbench.results.native import detailed_result, overall_statistics

NAME = "orchestrationbench.json"


@attrs.frozen(kw_only=True)
class OrchestrationBenchExporter(Exporter):
    """Writes ``directory``, ``overall_statistics`` and ``detailed_results`` with every field of the original.

    Entries are sorted by path, where the original follows the file system. In ``documented`` undefined figures are
    null, the value score has its upper bound beside it, and failed trials are named; ``upstream`` has the original's
    fields only.
    """

    version: ClassVar[str] = "1"
    reader: ClassVar[str] = "orchestrationbench"
    graders: ClassVar[tuple[str, ...]] = ("orchestrationbench",)

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        grader = summary.graders["orchestrationbench"]
        figures = grader.aggregates.get("orchestrationbench")
        if figures is None:
            return {}
        profile = figures["profile"]
        files = sorted(figures["scenarios"], key=lambda row: str(row["file"]))
        tree = {
            "directory": summary.input.shown,
            "overall_statistics": overall_statistics(files, profile),
            "detailed_results": [detailed_result(row, profile) for row in files],
        }
        return {NAME: _text(tree)}


def _text(tree: JSON) -> str:
    text = json.dumps(tree, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate in a path or message, which UTF-8 cannot carry
        return json.dumps(tree, indent=2)
    return text
