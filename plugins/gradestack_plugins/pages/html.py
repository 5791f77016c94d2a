"""The reporter ``html``."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Self

import attrs
import jinja2
from markupsafe import Markup, escape
from typing_extensions import override

from gradestack import Report, Reporter
from gradestack_plugins.pages.chunks import BESIDE, FOLDER, VERDICTS, Chunks, island_of_texts, listing, verdicts_by
from gradestack_plugins.pages.comparison import html_page
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
from gradestack_plugins.pages.figures import words_of
from gradestack_plugins.pages.index import Entry, RowEntry, RowIndex, name_of, shade_of, shown_as, verdict, worst
from gradestack_plugins.pages.losses import facets_of, failures_of
from gradestack_plugins.pages.overview import Page, page_of
from gradestack_plugins.pages.panel import PAGE, Sheets, folders, panels, panels_of
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.sample import SharedTexts, sample
from gradestack_plugins.pages.table_files import run_tables
from gradestack_plugins.pages.tasks import MOST_CELLS, Task, Tasks, table
from gradestack_plugins.pages.text import clean

_IN_MEMORY = 8_000_000
_STATIC, _MANY = 50, 20
"""Drill-downs that stay in a page whose samples are beside it. In a run with so many times more samples than it may
have drill-downs no others are rendered: they would be a small part of it, and the page's script draws them as well."""
_PROBED, _MOST_WITH_PANELS = 20, 10_000
"""Samples without a drill-down that panels are asked about before they are about all, since most have nothing to show;
samples of a run up to which they are."""
_LONGEST_LIST = 2_000_000
"""Of the list of samples in such a page: a longer one is beside it, too."""
_ELEMENTS, _BESIDE_A_MAP = 1800, 1500
"""Of the task table: with many trials it has fewer lines; and where the map is drawn by the script."""
_NO_CELL = Markup('<span class="cell none">·</span>')


