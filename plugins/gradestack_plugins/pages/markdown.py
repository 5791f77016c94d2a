"""The reporter ``markdown``."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import msgspec
from typing_extensions import override

from gradestack import Report, Reporter
from gradestack_plugins.pages.comparison import markdown_page
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.environment import check_folder, check_limits, environment, naming, write_whole
from gradestack_plugins.pages.index import Entry, RowEntry, RowIndex, name_of, names_of, shown_as, verdict, worst
from gradestack_plugins.pages.overview import STATES, GraderView, Overview, page_of
from gradestack_plugins.pages.panel import panels_of
from gradestack_plugins.pages.prose import Fold, bar, code, folded, prose
from gradestack_plugins.pages.rows import rows_at
from gradestack_plugins.pages.sample import SampleView, sample
from gradestack_plugins.pages.text import natural, number

PAGE = "report.md"
_ROWS = "results.jsonl"
_FIRST_LINES, _MOST_REASONS = 30, 5
_SHARES = (0.3, 0.1, 0.2, 0.2, 0.1, 0.1, 0.1)
"""Of the room behind the first lines: graders, agreement, tasks, samples, warnings, unread records, run."""
_SHARE = 0.3
"""Of each panel."""


@attrs.frozen(kw_only=True)
class MarkdownReporter(Reporter):
    """Writes ``report.md``: some thirty lines for a pull request or job summary, the rest folded below.

    Everything that comes from the data is shown as code or escaped, so that it cannot become a heading, a table cell, a
    link, a mention or HTML. Conversations are not repeated here: they are in report.html and results.jsonl.
    """

    max_samples: int = 50
    """Samples listed with their lost points, worst first."""
    max_tasks: int = 100
    """Lines of the task table."""
    max_text: int = 300
    """Characters shown of one value."""
    max_characters: int = 60_000
    """Characters of the page; comments on pull requests hold some 65,000. What is left out is counted."""
    templates: Path | None = None
    """Folder with a ``report.md`` whose macros stand before ours, run in a sandbox."""

    def __attrs_post_init__(self) -> None:
        check_limits(self)
        check_folder(self.templates)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write the page into ``out`` and return its path. Of the rows only those listed are read."""
        path = out / PAGE
        self.write_page(report, path)
        return (path,)

    def write_page(self, report: Report, path: Path) -> None:
        """Write the page to a file of any name."""
        with naming(self.templates):
            self._write(report, path)

    def _write(self, report: Report, path: Path) -> None:
        env = environment(self.templates)
        env.filters.update(md=prose, around=around, code=code, bar=bar, counts=counts, result=result)
        page = page_of(report)
        left_out = page.panels.left_out
        report.told.extend(left_out)
        index, view = page.index, msgspec.structs.replace(page.view, warnings=(*page.view.warnings, *left_out))
        lost = [entry for entry in index.entries if _lost(entry)]
        context = {
            "view": view,
            "panels": page.panels.filled,
            "agreement": page.agreement,
            "tasks": table(index, self.max_tasks),
            "rows": len(index.entries),
            "kept": report.has_rows,
            "samples": list(self._samples(report, worst(lost, self.max_samples))),
            "lost": len(lost),
        }
        ours = env.get_template(f"gradestack/{PAGE}").make_module(context)
        own = None if self.templates is None else env.get_template(PAGE).make_module(context)
        write_whole(path, self._text(_Parts(own, ours), context))

    def _text(self, parts: Any, context: Mapping[str, Any]) -> str:
        """Return the page: what a pull request wants to know first, then folded sections within the limit."""
        view, tasks, samples = context["view"], context["tasks"], context["samples"]
        head = _few_lines(f"{parts.head().strip()}\n", parts, view)
        graders = [piece for grader in view.graders for piece in _pieces(parts, grader)]
        warned = [f"- {prose(warning)}" for warning in view.warnings]
        panels = [filled for filled in context["panels"] if filled.blocks]
        folds = [
            *(
                Fold(prose(it.title), "", _lines(parts.block, it.blocks), "\n\n", "parts", "report.html")
                for it in panels
            ),
            Fold("Graders", parts.grader_intro().strip(), graders, "\n\n", "parts", "report.html"),
            Fold(
                "Do the graders agree?",
                parts.agreement_intro().strip(),
                _lines(parts.agreement_line, context["agreement"]),
                "\n",
                "pairs",
                "report.html",
            ),
            Fold(
                "Tasks", parts.task_intro().strip(), _lines(parts.task_line, tasks.rows), "\n", "tasks", "results.jsonl"
            ),
            Fold(
                "Samples that lost points",
                parts.sample_intro().strip(),
                _lines(parts.sample_part, samples),
                "\n\n",
                "samples",
                _ROWS,
            ),
            Fold("Warnings", parts.warning_intro().strip(), warned, "\n", "warnings", "summary.json"),
            Fold(
                "Unread records",
                parts.problem_intro().strip(),
                _lines(parts.problem_line, view.bad),
                "\n",
                "records",
                "summary.json",
            ),
            Fold("This run", parts.run_intro().strip(), [], "", "", ""),
        ]
        shares = (*([_SHARE] * len(panels)), *_SHARES)
        shown = [(fold, share) for fold, share in zip(folds, shares, strict=True) if fold.intro or fold.pieces]
        room = self.max_characters - len(head) - 1
        return f"{head}\n{folded([fold for fold, _ in shown], [share for _, share in shown], room)}"

    @override
    def comparison(self, data: Mapping[str, Any], registry: Any = None) -> Mapping[str, str]:
        """Return the page of a comparison, ``comparison.md``."""
        return {"comparison.md": markdown_page(data, panels_of(registry))}

    def _samples(self, report: Report, entries: Sequence[RowEntry]) -> Iterator[SampleView]:
        """Yield the views of samples, without their conversations."""
        rows = rows_at(report, (entry.position for entry in entries), trajectories=False) if entries else ()
        for entry, row in zip(entries, rows, strict=True):
            yield sample(Entry.of(entry), {**row, "trajectory": []}, self.max_text)


