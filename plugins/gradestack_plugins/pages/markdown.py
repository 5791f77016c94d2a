"""The reporter ``markdown``."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from typing_extensions import override

from gradestack import Report, Reporter, compile_later
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.pages.blocks import Cell, Section, Table, Words
from gradestack_plugins.pages.draw import Shape, draw_all
from gradestack_plugins.pages.environment import (
    check_folder,
    check_limits,
    environment,
    naming,
    write_texts,
)
from gradestack_plugins.pages.figures import Line, lines_of, task_lines
from gradestack_plugins.pages.index import (
    RowEntry,
    RowIndex,
    name_of,
    names_of,
    shown_entry,
    verdict,
    worst,
)
from gradestack_plugins.pages.models import with_first_models
from gradestack_plugins.pages.page import Page, page_of
from gradestack_plugins.pages.panel import Panels, panels_of
from gradestack_plugins.pages.prose import Fold, around, bar, code, folded, prose
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.sample import calls_of, fault_text, grades_of, source_text
from gradestack_plugins.pages.text import natural, number

if TYPE_CHECKING:  # the page of a run needs neither
    from gradestack import Comparison, Registry

PAGE, COMPARISON = "report.md", "comparison.md"
_ROWS = "results.jsonl"
_FIRST_LINES, _MOST_CAUSES = 30, 5
_SHARES = {"graders": 0.3, "tasks": 0.2, "samples": 0.2}
"""Section -> its share of the room behind the first lines."""
_SHARE = 0.1
_UNLISTED = {
    "tasks": ("tasks", _ROWS),
    "problems": ("warnings", "summary.json"),
    "run": ("parts", "header.json"),
}
"""Section -> what its parts are, and the file that has those left out."""
_RULE = compile_later(r"(^\| -.* \|\n)", re.MULTILINE)
"""The line below the headings of a table."""
_ELSEWHERE = ("parts", "report.html")
FILTERS = {"md": prose, "around": around, "code": code, "bar": bar}
"""Of templates in Markdown."""


@attrs.frozen(kw_only=True)
class MarkdownReporter(Reporter):
    """Writes ``report.md``.

    Some thirty lines for a pull request or job summary, the rest folded below.

    Everything that comes from the data is shown as code or escaped, so that it cannot become a
    heading, a table cell, a link, a mention or HTML. Conversations are not repeated here: they are
    in report.html and results.jsonl.
    """

    max_samples: int = 50
    """Samples listed with their lost points, worst first."""
    max_tasks: int = 100
    """Lines of the task table."""
    max_characters: int = 60_000
    """Characters of the page; comments on pull requests hold some 65,000.

    What is left out is counted.
    """
    templates: Path | None = None
    """Folder with a ``report.md`` whose macros stand before ours, run in a sandbox."""

    def __attrs_post_init__(self) -> None:
        check_limits(self)
        check_folder(self.templates)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the page into ``out`` and return its path.

        Of the rows only those listed are read.
        """
        path = out / PAGE
        self.write_page(report, path)
        return (path,)

    def write_page(self, report: Report, path: Path) -> None:
        """Write the page to a file of any name."""
        with naming(self.templates):
            self._write(report, path)

    def _write(self, report: Report, path: Path) -> None:
        env = environment(self.templates)
        env.filters.update(FILTERS)
        report = with_first_models(report)
        page = page_of(report)
        report.warnings.extend(page.panels.left_out)
        context = self._context(report, page)
        ours = env.get_template(f"gradestack/{PAGE}").make_module(context)
        if self.templates is None:
            own_macros = None
        else:
            own_macros = env.get_template(PAGE).make_module(context)
        parts = _Macros(own_macros, ours)
        text = self._text(report, parts, page, context)
        write_texts(path, (text,))

    def _context(self, report: Report, page: Page) -> dict[str, Any]:
        failed = [entry for entry in page.index.entries if _is_listed(entry)]
        sections = draw_all(page.first)
        blocks = {section.id: section.blocks for section in sections}
        (head,) = draw_all([page.head])
        for panel in page.panels.at("lead"):
            for shape in panel.blocks:
                if shape.kind == "head":
                    head.sentence = shape.sentence
        estimates = blocks.get("estimates", ())
        rows = [row for block in estimates for row in block.rows]
        gates = draw_all(page.gates)
        cards = {"head": head, "gates": gates}
        entries = worst(failed, self.max_samples)
        samples = list(self._samples(report, entries))
        findings = blocks.get("findings", [])
        return {
            "view": page,
            "cards": cards,
            "results": rows,
            "caveats": findings,
            "lost": len(failed),
            "samples": samples,
        }

    def _text(self, report: Report, parts: _Macros, page: Page, context: Mapping[str, Any]) -> str:
        """Return the page: what a pull request wants to know first, then folded sections."""
        head = _with_causes(f"{parts.head().strip()}\n", parts, page)
        folds: list[Fold] = []
        shares: list[float] = []
        for panel in page.panels.panels:
            shapes = [shape for shape in panel.blocks if shape.kind != "head"]
            if shapes and panel.placed.panel.place != "page":
                folds.append(_fold(panel.title, shapes, parts))
                shares.append(_SHARES["graders"])
        for section in self._sections(report, page):
            (shape,) = draw_all([section])
            unlisted = _UNLISTED.get(section.id, _ELSEWHERE)
            folds.append(_fold(shape.title, shape.blocks, parts, unlisted))
            shares.append(_SHARES.get(section.id, _SHARE))
        if context["samples"]:
            intro = parts.sample_intro().strip()
            samples = context["samples"]
            texts = [parts.sample_part(sample).strip() for sample in samples]
            fold = Fold("Runs that lost points", intro, texts, "\n\n", "runs", _ROWS)
            folds.append(fold)
            shares.append(_SHARES["samples"])
        room = self.max_characters - len(head) - 1
        return f"{head}\n{folded(folds, shares, room)}"

    def _sections(self, report: Report, page: Page) -> Iterator[Section]:
        """Yield the sections that are folded: all but the first screen's."""
        first = {"estimates", "findings", "causes", "few-runs"}
        for section in page.first:
            if section.id not in first:
                yield section
        yield from page.details["figures"]
        lines = lines_of(report)
        declared = [line for line in lines if line.label]
        if declared:
            yield _figures(declared)
        if page.index.entries:
            yield self._tasks(page)
        yield from page.details["evaluation"]
        if page.panels.left_out:
            words = [Words(text) for text in page.panels.left_out]
            yield Section("Panels left out", words)

    def _tasks(self, page: Page) -> Section:
        lines, left_out = tasks_of(page.index, self.max_tasks)
        several = len({line[1] for line in lines}) > 1
        has_outcome = page.success is not None
        rows: dict[str, list[Cell]] = {}
        for task, model, trials, passed, _, _, mean in lines:
            if several:
                name = f"{task} ({model})"
            else:
                name = str(task)
            cells: list[Cell] = [trials, passed] if has_outcome else [trials]
            rows[name] = [*cells, "–" if mean is None else mean]
        if has_outcome:
            columns = ["trials", page.words["passed"], "mean"]
        else:
            columns = ["trials", "mean"]
        more = f"{number(left_out)} more tasks are in results.jsonl." if left_out else ""
        table = Table(columns, rows, corner="Task")
        text = Words(f"Mean score of the main grader over each task's trials. {more}".strip())
        return Section("Tasks", [text, table], id="tasks")

    @override
    def comparison(
        self, comparison: Comparison, out: Path, registry: Registry | None
    ) -> Iterable[Path]:
        """Write the page of a comparison, ``comparison.md``."""
        from gradestack_plugins.pages.comparison import markdown_page  # noqa: PLC0415 - here alone

        path = out / COMPARISON
        offered: Panels = panels_of(registry)
        write_texts(path, (markdown_page(comparison.data, offered),))
        return (path,)

    def _samples(self, report: Report, entries: Sequence[RowEntry]) -> Iterator[Shape]:
        """Yield samples without their conversations."""
        rows = rows_at(report, (entry.position for entry in entries)) if entries else ()
        for entry, row in zip(entries, rows, strict=True):
            expected, made = (
                as_map(row.get(side)).get("calls") for side in ("expected", "predicted")
            )
            calls = calls_of(row)
            count = len(as_list(expected))
            is_quiet = expected is not None and not count
            yield Shape(
                entry=shown_entry(entry),
                error=fault_text(as_map(row.get("error"))),
                pairs=calls.pairs,
                more_pairs=count - len(calls.pairs),
                unexpected=len(as_list(made)) if is_quiet else None,
                grades=grades_of(row),
                source=source_text(as_map(row.get("source"))),
            )