@attrs.frozen(kw_only=True)
class HtmlReporter(Reporter):
    """Writes ``report.html``: one file that needs no network, no other file, and no script for what matters.

    A page that would be larger than ``max_bytes`` keeps the worst samples; the rows of all are in ``report_data``
    beside it, from where its script reads those that are looked at.
    """

    beside: ClassVar[tuple[str, ...]] = BESIDE

    max_samples: int = 500
    """Samples whose drill-downs are rendered here, failures first; the page draws others from their rows."""
    max_tasks: int = 1000
    """Lines of the task table."""
    max_text: int = 10_000
    """Characters shown of one message, argument or rationale."""
    max_bytes: int = 5_000_000
    """Size of samples in the page; above it they are in ``report_data`` beside it."""
    theme: Path | dict[str, Any] | None = None
    """Colours and fonts: variable -> value, and ``light`` and ``dark`` with mappings of the same kind for one of them;
    or a YAML or JSON file that holds that."""
    templates: Path | None = None
    """Folder with templates that stand before ours, run in a sandbox, and a ``style.css`` that is added to ours."""

    def __attrs_post_init__(self) -> None:
        """Refuse what no page can be made with."""
        check_limits(self)
        check_folder(self.templates)
        theme_css(self.theme)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the page into ``out``, with ``report_data`` beside it where it needs that."""
        with naming(self.templates):
            return self._write(report, out)

    def _write(self, report: Report, out: Path) -> tuple[Path, ...]:
        page = page_of(report)
        env, index = environment(self.templates, folders(panels(report))), page.index
        words = words_of(report.summary)
        env.filters.update(cell=partial(cell, words=words), cells=partial(cells, words=words))
        env.globals["sample_words"] = words
        path, sheets = out / PAGE, Sheets(env, panels(report), rows=report.has_rows)
        with _Drilldowns(env, self, sheets) as drilldowns:
            drilldowns.render(report, index)
            drilldowns.pack(report, index, out / FOLDER)
            context = self._context(env, report, index, drilldowns)
            context |= self._with_panels(context, page, sheets)
            report.told.extend(context["left_out"])
            write_stream(env.get_template(PAGE), path, context)
        return (path, *self._pages(env, context, out))

    @override
    def comparison(self, data: Mapping[str, Any], registry: Any = None) -> Mapping[str, str]:
        """Return the page of a comparison, ``comparison.html``."""
        return {"comparison.html": html_page(data, panels_of(registry))}

    def _with_panels(self, context: Mapping[str, Any], page: Page, sheets: Sheets) -> dict[str, Any]:
        """Return what panels add to the context, and the warnings of those that are left out."""
        shown, told = sheets.rendered(page.panels)
        told = (*told, *sheets.left_out_of_samples())
        view = attrs.evolve(page.view, warnings=(*page.view.warnings, *told))
        return {
            "view": view,
            "problems": context["problems"] or bool(told),
            "panels": [(filled, html) for filled, html in shown if filled.placed.panel.place == "overview"],
            "sheets": [(filled, html) for filled, html in shown if filled.placed.panel.place == "page"],
            "pages": [filled for filled, _ in shown if filled.placed.panel.place == "page"],
            "left_out": told,
        }

    def _pages(self, env: jinja2.Environment, context: Mapping[str, Any], out: Path) -> Iterator[Path]:
        """Write the pages that panels have for themselves, and yield their paths."""
        for filled, body in context["sheets"]:
            own = policy([context["style"]], [context["early"]])
            path = out / filled.placed.file
            write_stream(
                env.get_template("panel.html"), path, {**context, "policy": own, "filled": filled, "body": body}
            )
            yield path

    def _context(
        self, env: jinja2.Environment, report: Report, index: RowIndex, drilldowns: _Drilldowns
    ) -> dict[str, Any]:
        style, early = asset(env, "report.css"), asset(env, "theme.js")
        style = Markup("".join((style, theme_css(self.theme), own_style(self.templates))))  # noqa: S704 - checked
        page, chunks = page_of(report), drilldowns.chunks
        view = page.view
        by = verdicts_by(index, view.success.grader if view.success else "")
        models = [name_of(name) for name in dict.fromkeys(entry.model for entry in index.entries)]
        switches = report.has_rows and (len(models) > 1 or bool(by))
        drawn = ("values.js", "sample.js") if chunks.first else ()
        whole_map = report.has_rows and len(index.entries) > MOST_CELLS
        assets = (
            *drawn,
            "page.js",
            "save.js",
            *(("map.js",) if whole_map else ()),
            *(("tasks.js",) if switches else ()),
            "report.js",
        )
        script = Markup().join(asset(env, name) for name in assets)
        failures, failures_left_out = failures_of(index)
        return {
            "view": view,
            "agreement": page.agreement,
            "folded": page.folded,
            "failures": failures,
            "failures_left_out": failures_left_out,
            "problems": bool(view.warnings or view.bad_count or view.duplicates),
            "facets": facets_of(index) if view.success else (),
            "tasks": _lines(
                index, view.words["passed"] if view.success else "", self.max_tasks, beside_a_map=whole_map
            ),
            "rows": len(index.entries),
            "whole_map": whole_map,
            "kept": report.has_rows,
            "shown": frozenset(drilldowns.shown),
            "drilldowns": drilldowns,
            "verdicts": Counter(map(verdict, index.entries)),
            "places": {name: place for place, name in enumerate(VERDICTS)},
            "models": models,
            "switches": switches,
            "kinds": [(each.number, each.text, each.samples) for each in failures],
            "by": [name for name, _ in by],
            "tables": Markup(island_of_texts(run_tables(report))),  # noqa: S704 - base64
            "listing": self._listing(index, view.words, chunks, by),
            "chunks": [Markup(text) for text in chunks.texts],  # noqa: S704 - base64
            "beside": FOLDER if chunks.beside else "",
            "texts": drilldowns.shared.texts,
            "style": style,
            "script": script,
            "early": early,
            "policy": policy([style], [early, script], loading=chunks.beside),
        }

    def _listing(
        self, index: RowIndex, words: Mapping[str, str], chunks: Chunks, by: Sequence[tuple[str, str]]
    ) -> Markup:
        """Return the list of samples; empty where it is too long for the page and stands beside it."""
        found = listing(index, words, {"chunks": chunks.listed(), "longest": self.max_text, "by": by})
        if chunks.beside and len(found) > _LONGEST_LIST:
            chunks.write("index", found)
            return Markup()
        return Markup(found)  # noqa: S704 - base64


def _lines(index: RowIndex, word: str, most: int, *, beside_a_map: bool) -> Tasks:
    """Return the table of tasks with at most so many lines, fewer where trials are many."""
    columns = len(table(index, 0, word).columns)
    room = _BESIDE_A_MAP if beside_a_map else _ELEMENTS
    return table(index, min(most, max(20, room // (4 + 2 * columns))), word)


def cells(task: Task, tasks: Tasks, shown: Container[int], *, words: Mapping[str, str]) -> Markup:
    """Return the cells of a task's line. Not a template's work: a page has tens of thousands of them."""
    found: list[str] = []
    for column, entries in zip(tasks.columns, task.cells, strict=True):
        found.append("<td>")
        found += [cell(entry, task, shown, column.run, words=words) for entry in entries] or [_NO_CELL]
        found.append("</td>")
    return Markup("".join(found))  # noqa: S704 - made of escaped parts


def cell(entry: RowEntry, task: Task, shown: Container[int], run: str = "", *, words: Mapping[str, str]) -> Markup:
    """Return one cell: a link where the sample has a drill-down."""
    score, found = shown_as(entry), verdict(entry)
    about = f"task {task.id}, run {run}" if run else f"task {task.id}"
    told = f", {words[found]}" if found in {"passed", "lost"} else ""
    label = escape(clean(f"{about}: {score}{told}"))
    look, text = (
        f'class="cell {found if found in {"passed", "lost"} else shade_of(entry)}"',
        f"✓ {score}" if found == "passed" else score,
    )
    if entry.position in shown:
        link = f'href="#s{entry.position + 1}" aria-label="{label}"'
        return Markup(f'<a {look} {link} title="{label}">{text}</a>')  # noqa: S704 - the label is escaped
    return Markup(f'<span {look} title="{label}">{text}</span>')  # noqa: S704 - the same


class _Drilldowns:
    """Rendered drill-downs, worst first, kept in a temporary file until the page reaches them."""

    def __init__(self, env: jinja2.Environment, options: HtmlReporter, sheets: Sheets) -> None:
        self._template = env.get_template("_sample.html")
        self._options, self._sheets = options, sheets
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._places: dict[int, tuple[int, int]] = {}
        self.shared = SharedTexts(options.max_text)
        self.shown: list[int] = []
        self.chunks: Chunks

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def render(self, report: Report, index: RowIndex) -> None:
        """Render the worst samples."""
        most = self._options.max_samples
        if len(index.entries) > _MANY * most:
            most = min(most, _STATIC)
        self.shown = [entry.position for entry in worst(index.entries, most)]
        places = sorted(self.shown)
        for position, row in zip(places, rows_at(report, places) if places else (), strict=True):
            view = sample(Entry.of(index.entries[position]), row, self._options.max_text, self.shared)
            panels = list(self._sheets.of_sample(row))
            data = self._template.render(sample=view, panels=panels).encode("utf-8", "replace")
            self._places[position] = (self._file.tell(), len(data))
            self._file.write(data)

    def pack(self, report: Report, index: RowIndex, folder: Path) -> None:
        """Take up the rows where not all samples are rendered; drill-downs, too, where the page gets too large."""
        found = self.chunks = Chunks(folder, self._options.max_bytes - self._file.tell())
        if len(self.shown) < len(index.entries):
            found.add_rows(report, index)
            found.add_panels(self._panels(report, index))
        if found.beside:
            kept, rest = self._kept()
            found.add_drilldowns((position, self._text(position)) for position in rest)
            self.shown = kept

    def _panels(self, report: Report, index: RowIndex) -> Iterator[tuple[int, list[str]]]:
        """Yield what panels show of the samples without a drill-down; of very many only their titles are kept."""
        samples = len(index.entries)
        rest = sorted(set(range(samples)) - set(self.shown)) if samples <= _MOST_WITH_PANELS else []
        probed = rest or range(samples)
        if not self._sheets.shows(rows_at(report, probed[:: max(1, len(probed) // _PROBED)])):
            return
        for position, row in zip(rest, rows_at(report, rest), strict=True):
            if panels := list(map(str, self._sheets.of_sample(row))):
                yield position, panels
        if not rest:
            self.chunks.without = list(self._sheets.titles)

    def _kept(self) -> tuple[list[int], list[int]]:
        """Return the drill-downs that stay in the page, the worst and as many of these as fit it, and the others."""
        room = self._options.max_bytes
        for place, position in enumerate(self.shown[:_STATIC]):
            room -= self._places[position][1]
            if room < 0:
                return self.shown[:place], self.shown[place:]
        return self.shown[:_STATIC], self.shown[_STATIC:]

    def _text(self, position: int) -> str:
        start, size = self._places[position]
        self._file.seek(start)
        return self._file.read(size).decode()

    def __iter__(self) -> Iterator[tuple[int, Markup]]:
        for position in self.shown:
            yield position, Markup(self._text(position))  # noqa: S704 - rendered and escaped by our own template