class _Parts:
    """The macros of the page: those of a suite's own template, and ours where it has none."""

    def __init__(self, own: Any, ours: Any) -> None:
        self._own, self._ours = own, ours

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name, None) or getattr(self._ours, name)


def around(text: str) -> str:
    """Return a part of a sentence as prose, with the spaces at its ends."""
    return f"{' ' * text[:1].isspace()}{prose(text)}{' ' * text[-1:].isspace()}"


def _few_lines(head: str, parts: Any, view: Overview) -> str:
    """Return the first lines with as many reasons for lost points as fit among them."""
    most = min(_MOST_REASONS, _FIRST_LINES - head.count("\n") - 4)
    lost = view.head.lost[: max(0, most)] if view.head is not None else ()
    return f"{head}\n{parts.reason_table(lost).strip()}\n" if lost else head


def _lines(macro: Any, things: Iterable[Any]) -> list[str]:
    return [macro(thing).strip() for thing in things]


def _pieces(parts: Any, grader: GraderView) -> Iterator[str]:
    """Yield the parts of a grader's figures that can be left out one by one."""
    yield parts.grader_part(grader).strip()
    if grader.figures.declared:
        yield parts.figure_part(grader).strip()


def _lost(entry: RowEntry) -> bool:
    """Return whether a sample is listed among those that lost points; without an outcome, by its score."""
    found = verdict(entry)
    return (entry.score or 0.0) < 1 if found == "graded" else found not in {"passed", "skipped"}


def result(entry: RowEntry) -> str:
    """Return what a cell of the table of tasks says; a success is marked."""
    return f"✓ {shown_as(entry)}" if verdict(entry) == "passed" else shown_as(entry)


def counts(states: Iterable[Shape]) -> dict[str, int]:
    """Return the counts by state, 0 for states nobody is in."""
    return {**dict.fromkeys(STATES, 0), **{state.name: state.count for state in states}}


MOST_COLUMNS = 32


class Column(NamedTuple):
    """One trial, of one model."""

    model: str
    run: str
    """"" where runs have no names: then one column per occurrence."""
    occurrence: int = 0

    @property
    def label(self) -> str:
        """Heading without the model."""
        return self.run or str(self.occurrence + 1)


class Task(msgspec.Struct, frozen=True):
    """One line of the table of tasks."""

    id: str
    cells: tuple[Sequence[RowEntry], ...]
    """Per column the samples there: none, one, or several for duplicates."""
    mean: str
    """Mean score over graded trials."""
    passed: int
    trials: int


class Tasks(msgspec.Struct, frozen=True):
    """The first tasks in natural order."""

    columns: tuple[Column, ...]
    rows: tuple[Task, ...]
    models: int
    left_out: int
    columns_left_out: int


def table(index: RowIndex, most: int) -> Tasks:
    """Return the first ``most`` tasks over their trials, both in natural order, models as first seen."""
    names = names_of(index.names)
    ids = {names[task] for task in index.tasks}  # those that read alike are one
    entries: dict[str, list[RowEntry]] = {id_: [] for id_ in heapq.nsmallest(most, ids, key=natural)}
    for entry, task in zip(index.entries, index.tasks, strict=True):
        if (own := entries.get(names[task])) is not None:
            own.append(entry)
    models = list(dict.fromkeys(name_of(entry.model) for own in entries.values() for entry in own))
    known = [model for model in models if model] if len(set(models) - {""}) == 1 else models
    cells = {id_: _cells(own, known[0] if len(known) == 1 else "") for id_, own in entries.items()}
    every = {column: None for own in cells.values() for column in own}
    columns = sorted(every, key=lambda each: (models.index(each.model), natural(each.run), each.occurrence))
    shown = tuple(columns[:MOST_COLUMNS])
    rows = tuple(_task(id_, entries[id_], [own.get(column, ()) for column in shown]) for id_, own in cells.items())
    return Tasks(shown, rows, len(known), max(0, len(ids) - most), len(columns) - len(shown))


def _cells(entries: Iterable[RowEntry], only: str) -> dict[Column, list[RowEntry]]:
    """Return the samples of a task by trial; those nobody ran, without a model, belong to the only one there is."""
    cells: dict[Column, list[RowEntry]] = {}
    for entry in entries:
        model, run = name_of(entry.model) or only, name_of(entry.run)
        occurrence = 0 if run else sum(known.model == model for known in cells)
        cells.setdefault(Column(model, run, occurrence), []).append(entry)
    return cells


def _task(id_: str, entries: Sequence[RowEntry], cells: Iterable[Sequence[RowEntry]]) -> Task:
    scores = [entry.score for entry in entries if entry.score is not None]
    mean = number(math.fsum(scores) / len(scores)) if scores else "–"
    return Task(id_, tuple(cells), mean, sum(entry.passed is True for entry in entries), len(entries))
