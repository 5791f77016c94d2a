"""The reporter ``markdown``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Report, Reporter, RowEntry
from gradestack_plugins.reporters.comparison import markdown_page
from gradestack_plugins.reporters.conversation import SharedTexts
from gradestack_plugins.reporters.environment import check_limits, environment, write_stream
from gradestack_plugins.reporters.index import Entry, index_of, shown_as, verdict, worst
from gradestack_plugins.reporters.overview import STATES, State, overview
from gradestack_plugins.reporters.prose import code, prose
from gradestack_plugins.reporters.samples import SampleView, sample
from gradestack_plugins.reporters.tasks import table

PAGE = "report.md"
_BAR = 24


@attrs.frozen(kw_only=True)
class MarkdownReporter(Reporter):
    """Writes ``report.md``: verdict, figures, task table and the worst samples, for pull requests and job summaries.

    Everything that comes from the data is shown as code or escaped, so that it cannot become a heading, a table cell, a
    link, a mention or HTML. Conversations are not repeated here: they are in report.html and results.jsonl.
    """

    max_samples: int = 50
    """Samples listed with their lost points, worst first."""
    max_tasks: int = 100
    """Lines of the task table."""
    max_text: int = 300
    """Characters shown of one value."""

    def __attrs_post_init__(self) -> None:
        """Refuse negative limits.

        Raises:
            ValueError: A limit is negative.
        """
        check_limits(self)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the page into ``out`` and return its path. Of the rows only those listed are read.

        Args:
            report: The report of a finished run.
            out: An existing directory.
        """
        path = out / PAGE
        self.write_page(report, path)
        return (path,)

    def write_page(self, report: Report, path: Path) -> None:
        """Write the page to a file of any name.

        Args:
            report: The report of a finished run.
            path: The file.
        """
        env = environment()
        env.filters.update(md=prose, code=code, bar=bar, counts=counts, result=result)
        index = index_of(report)
        lost = [entry for entry in index.entries if _lost(entry)]
        view = overview(report, index)
        context = {
            "view": view,
            "tasks": table(index, self.max_tasks, view.words["passed"] if view.success else ""),
            "rows": len(index.entries),
            "kept": report.has_rows,
            "samples": list(self._samples(report, worst(lost, self.max_samples))),
            "lost": len(lost),
        }
        write_stream(env.get_template(PAGE), path, context)

    @override
    def comparison(self, data: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the page of a comparison, ``comparison.md``."""
        return {"comparison.md": markdown_page(data)}

    def _samples(self, report: Report, entries: Sequence[RowEntry]) -> Iterator[SampleView]:
        """Yield the views of samples, without their conversations."""
        rows = report.rows_at((entry.position for entry in entries), trajectories=False) if entries else ()
        for entry, row in zip(entries, rows, strict=True):
            yield sample(Entry.of(entry), {**row, "trajectory": []}, self.max_text, SharedTexts(0))


def _lost(entry: RowEntry) -> bool:
    """Return whether a sample is listed among those that lost points; without an outcome, by its score."""
    found = verdict(entry)
    return (entry.score or 0.0) < 1 if found == "graded" else found not in {"passed", "skipped"}


def bar(share: float) -> str:
    """Return a bar of block characters for a percentage."""
    return "█" * max(1, round(_BAR * share / 100)) if share > 0 else ""


def result(entry: RowEntry) -> str:
    """Return what a cell of the table of tasks says; a success is marked."""
    return f"✓ {shown_as(entry)}" if verdict(entry) == "passed" else shown_as(entry)


def counts(states: Iterable[State]) -> dict[str, int]:
    """Return the counts by state, 0 for states nobody is in."""
    return {**dict.fromkeys(STATES, 0), **{state.name: state.count for state in states}}