class _Macros:
    """The macros of the page: those of a suite's own template, and ours where it has none."""

    def __init__(self, own_macros: Any, ours: Any) -> None:
        self._own_macros, self._ours = own_macros, ours

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own_macros, name, None) or getattr(self._ours, name)


def _figures(lines: Sequence[Shape]) -> Section:
    """Return the figures that are declared, by path."""
    rows: dict[str, list[Cell]] = {}
    for line in lines:
        if line.model is None:
            model = ""
        else:
            model = f" ({line.model})"
        note = "; ".join(filter(None, (line.interval, line.note)))
        rows[f"{line.grader}.{line.path}{model}"] = [line.label, line.value, note]
    table = Table(["figure", "value", "interval"], rows, corner="path")
    return Section("Figures", [table], id="numbers")


def _fold(
    title: str,
    shapes: Sequence[Shape],
    parts: _Macros,
    unlisted: tuple[str, str] = _ELSEWHERE,
) -> Fold:
    """Return a section whose last parts may be left out: of a last table its rows."""
    noun, file = unlisted
    texts = [parts.block(shape).strip() for shape in shapes]
    last_text = texts[-1]
    match = _RULE.search(last_text)
    head, rule, rows = _RULE.split(texts[-1], 1) if match else ("", "", "")
    if rule and shapes[-1].kind == "table" and "\n\n" not in rows:
        intro = "\n\n".join([*texts[:-1], f"{head}{rule}".strip()])
        return Fold(prose(title), intro, rows.splitlines(), "\n", noun, file)
    return Fold(prose(title), "", texts, "\n\n", noun, file)


