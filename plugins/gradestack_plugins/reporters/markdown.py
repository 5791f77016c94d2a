"""The reporter ``markdown``."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Reporter
from gradestack_plugins.reporters.conversation import SharedTexts
from gradestack_plugins.reporters.environment import environment, write_stream
from gradestack_plugins.reporters.index import Index, first_reading, severity
from gradestack_plugins.reporters.lenient import as_map
from gradestack_plugins.reporters.overview import STATES, State, overview
from gradestack_plugins.reporters.protocol import ReportLike, check_limits, kept_rows, settled
from gradestack_plugins.reporters.samples import SampleView, sample
from gradestack_plugins.reporters.tasks import table
from gradestack_plugins.reporters.text import brief, clean

PAGE = "report.md"
_SPECIAL = re.compile(r"[\\`*_\[\]#|~]")
_FENCES = re.compile(r"`+")
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
    def write(self, report: ReportLike, out: Path) -> Iterable[Path]:
        """Write the page into ``out`` and return its path. Rows are read twice and never held.

        Args:
            report: The report of a finished run.
            out: An existing directory.
        """
        report = settled(report)
        env = environment()
        env.filters.update(md=prose, code=code, bar=bar, counts=counts)
        index = first_reading(report)
        context = {
            "view": overview(report, index),
            "tasks": table(index.entries, self.max_tasks),
            "rows": len(index.entries),
            "kept": kept_rows(report),
            "samples": list(self._worst(report, index)),
            "lost": sum(entry.verdict not in {"passed", "skipped"} for entry in index.entries),
        }
        path = out / PAGE
        write_stream(env.get_template(PAGE), path, context)
        return (path,)

    def _worst(self, report: ReportLike, index: Index) -> Iterator[SampleView]:
        """Return the views of the worst samples that lost something, worst first, without their conversations."""
        lost = (entry for entry in index.entries if entry.verdict not in {"passed", "skipped"})
        worst = heapq.nsmallest(self.max_samples, lost, key=severity)
        places = {entry.position: place for place, entry in enumerate(worst)}
        found: list[tuple[int, SampleView]] = []
        for position, row in enumerate(report.rows()):
            if position in places:
                short: Mapping[str, Any] = {**as_map(row), "trajectory": []}
                found.append((places[position], sample(position, short, self.max_text, SharedTexts(0))))
        for _, view in sorted(found, key=lambda pair: pair[0]):
            yield view


def prose(value: object) -> str:
    """Return a text that Markdown shows as it is, on one line: no markup, HTML, table cell or link comes of it."""
    text = " ".join(clean(str(value)).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(
        lambda match: f"&#{ord(match.group())};" if match.group() == "|" else f"\\{match.group()}", text
    )
    return text.replace("://", ":&#47;/").replace("@", "&#64;")


def code(value: object, limit: int = 300) -> str:
    """Return a text as a code span, on one line and safe in a table; "" for an empty text."""
    text = brief(value if isinstance(value, str) else str(value), limit)
    if not text:
        return ""
    longest = max((len(run) for run in _FENCES.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def bar(share: float) -> str:
    """Return a bar of block characters for a percentage."""
    return "█" * max(1, round(_BAR * share / 100)) if share > 0 else ""


def counts(states: Iterable[State]) -> dict[str, int]:
    """Return the counts by state, 0 for states nobody is in."""
    return {**dict.fromkeys(STATES, 0), **{state.name: state.count for state in states}}
