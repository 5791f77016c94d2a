"""The reporter ``markdown``."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Comparison, Registry, Report, Reporter
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.pages.comparison import markdown_page
from gradestack_plugins.pages.draw import Shape
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
from gradestack_plugins.pages.overview import page_of
from gradestack_plugins.pages.panel import panels_of
from gradestack_plugins.pages.prose import Fold, bar, code, folded, prose
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.sample import calls_of, fault_text, grades_of, source_text
from gradestack_plugins.pages.text import brief, natural, percent

PAGE, COMPARISON = "report.md", "comparison.md"
_ROWS = "results.jsonl"
_FIRST_LINES, _MOST_REASONS = 30, 5
_SECTIONS = {
    "grader": ("Graders", "\n\n", "parts", "report.html", 0.3),
    "agreement": ("Do the graders agree?", "\n", "pairs", "report.html", 0.1),
    "task": ("Tasks", "\n", "tasks", _ROWS, 0.2),
    "sample": ("Samples that lost points", "\n\n", "samples", _ROWS, 0.2),
    "warning": ("Warnings", "\n", "warnings", "summary.json", 0.1),
    "problem": ("Unread records", "\n", "records", "summary.json", 0.1),
    "run": ("This run", "", "", "", 0.1),
}
"""Macro -> heading, what is between its parts, what they are and where all of them stand, and their
share of the room behind the first lines.
"""
_SHARE = 0.3
"""Of each panel."""


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
        env.filters.update(md=prose, around=around, code=code, bar=bar)
        report = with_first_models(report)
        page = page_of(report)
        left_out = page.panels.left_out
        report.told.extend(left_out)
        index, view = (
            page.index,
            Shape(**{**vars(page.view), "warnings": (*page.view.warnings, *left_out)}),
        )
        lost = [entry for entry in index.entries if _lost(entry)]
        tasks, tasks_left_out = tasks_of(index, self.max_tasks)
        context = {
            "view": view,
            "panels": page.panels.filled,
            "agreement": page.agreement,
            "losses": page.losses,
            "figures": lines_of(report),
            "tasks": tasks,
            "tasks_left_out": tasks_left_out,
            "rows": len(index.entries),
            "several": len({line[1] for line in tasks}) > 1,
            "kept": report.has_rows,
            "samples": list(self._samples(report, worst(lost, self.max_samples))),
            "lost": len(lost),
        }
        ours = env.get_template(f"gradestack/{PAGE}").make_module(context)
        own = None if self.templates is None else env.get_template(PAGE).make_module(context)
        write_texts(path, (self._text(_Parts(own, ours), context),))

    def _text(self, parts: Any, context: Mapping[str, Any]) -> str:
        """Return the page: what a pull request wants to know first, then folded sections within the
        limit.
        """
        view, declared = context["view"], [line for line in context["figures"] if line.label]
        head = _few_lines(f"{parts.head().strip()}\n", parts, context["losses"])
        graders = list[str]()
        for grader in view.graders:
            own = [line for line in declared if brief(line.grader, 80) == grader.key]
            graders += [
                parts.grader_part(grader).strip(),
                *([parts.figure_part(own).strip()] if own else []),
            ]
        pieces = {
            "grader": graders,
            "agreement": _lines(parts.agreement_line, context["agreement"]),
            "task": _lines(parts.task_line, context["tasks"]),
            "sample": _lines(parts.sample_part, context["samples"]),
            "warning": [f"- {prose(warning)}" for warning in view.warnings],
            "problem": _lines(parts.problem_line, view.bad),
            "run": [],
        }
        folds = [
            (
                Fold(
                    prose(filled.title),
                    "",
                    _lines(parts.block, filled.blocks),
                    "\n\n",
                    "parts",
                    "report.html",
                ),
                _SHARE,
            )
            for filled in context["panels"]
            if filled.blocks
        ]
        for name, (title, between, noun, place, share) in _SECTIONS.items():
            intro = getattr(parts, f"{name}_intro")().strip()
            if intro or pieces[name]:
                folds.append((Fold(title, intro, pieces[name], between, noun, place), share))
        room = self.max_characters - len(head) - 1
        return f"{head}\n{folded([fold for fold, _ in folds], [share for _, share in folds], room)}"

    @override
    def comparison(self, found: Comparison, out: Path, registry: Registry | None) -> Iterable[Path]:
        """Write the page of a comparison, ``comparison.md``."""
        path = out / COMPARISON
        write_texts(path, (markdown_page(found.data, panels_of(registry)),))
        return (path,)

    def _samples(self, report: Report, entries: Sequence[RowEntry]) -> Iterator[Shape]:
        """Yield what is said of samples, without their conversations."""
        rows = rows_at(report, (entry.position for entry in entries)) if entries else ()
        for entry, row in zip(entries, rows, strict=True):
            expected, made = (
                as_map(row.get(side)).get("calls") for side in ("expected", "predicted")
            )
            calls = calls_of(row)
            count = 0 if expected is None else len(as_list(expected))
            yield Shape(
                entry=shown_entry(entry),
                error=fault_text(as_map(row.get("error"))),
                pairs=calls.pairs,
                more_pairs=count - len(calls.pairs),
                unexpected=None if expected is None or as_list(expected) else len(as_list(made)),
                grades=grades_of(row),
                source=source_text(as_map(row.get("source"))),
            )


class _Parts:
    """The macros of the page: those of a suite's own template, and ours where it has none."""

    def __init__(self, own: Any, ours: Any) -> None:
        self._own, self._ours = own, ours

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name, None) or getattr(self._ours, name)


def around(text: str) -> str:
    """Return a part of a sentence as prose, with the spaces at its ends."""
    return f"{' ' * text[:1].isspace()}{prose(text)}{' ' * text[-1:].isspace()}"


def _few_lines(head: str, parts: Any, losses: Shape) -> str:
    """Return the first lines with as many causes of failed samples as fit among them, each with its
    tool, and one line for all others.
    """
    most = min(_MOST_REASONS, _FIRST_LINES - head.count("\n") - 5)
    lines = [(cause, part) for cause in losses.causes for part in cause.parts or (cause,)]
    lines.sort(key=lambda line: -line[1].samples)
    if not lines or most <= 0:
        return head
    shown = lines[:most]
    rest = losses.failed - sum(part.samples for _, part in shown)
    others = Shape(samples=rest, share=percent(rest, losses.failed))
    return f"{head}\n{parts.reason_table(shown, others).strip()}\n"


def _lines(macro: Any, things: Iterable[Any]) -> list[str]:
    return [macro(thing).strip() for thing in things]


def _lost(entry: RowEntry) -> bool:
    """Return whether a sample is listed among those that lost points.

    Without an outcome, by its score.
    """
    found = verdict(entry)
    return (entry.score or 0.0) < 1 if found == "graded" else found not in {"passed", "skipped"}


def tasks_of(index: RowIndex, most: int) -> tuple[list[Line], int]:
    """Return the first ``most`` tasks in natural order, as in the table ``tasks``, and how many
    others there are.
    """
    names = names_of(index.names)
    ids = {names[task] for task in index.tasks}  # those that read alike are one
    places = {id_: place for place, id_ in enumerate(heapq.nsmallest(most, ids, key=natural))}
    entries = [
        entry
        for entry, task in zip(index.entries, index.tasks, strict=True)
        if names[task] in places
    ]
    return sorted(task_lines(entries), key=lambda line: places[name_of(line[0])]), len(ids) - len(
        places
    )
