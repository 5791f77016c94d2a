"""The reporter ``html``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import jinja2
from markupsafe import Markup
from typing_extensions import override

from gradestack import Comparison, Registry, Report, Reporter, Row
from gradestack_plugins.pages.chunks import BESIDE, VERDICTS, Chunks, island, listing
from gradestack_plugins.pages.comparison import FILTERS, compared_models, shown_of
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.environment import (
    asset,
    check_folder,
    check_limits,
    environment,
    naming,
    own_style,
    policy,
    theme_css,
    write_stream,
)
from gradestack_plugins.pages.figures import lines_of, success_of
from gradestack_plugins.pages.index import RowIndex, name_of, shown_entry, verdict, worst
from gradestack_plugins.pages.joined import joined
from gradestack_plugins.pages.losses import facets_of, took_of
from gradestack_plugins.pages.models import MOST_MODELS, with_first_models
from gradestack_plugins.pages.notebook import cell, progress
from gradestack_plugins.pages.overview import Page, page_of, side_of
from gradestack_plugins.pages.panel import PAGE, Asked, Sheets, asked, panels
from gradestack_plugins.pages.rows import pieces_of, rows_at
from gradestack_plugins.pages.sample import gist
from gradestack_plugins.tables.files import run_tables

_MOST_CELLS = 400
"""Trials up to which the map shows them."""
_MOST_FIGURES = 2_000
"""Figures in the table of all."""
_MOST_CHIPS = 12
"""Models, causes and tools offered to the search."""
_KEPT = 50
"""Rows of the worst samples that stay in a page whose rows are beside it."""
_PROBED, _MOST_WITH_PANELS = 20, 10_000
"""Samples besides the worst that panels are asked about before they are about all, since most have
nothing to show; samples of a run up to which they are.
"""
_LONGEST_LIST = 2_000_000
"""Of the list of samples in such a page: a longer one is beside it, too."""


@attrs.frozen(kw_only=True)
class HtmlReporter(Reporter):
    """Writes ``report.html``.

    One file that needs no network, no other file, and no script for figures and reasons.

    It carries the rows, from which its script draws the samples. Rows that take more than
    ``max_bytes`` are in ``report_data`` beside it, and the worst alone in it, too.
    """

    beside: ClassVar[tuple[str, ...]] = BESIDE

    max_samples: int = 500
    """Samples listed for reading without scripts, failures first.
    """
    max_text: int = 10_000
    """Characters shown of one message, argument or rationale."""
    max_bytes: int = 5_000_000
    """Size of the packed rows in the page; above it they are in ``report_data`` beside it."""
    theme: Path | dict[str, Any] | None = None
    """Colours and fonts.

    Variable -> value, and ``light`` and ``dark`` with mappings of the same kind for one of them; or
    a YAML or JSON file that holds that.
    """
    templates: Path | None = None
    """Folder with templates that stand before ours, run in a sandbox, and a ``style.css`` that is
    added to ours.
    """

    def __attrs_post_init__(self) -> None:
        check_limits(self)
        check_folder(self.templates)
        theme_css(self.theme)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the page into ``out``, with ``report_data`` beside it where it needs that."""
        with naming(self.templates):
            return self._write(report, out, compared_models(report))

    def write_served(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the page into ``out`` without rows.

        Whoever serves it answers for each with ``served_sample``.
        """
        return self._write(report, out, compared_models(report), served=True)

    def _write(
        self,
        report: Report,
        out: Path,
        compared: Mapping[str, Any] | None,
        *,
        name: str = "report",
        served: bool = False,
    ) -> tuple[Path, ...]:
        success = success_of(report.summary)
        report = with_first_models(report)
        page, apart, held = page_of(report), name != "report", panels(report)
        env = environment(self.templates)
        env.filters.update(FILTERS)
        sheets = Sheets(env, held, rows=report.has_rows)
        chunks = Chunks(out / f"{name}_data", self.max_bytes, served=served)
        lines = self._rows(report, page.index, sheets, chunks)
        filled = [
            each for each in page.panels.filled if not apart or each.placed.panel.place != "page"
        ]
        more = Asked() if compared is None else asked(held, ("compare",), compared)
        left_out = dict.fromkeys((*page.panels.left_out, *more.left_out))
        shown, told = sheets.rendered(Asked((*filled, *more.filled), tuple(left_out)))
        told = (*told, *sheets.left_out_of_samples())
        report.told.extend(told)
        context = self._context(env, report, page, chunks) | {
            "view": Shape(**{**vars(page.view), "warnings": (*page.view.warnings, *told)}),
            "panels": shown,
            "lines": lines,
            "apart": apart,
            "served": served,
            "compared": None if compared is None else shown_of(compared),
            "listing": self._listing(page, chunks, apart),
            "took": took_of(page.index, success.models if success else {})[:MOST_MODELS],
        }
        path = out / f"{name}.html"
        write_stream(env.get_template(PAGE), path, context)
        return (path, *self._pages(env, context, out))

    cell, progress = staticmethod(cell), staticmethod(progress)

    @override
    def comparison(self, found: Comparison, out: Path, registry: Registry | None) -> Iterable[Path]:
        """Write the page of a comparison, ``comparison.html``: that of a run of several models."""
        with joined(found, registry) as report:
            return self.write_comparison(found.data, report, out)

    def write_comparison(
        self, data: Mapping[str, Any], report: Report, out: Path
    ) -> Iterable[Path]:
        """Write it from what comparison.json says, and what was compared as one run."""
        return self._write(report, out, data, name="comparison")

    def _pages(self, env: jinja2.Environment, context: dict[str, Any], out: Path) -> Iterator[Path]:
        """Write the pages that panels have for themselves, and yield their paths."""
        own = policy([context["style"]], [context["early"]])
        for filled, body in context["panels"]:
            if filled.placed.panel.place == "page":
                path = out / filled.placed.file
                more = {"policy": own, "filled": filled, "body": body}
                write_stream(env.get_template("panel.html"), path, {**context, **more})
                yield path

    def _rows(
        self, report: Report, index: RowIndex, sheets: Sheets, found: Chunks
    ) -> list[tuple[Shape, str]]:
        """Add what the page carries of rows.

        Return the worst samples with the first reason of each.
        """
        chosen = [entry.position for entry in worst(index.entries, self.max_samples)]
        many = not found.served and len(index.entries) > _MOST_WITH_PANELS
        drawn = set(chosen[:_KEPT] if many else chosen)
        reasons, shown = dict[int, str](), dict[int, list[str]]()
        for position, row in _rows_of(report, sorted(chosen)):
            reasons[position] = gist(row)
            if position in drawn and not found.served:
                shown[position] = list(map(str, sheets.of_sample(row)))
        rest = [] if many or found.served else sorted(set(range(len(index.entries))) - drawn)
        probed = range(len(index.entries)) if many else rest
        if sheets.shows(
            row for _, row in _rows_of(report, probed[:: max(1, len(probed) // _PROBED)])
        ):
            shown |= {
                position: list(map(str, sheets.of_sample(row)))
                for position, row in _rows_of(report, rest)
            }
            found.without = list(sheets.titles) if many else []
        if not found.served:
            found.add_rows(report, index)
        if index.entries:
            found.add_texts(index.searched)
        drawings = (
            (position, json.dumps(html)) for position, html in sorted(shown.items()) if html
        )
        found.add_panels(drawings)
        if found.beside and not found.served:
            found.keep((at, pieces_of(report, at, at + 1)) for at in chosen[:_KEPT])
        return [(shown_entry(index.entries[position]), reasons[position]) for position in chosen]

    def _context(
        self, env: jinja2.Environment, report: Report, page: Page, chunks: Chunks
    ) -> dict[str, Any]:
        style, early = asset(env, "report.css"), asset(env, "theme.js")
        # checked
        style = Markup("".join((style, theme_css(self.theme), own_style(self.templates))))  # noqa: S704
        index = page.index
        models = [name_of(name) for name in dict.fromkeys(entry.model for entry in index.entries)]
        cells = set(zip(index.tasks, (entry.model for entry in index.entries), strict=True))
        repeated = len(cells) < len(index.entries)
        mapped = report.has_rows and repeated and len(index.entries) <= _MOST_CELLS
        named = f"packed values sample views save {'map' if mapped else ''} tasks figures report".split()
        script = Markup().join(asset(env, f"{name}.js") for name in named)
        return {
            "agreement": page.agreement,
            "losses": page.losses,
            "figures": lines_of(report),
            "max_figures": _MOST_FIGURES,
            "facets": facets_of(index) if page.view.success else (),
            "rows": len(index.entries),
            "mapped": mapped,
            "repeated": repeated,
            "kept": report.has_rows,
            "verdicts": Counter(map(verdict, index.entries)),
            "places": {name: place for place, name in enumerate(VERDICTS)},
            "models": models,
            "side": side_of(report.summary),
            "several": len(list(filter(None, models))) > 1,
            "called": list(chunks.called.get("tools", ())),
            "most_chips": _MOST_CHIPS,
            "tables": Markup(island(run_tables(report))),  # noqa: S704 - base64
            "beside": chunks.beside,
            "chunks": chunks.texts,
            "style": style,
            "script": script,
            "early": early,
            "policy": policy([style], [early, script], loading=bool(chunks.beside)),
        }

    def _listing(self, page: Page, chunks: Chunks, apart: bool) -> Markup:
        """Return the list of samples.

        Empty where it is too long for the page and stands beside it.
        """
        more = {
            "chunks": chunks.listed(),
            "longest": self.max_text,
            "apart": apart,
            **chunks.called,
        }
        found = listing(page.index, page.view.words, page.losses.main, more)
        if chunks.beside and len(found) > _LONGEST_LIST:
            chunks.write("index", [found])
            return Markup()
        return Markup(found)  # noqa: S704 - base64


def _rows_of(report: Report, positions: Sequence[int]) -> Iterator[tuple[int, Row]]:
    return zip(positions, rows_at(report, positions) if positions else (), strict=True)
