"""The reporter ``html``.

What compares is imported where something is compared: most runs are of one model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import jinja2
from markupsafe import Markup
from typing_extensions import override

from gradestack import Report, Reporter, Row
from gradestack_plugins.pages.chunks import BESIDE, PLACES, Chunks, island, listing
from gradestack_plugins.pages.draw import Shape, draw_all, quoted
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
from gradestack_plugins.pages.figures import lines_of
from gradestack_plugins.pages.index import RowIndex, index_of, name_of, shown_entry, worst
from gradestack_plugins.pages.models import with_first_models
from gradestack_plugins.pages.notebook import cell, progress
from gradestack_plugins.pages.page import Page, count_verdicts, page_of
from gradestack_plugins.pages.panel import FIRST, PAGE, Filled, Sheets, fill_panels, panels
from gradestack_plugins.pages.rows import pieces_of, rows_at
from gradestack_plugins.pages.sample import gist
from gradestack_plugins.pages.screen import side_of
from gradestack_plugins.tables.files import run_tables

if TYPE_CHECKING:  # the page of a run needs neither
    from gradestack import Comparison, Registry

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
_PARTS = ("rows", "lines", "quotes", "answers", "strips", "items")
_HEIGHTS = {
    "caveat": (3.0, 0.0),
    "causes": (0.0, 1.6),
    "curve": (7.0, 0.0),
    "estimates": (1.0, 1.6),
    "histogram": (6.0, 0.0),
    "matrix": (1.0, 1.4),
    "quotes": (0.0, 2.2),
    "strips": (1.5, 1.6),
}
"""Kind of a block -> its height in lines of a table: in any case, and for each of its parts."""
_SCRIPTS = ("packed", "values", "sample", "views", "save", "tasks", "figures", "report")


@attrs.frozen(kw_only=True)
class HtmlReporter(Reporter):
    """Writes ``report.html``.

    One file that needs no network, no other file, and no script for figures and reasons.

    It carries the rows, from which its script draws the samples. Rows that take more than
    ``max_bytes`` are in ``report_data`` beside it, and the worst alone in it, too.
    """

    data_files: ClassVar[tuple[str, ...]] = BESIDE

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
            return self._write(report, out, _compare_models(report))

    def write_served(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the page into ``out`` without rows.

        Whoever serves it answers for each with ``served_sample``.
        """
        return self._write(report, out, _compare_models(report), served=True)

    def _write(
        self,
        report: Report,
        out: Path,
        compared: Mapping[str, Any] | None,
        *,
        name: str = "report",
        served: bool = False,
    ) -> tuple[Path, ...]:
        report = with_first_models(report)
        page = page_of(report)
        is_comparison = name != "report"
        env = environment(self.templates)
        env.filters.update(quoted=quoted)
        sheets = Sheets(env, panels(report), rows=report.has_rows)
        chunks = Chunks(out / f"{name}_data", self.max_bytes, served=served)
        lines = self._rows(report, page.index, sheets, chunks)
        filled = _panels_of(page, report, compared, with_pages=not is_comparison)
        shown, left_out = sheets.rendered(filled)
        left_out = (*left_out, *sheets.left_out_of_samples())
        report.warnings.extend(left_out)
        context = self._context(env, report, page, chunks) | {
            "panels": [(panel, html, panel.placed.panel.place) for panel, html in shown],
            "warned": left_out,
            "lines": lines,
            "apart": is_comparison,
            "served": served,
            "compared": None,
            "listing": self._listing(page, chunks, is_comparison=is_comparison),
        }
        if compared is not None:
            from gradestack_plugins.pages.comparison import overview_of  # noqa: PLC0415 - see above

            context["compared"] = overview_of(compared)
            context["cards"] |= _compared_cards(compared, report, is_comparison=is_comparison)
        path = out / f"{name}.html"
        write_stream(env.get_template(PAGE), path, context)
        pages = self._pages(env, context, out)
        return (path, *pages)

    cell, progress = staticmethod(cell), staticmethod(progress)

    @override
    def comparison(
        self, comparison: Comparison, out: Path, registry: Registry | None
    ) -> Iterable[Path]:
        """Write the page of a comparison, ``comparison.html``: that of a run of several models."""
        from gradestack_plugins.pages.joined import joined  # noqa: PLC0415 - see above

        with joined(comparison, registry) as report:
            return self.write_comparison(comparison.data, report, out)

    def write_comparison(
        self, data: Mapping[str, Any], report: Report, out: Path
    ) -> Iterable[Path]:
        """Write the page from comparison.json, and both sides as one run."""
        return self._write(report, out, data, name="comparison")

    def _pages(self, env: jinja2.Environment, context: dict[str, Any], out: Path) -> Iterator[Path]:
        """Write the pages that panels have for themselves, and yield their paths."""
        styles = [context["style"]]
        page_policy = policy(styles, [context["early"]])
        for panel, body, view in context["panels"]:
            if view == "page":
                path = out / panel.placed.file
                more = {"policy": page_policy, "filled": panel, "body": body}
                write_stream(env.get_template("panel.html"), path, {**context, **more})
                yield path

    def _rows(
        self, report: Report, index: RowIndex, sheets: Sheets, chunks: Chunks
    ) -> list[tuple[Shape, str]]:
        """Add the rows that the page carries; return the worst samples, each with its reason."""
        entries = worst(index.entries, self.max_samples)
        chosen = [entry.position for entry in entries]
        many = not chunks.served and len(index.entries) > _MOST_WITH_PANELS
        with_panels = set(chosen[:_KEPT] if many else chosen)
        reasons: dict[int, str] = {}
        shown: dict[int, list[str]] = {}
        for position, row in _rows_of(report, sorted(chosen)):
            reasons[position] = gist(row)
            if position in with_panels and not chunks.served:
                sample = sheets.of_sample(row)
                shown[position] = list(map(str, sample))
        positions = range(len(index.entries))
        if many or chunks.served:
            rest = []
        else:
            rest = sorted(set(positions) - with_panels)
        probed = positions if many else rest
        some = probed[:: max(1, len(probed) // _PROBED)]
        rows = _rows_of(report, some)
        if sheets.shows(row for _, row in rows):
            for position, row in _rows_of(report, rest):
                shown[position] = list(map(str, sheets.of_sample(row)))
            chunks.without = list(sheets.titles) if many else []
        if not chunks.served:
            chunks.add_rows(report, index)
        if index.entries:
            chunks.add_texts(index.searched)
        drawings = [(position, html) for position, html in sorted(shown.items()) if html]
        chunks.add_panels((position, json.dumps(html)) for position, html in drawings)
        if chunks.file_folder and not chunks.served:
            chunks.keep((at, pieces_of(report, at, at + 1)) for at in chosen[:_KEPT])
        return [(shown_entry(index.entries[position]), reasons[position]) for position in chosen]

    def _context(
        self, env: jinja2.Environment, report: Report, page: Page, chunks: Chunks
    ) -> dict[str, Any]:
        early = asset(env, "theme.js")
        styles = (asset(env, "report.css"), theme_css(self.theme), own_style(self.templates))
        style = Markup("".join(styles))  # noqa: S704 - checked
        index = page.index
        names = [name_of(name) for name in dict.fromkeys(entry.model for entry in index.entries)]
        repeated = page.reliable.tasks < len(index.entries)
        mapped = report.has_rows and repeated and len(index.entries) <= _MOST_CELLS
        scripts = [name for name in _SCRIPTS if name != "report"]
        scripts += ["map"] * mapped + ["report"]
        script = Markup().join(asset(env, f"{name}.js") for name in scripts)
        usage = [amounts for amounts in index.usage if amounts is not None]
        return {
            "view": page,
            "cards": _cards(page),
            "figures": lines_of(report),
            "max_figures": _MOST_FIGURES,
            "rows": len(index.entries),
            "mapped": mapped,
            "repeated": repeated,
            "kept": report.has_rows,
            "where": "" if report.has_rows and index.entries else None,
            "verdicts": count_verdicts(index),
            "places": PLACES,
            "models": names,
            "side": side_of(report.summary),
            "several": len(list(filter(None, names))) > 1,
            "priced": any(amounts.cost_usd is not None for amounts in usage),
            "timed": any(amounts.seconds is not None for amounts in usage),
            "called": list(chunks.called.get("tools", ())),
            "most_chips": _MOST_CHIPS,
            "tables": Markup(island(run_tables(report))),  # noqa: S704 - base64
            "beside": chunks.file_folder,
            "chunks": chunks.texts,
            "style": style,
            "script": script,
            "early": early,
            "policy": policy([style], [early, script], loading=bool(chunks.file_folder)),
        }

    def _listing(self, page: Page, chunks: Chunks, *, is_comparison: bool) -> Markup:
        """Return the list of samples; an empty one where it is too long and stands beside it."""
        more = {
            "chunks": chunks.listed(),
            "longest": self.max_text,
            "apart": is_comparison,
            **chunks.called,
        }
        text = listing(page.index, page.words, page.failures.main, more)
        if chunks.file_folder and len(text) > _LONGEST_LIST:
            chunks.write("index", [text])
            return Markup()
        return Markup(text)  # noqa: S704 - base64


def _panels_of(
    page: Page, report: Report, compared: Mapping[str, Any] | None, *, with_pages: bool
) -> Filled:
    """Return the panels of a page, those of its comparison last."""
    shown = [
        panel for panel in page.panels.panels if with_pages or panel.placed.panel.place != "page"
    ]
    more = Filled()
    if compared is not None:
        more = fill_panels(panels(report), ("compare",), compared)
    left_out = dict.fromkeys((*page.panels.left_out, *more.left_out))
    return Filled((*shown, *more.panels), tuple(left_out))


def _cards(page: Page) -> dict[str, Any]:
    """Return the sections of a page as they are drawn; a panel's head replaces the sentence."""
    (head,) = draw_all([page.head])
    for panel in page.panels.at("lead"):
        for shape in panel.blocks:
            if shape.kind == "head":
                head.sentence = shape.sentence
                if isinstance(shape.note, str):
                    before = [shape.note]
                else:
                    before = shape.note
                head.note = [*before, *head.note]
    gates = draw_all(page.gates)
    return {
        "head": head,
        "gates": gates,
        "below": draw_all(page.below),
        **_columns(page),
        **{name: draw_all(sections) for name, sections in page.details.items()},
    }


def _columns(page: Page) -> dict[str, list[Shape]]:
    """Return the cards of the first screen by column; each goes into the shorter column.

    The results lead the left column, or the right one beside a panel that leads; ``under`` stands
    below the panels of the left column.
    """
    is_led = bool(page.panels.at("lead"))
    left = list[Shape]()
    right = list[Shape]()
    under = list[Shape]()
    panels_shown = [shape for panel in page.panels.at(*FIRST) for shape in panel.blocks]
    height_left = sum(map(_height_of, panels_shown))
    height_right = 0.0
    for card in draw_all(page.first):
        if card.id == "estimates" and not is_led:
            left.append(card)
            height_left += _height_of(card)
        elif card.id in {"estimates", "findings"} or height_right <= height_left:
            right.append(card)
            height_right += _height_of(card)
        else:
            under.append(card)
            height_left += _height_of(card)
    return {"left": left, "right": right, "under": under}


def _height_of(shape: Shape) -> float:
    """Return about how high a card or block is, in lines of a table."""
    if shape.kind == "section":
        if shape.folded:
            return 2.0
        total_heights = sum(map(_height_of, shape.blocks))
        return 2.0 + total_heights
    base, line = _HEIGHTS.get(shape.kind, (1.0, 1.0))
    lists = [getattr(shape, name) for name in _PARTS if hasattr(shape, name)]
    largest_list = max(map(len, lists), default=0)
    return base + line * largest_list


def _compare_models(report: Report) -> Mapping[str, Any] | None:
    """Return the comparison of the models of a run, None where it is of one or of too many."""
    models = {entry.model for entry in index_of(report).entries}
    if len(models) == 1:
        return None
    from gradestack_plugins.pages.comparison import compared_models  # noqa: PLC0415 - see above

    return compared_models(report)


def _compared_cards(
    data: Mapping[str, Any], report: Report, *, is_comparison: bool
) -> dict[str, Any]:
    """Return the cards of a comparison: those of its own page, else of a run's view of it."""
    from gradestack_plugins.pages.compare_page import ComparisonPage  # noqa: PLC0415 - see above

    page = ComparisonPage(data, report)
    if not is_comparison:
        sides = draw_all([*page.left(), *page.right(), *page.below()])
        return {"sides": sides}
    (head,) = draw_all([page.head()])
    blocks_shown = page.left()
    return {
        "head": head,
        "left": draw_all(blocks_shown),
        "right": draw_all(page.right()),
        "under": [],
        "compared": draw_all(page.below()),
    }


def _rows_of(report: Report, positions: Sequence[int]) -> Iterator[tuple[int, Row]]:
    return zip(positions, rows_at(report, positions) if positions else (), strict=True)
