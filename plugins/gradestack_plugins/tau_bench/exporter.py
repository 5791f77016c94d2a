"""Exporter ``tau_bench``: the files the partial scoring script writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import BadRecord, Exporter, ExportSummary, Grade, Outcome, Sample, Shard
from gradestack_plugins.tau_bench.layout import indented, partial_name, statistics_block
from gradestack_plugins.tau_bench.records import TauRecord

STATISTICS = "tau_statistics.txt"


@attrs.frozen(kw_only=True)
class TauBenchExporter(Exporter):
    """Writes ``<input>_partial.json`` and ``tau_statistics.txt``.

    The first holds the records of the input with ``partial_score`` added, byte for byte as ``json.dump(records,
    indent=2)`` writes them; a record without a score (failed, or skipped by ``no_expected: skip``) has null there, a
    record that could be parsed but is no result record stands unchanged, one that could not be parsed is left out. The
    second holds the statistics block (:func:`gradestack_plugins.tau_bench.layout.statistics_block`).
    """

    version: ClassVar[str] = "1"
    reader: ClassVar[str] = "tau_bench"
    graders: ClassVar[tuple[str, ...]] = ("tau_partial",)
    separator: ClassVar[str] = ",\n"

    @override
    def row(self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard) -> Iterator[tuple[str, str]]:
        if not isinstance(record.native, TauRecord):
            return
        raw = record.native.record
        if isinstance(record, Sample):
            grade = grades.get("tau_partial")
            score = grade.score if grade is not None and grade.outcome is Outcome.GRADED else None
            raw = {**raw, "partial_score": score}
        yield partial_name(shard.input.path.name), f"  {indented(raw, 1)}"

    @override
    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        return ("[\n", "\n]")

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        graded = summary.graders.get("tau_partial")
        figures = graded.aggregates.get("partial_statistics") if graded is not None else None
        return {} if figures is None or "average" not in figures else {STATISTICS: statistics_block(figures)}
