"""The reporter ``html``."""

from __future__ import annotations

import heapq
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import attrs
import jinja2
from markupsafe import Markup
from typing_extensions import override

from gradestack import Reporter
from gradestack_plugins.reporters.conversation import SharedTexts
from gradestack_plugins.reporters.environment import asset, environment, policy, write_stream
from gradestack_plugins.reporters.index import Index, first_reading, severity
from gradestack_plugins.reporters.lenient import as_map
from gradestack_plugins.reporters.overview import overview
from gradestack_plugins.reporters.protocol import ReportLike, check_limits, kept_rows, settled
from gradestack_plugins.reporters.samples import sample
from gradestack_plugins.reporters.tasks import table

PAGE = "report.html"
_IN_MEMORY = 8_000_000
_MOST_CODES = 40
_LONG_ID = 16


@attrs.frozen(kw_only=True)
class HtmlReporter(Reporter):
    """Writes ``report.html``: one file that needs no network, no other file, and no script for what matters.

    Everything of the run is on the page as long as it stays a page: drill-downs are limited, failures first, and the
    page says what was left out and where it is (``results.jsonl`` holds everything).
    """

    max_samples: int = 500
    """Samples with a drill-down."""
    max_tasks: int = 1000
    """Lines of the task table."""
    max_text: int = 10_000
    """Characters shown of one message, argument or rationale."""
    max_bytes: int = 12_000_000
    """Size of all drill-downs together."""

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
        index = first_reading(report)
        path = out / PAGE
        with _Drilldowns(env, self) as drilldowns:
            drilldowns.render(report.rows(), index)
            write_stream(env.get_template(PAGE), path, self._context(env, report, index, drilldowns))
        return (path,)

    def _context(
        self, env: jinja2.Environment, report: ReportLike, index: Index, drilldowns: _Drilldowns
    ) -> dict[str, Any]:
        style, script, early = (asset(env, name) for name in ("report.css", "report.js", "theme.js"))
        view = overview(report, index)
        verdicts = Counter(index.entries[position].verdict for position in drilldowns.shown)
        return {
            "view": view,
            "problems": bool(view.warnings or view.bad_count or view.duplicates),
            "tasks": table(index.entries, self.max_tasks),
            "rows": len(index.entries),
            "kept": kept_rows(report),
            "shown": frozenset(drilldowns.shown),
            "drilldowns": drilldowns,
            "verdicts": verdicts,
            "models": sorted({index.entries[position].model for position in drilldowns.shown}),
            "long_ids": any(len(index.entries[position].id) > _LONG_ID for position in drilldowns.shown),
            "codes": sorted(drilldowns.codes.most_common(_MOST_CODES)),
            "texts": drilldowns.shared.texts,
            "style": style,
            "script": script,
            "early": early,
            "policy": policy([style], [early, script]),
        }


class _Drilldowns:
    """Rendered drill-downs, worst first, kept in a temporary file until the page reaches them."""

    def __init__(self, env: jinja2.Environment, options: HtmlReporter) -> None:
        self._template = env.get_template("_sample.html")
        self._options = options
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._places: dict[int, tuple[int, int]] = {}
        self.shared = SharedTexts(options.max_text)
        self.codes: Counter[str] = Counter()
        self.shown: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def render(self, rows: Iterable[Mapping[str, Any]], index: Index) -> None:
        """Render the worst samples and choose those that fit the page."""
        worst = heapq.nsmallest(self._options.max_samples, index.entries, key=severity)
        chosen = {entry.position for entry in worst}
        codes: dict[int, list[str]] = {}
        for position, row in enumerate(rows):
            if position in chosen:
                view = sample(position, as_map(row), self._options.max_text, self.shared)
                codes[position] = view.codes.split()
                data = self._template.render(sample=view).encode("utf-8", "replace")
                self._places[position] = (self._file.tell(), len(data))
                self._file.write(data)
        room = self._options.max_bytes
        for entry in worst:
            size = self._places.get(entry.position, (0, room + 1))[1]
            if size <= room:
                room -= size
                self.shown.append(entry.position)
                self.codes.update(codes[entry.position])

    def __iter__(self) -> Iterator[Markup]:
        for position in self.shown:
            start, size = self._places[position]
            self._file.seek(start)
            yield Markup(self._file.read(size).decode())  # noqa: S704 - rendered and escaped by our own template
