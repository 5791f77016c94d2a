"""The reporter ``text``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Report, Reporter, RowEntry
from gradestack_plugins.reporters.conversation import SharedTexts
from gradestack_plugins.reporters.environment import check_limits, write_whole
from gradestack_plugins.reporters.headline import words_of
from gradestack_plugins.reporters.index import Entry, index_of, worst
from gradestack_plugins.reporters.samples import sample
from gradestack_plugins.reporters.terminal import Style, drilldown, rendered

PAGE = "report.txt"


@attrs.frozen(kw_only=True)
class TextReporter(Reporter):
    """Writes ``report.txt``: the worst samples as ``gradestack show`` prints one, for a terminal or a log.

    A sample is its calls against the expected ones with the arguments that differ, its grades with their reasons, and
    its conversation.
    """

    max_samples: int = 20
    """Samples shown, failures first."""
    max_text: int = 1000
    """Characters shown of one message, argument or rationale."""
    width: int = 80
    """Columns."""
    colour: bool = False
    """Whether lines have the colours of a terminal."""

    def __attrs_post_init__(self) -> None:
        """Refuse negative limits.

        Raises:
            ValueError: A limit is negative.
        """
        check_limits(self)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the text into ``out`` and return its path.

        Args:
            report: The report of a finished run.
            out: An existing directory.
        """
        index = index_of(report)
        chosen = worst(index.entries, self.max_samples)
        places = sorted(entry.position for entry in chosen)
        rows = dict(zip(places, report.rows_at(places) if places else (), strict=True))
        texts = [self.sample(report, entry, rows[entry.position]) for entry in chosen]
        left = len(index.entries) - len(chosen)
        texts.append(f"{left:,} more samples\n" if left else "")
        path = out / PAGE
        write_whole(path, f"\n{'─' * self.width}\n\n".join(filter(None, texts)) or "No samples.\n")
        return (path,)

    @override
    def sample(self, report: Report, entry: RowEntry, row: Mapping[str, Any]) -> str:
        """Return one sample as text.

        Args:
            report: The run.
            entry: What the index says of it.
            row: Its row.
        """
        style = Style(max(20, self.width), self.colour, self.max_text)
        shared = SharedTexts(self.max_text)
        view = sample(Entry.of(entry), row, self.max_text, shared)
        return rendered(drilldown(view, words_of(report.summary), shared, style), style)
