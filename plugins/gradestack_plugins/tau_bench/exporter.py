"""Exporter ``tau_bench``: the files the partial scoring script writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from typing_extensions import override

from gradestack import BadRecord, Exporter, ExportSummary, Grade, Sample, Shard
from gradestack.jsonio import as_map
from gradestack_plugins.tau_bench.program import (
    STATISTICS,
    indent_json,
    partial_name,
    statistics_block,
)
from gradestack_plugins.tau_bench.record import TauRecord


class TauBenchExporter(Exporter):
    """Writes ``<input>_partial.json`` and ``tau_statistics.txt``.

    The first holds the records of the input with ``partial_score`` added, byte for byte as
    ``json.dump(records, indent=2)`` writes them. A record without a score (failed, or skipped by
    ``no_expected: skip``) has null there. A record that is no result record is written unchanged;
    one that could not be parsed is left out. The second holds the statistics block
    (``gradestack_plugins.tau_bench.program.statistics_block``).
    """

    reader = "tau_bench"
    graders = ("tau_partial",)
    separator = ",\n"

    @override
    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterator[tuple[str, str]]:
        raw = record.native
        if isinstance(raw, TauRecord):
            grade = grades.get("tau_partial")
            partial_score = None if grade is None else grade.score
            raw = {**raw.record, "partial_score": partial_score}
        elif raw is None or isinstance(record, Sample):
            return
        text = indent_json(raw).replace("\n", "\n  ")
        yield partial_name(shard.input.path.name), f"  {text}"

    @override
    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        return ("[\n", "\n]")

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        graded = summary.graders.get("tau_partial")
        if graded:
            figures = as_map(graded.aggregates.get("partial_statistics"))
        else:
            figures = {}
        if "average" in figures:
            return {STATISTICS: statistics_block(figures)}
        return {}
