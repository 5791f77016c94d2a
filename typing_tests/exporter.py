"""An exporter: chunks of a file of its own for each record."""

from collections.abc import Iterable, Mapping
from typing import assert_type

import attrs

from gradestack import (
    JSON,
    BadRecord,
    Exporter,
    ExportSummary,
    Grade,
    Grader,
    GraderSummary,
    Sample,
    Shard,
)


@attrs.frozen(kw_only=True)
class Scores(Exporter):
    """One line per sample."""

    reader = "jsonl"
    graders = ("tau_partial",)
    separator = "\n"

    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterable[tuple[str, str]]:
        """Yield the score."""
        if isinstance(record, Sample):
            yield "scores.txt", f"{record.id} {grades['tau_partial'].score}"
        else:
            yield "bad.txt", record.reason

    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        """Return a title."""
        return f"{artefact} of {summary.input.shown}\n", "\n"

    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        """Return the states of every grader."""
        for each in summary.graders.values():
            assert_type(each, GraderSummary)
            assert_type(each.grader, Grader)
            assert_type(each.aggregates, Mapping[str, Mapping[str, JSON]])
        return {
            "states.txt": "".join(
                f"{key}: {each.states}\n" for key, each in summary.graders.items()
            )
        }