def _with_causes(head: str, parts: _Macros, page: Page) -> str:
    """Return the first lines with as many causes of failed runs as fit among them."""
    most = min(_MOST_CAUSES, _FIRST_LINES - head.count("\n") - 5)
    if not page.failures.lines or most <= 0:
        return head
    block = page.failures.block(most)
    (shape,) = draw_all([block])
    return f"{head}\n{parts.reason_table(shape).strip()}\n"


def _is_listed(entry: RowEntry) -> bool:
    """Return whether a sample is listed among those that lost points.

    Without an outcome, by its score.
    """
    outcome = verdict(entry)
    if outcome == "graded":
        return (entry.score or 0.0) < 1
    return outcome not in {"passed", "skipped"}


def tasks_of(index: RowIndex, most: int) -> tuple[list[Line], int]:
    """Return the first ``most`` tasks in natural order, and how many others there are.

    They are lines of the table ``tasks``.
    """
    names = names_of(index.names)
    ids = {names[task] for task in index.tasks}  # those that read alike are one
    first = heapq.nsmallest(most, ids, key=natural)
    ranks = {id_: rank for rank, id_ in enumerate(first)}
    entries = []
    for entry, task in zip(index.entries, index.tasks, strict=True):
        if names[task] in ranks:
            entries.append(entry)
    lines = sorted(task_lines(entries), key=lambda line: ranks[name_of(line[0])])
    return lines, len(ids) - len(ranks)
