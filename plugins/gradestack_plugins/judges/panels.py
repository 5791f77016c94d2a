"""The panel of judges: how far people agree with each, and where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_map, as_number, as_text
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.text import brief, counted

_NO_SHARES = ("youden", "kappa", "ac1")
"""Figures that are no shares of runs."""
_MOST = 20  # disagreements that are listed
_LONGEST = 400  # characters of a reason


@blocks.panel("Judge and people", place="first")
def judges(about: Report) -> Iterable[blocks.Block] | None:
    """Rates, table of judge and people, agreement and disagreements of every judge.

    None without one.
    """
    aggregates = about.aggregates.items()
    by_grader = {key: as_map(metrics.get("calibrated")) for key, metrics in aggregates}
    parts = {key: [*_judge(about, key, figures)] for key, figures in by_grader.items() if figures}
    if len(parts) < 2:
        return next(iter(parts.values()), None)
    return [blocks.Section(key, part) for key, part in parts.items()]


def _judge(about: Report, key: str, metrics: Mapping[str, Any]) -> Iterator[blocks.Block]:
    """Yield the blocks of a judge: its pass rate, and its agreement with people's labels."""
    if "error" in metrics:
        yield blocks.Words(f"Not computed: {as_text(metrics['error'])}.")
        return
    from gradestack_plugins.judges.calibrated import CELLS, Calibrated  # noqa: PLC0415 - few judge

    yield blocks.Words(_summary(metrics))
    figures = {
        figure.name: blocks.figure_of(
            figure.label, metrics, figure.name, unit="" if figure.name in _NO_SHARES else "share"
        )
        for figure in Calibrated.figures
    }
    rates = [figures.pop(name) for name in ("rate", "rogan_gladen", "raw")]
    yield blocks.Interval(rates, "Pass rate")
    if not metrics["labels"]:
        return
    both, judge, people, none = (metrics["table"][name] for name in CELLS)
    rows, columns = ["judge: pass", "judge: fail"], ["people: pass", "people: fail"]
    yield blocks.Matrix(rows, columns, [[both, judge], [people, none]], "Labelled samples")
    known = [figures[name] for name in figures if as_number(metrics.get(name)) is not None]
    yield blocks.Figures(known, "Judge against labels")
    if "labels_of" in metrics:
        number = 0
    else:
        number = judge + people
    if number and about.has_rows:
        first = islice(_disagreements(about, key), _MOST)
        listed = {f"{n}. {name}": cells for n, (name, cells) in enumerate(first, 1)}
        more = ""
        if number > _MOST:
            more = f", the first {_MOST} of {number:,}"
        title = f"Where they disagree{more}"
        yield blocks.Table(["Judge / people", "Judge's reason"], listed, title, "Sample")


def _summary(metrics: Mapping[str, Any]) -> str:
    """Write the sentences on how many labels there are, and whether the judge is calibrated."""
    where = " in another run" if "labels_of" in metrics else ""
    labels = f"{counted(metrics['labels'], 'runs')} labelled by people{where}"
    why = as_text(metrics.get("uncalibrated"))
    state = "the judge's pass rate is corrected by them."
    if why:
        gates = "A gate on these rates fails unless `on_uncalibrated` says otherwise"
        state = f"uncalibrated: {why}. {gates}."
    advice = (
        "" if metrics["labels"] else " To draw samples to label: gradestack judge --sample 100."
    )
    return f"{labels}; {state}{advice}"


def _disagreements(about: Report, key: str) -> Iterator[tuple[str, list[blocks.Cell]]]:
    """Yield (sample, cells of its table row) where the judge's verdict differs from people's."""
    for position, (number, _, line) in enumerate(about.lines()):
        if b'"gold"' not in line:
            continue
        row = about.row(number, line)
        grades = row.get("grades")
        grade = as_map(as_map(grades).get(key))
        state = grade.get("state")
        if state != "graded" or "gold" not in grade:
            continue
        score = as_number(grade.get("score")) or 0
        judge = "fail"
        if grade.get("passed", score >= 1):
            judge = "pass"
        if judge != grade["gold"]:
            sample = as_text(as_map(row["sample"]).get("id"))
            verdicts = blocks.Link(f"{judge} / {grade['gold']}", position=position)
            rationale = grade.get("rationale")
            yield sample, [verdicts, brief(rationale, _LONGEST)]
