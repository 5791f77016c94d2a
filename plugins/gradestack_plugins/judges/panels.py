"""What judges show on pages: how far people agree with each, and where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from typing_extensions import override

from gradestack import Report
from gradestack.jsonio import as_map, as_number, as_text
from gradestack_plugins.judges.calibrated import CELLS, Calibrated
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.text import brief

_MOST = 20
"""Disagreements that are listed."""
_LONGEST = 400
"""Characters of a reason."""
_RATES = ("rate", "rogan_gladen", "raw")
_WORTH = ("percent_agreement", "sensitivity", "specificity", "youden", "kappa", "ac1", "self_consistency", "noise")


class Judges(blocks.Panel):
    """Rates, table of judge and people, agreement and disagreements of every judge; None without one."""

    place = "overview"
    title = "Judges and people"

    @override
    def show(self, about: Report) -> Iterable[blocks.Block] | None:
        found = {key: as_map(metrics.get("calibrated")) for key, metrics in about.aggregates.items()}
        parts = {key: [*_judge(about, key, held)] for key, held in found.items() if held}
        if len(parts) < 2:
            return next(iter(parts.values()), None)
        return [blocks.Section(key, part) for key, part in parts.items()]


def _judge(about: Report, key: str, held: Mapping[str, Any]) -> Iterator[blocks.Block]:
    labels = f"{held['labels']:,} samples are labelled by people{' of another run' if 'labels_of' in held else ''}. "
    why = as_text(held.get("uncalibrated"))
    yield blocks.Words(labels + (f"Judge and rates are uncalibrated: {why}." if why else "The judge is calibrated."))
    names = {each.name: each.label for each in Calibrated.figures}
    yield blocks.Interval([blocks.figure_of(names[name], held, name) for name in _RATES], "Pass rate")
    table = as_map(held.get("table"))
    if not held["labels"]:
        return
    rows = [[table[CELLS[0]], table[CELLS[1]]], [table[CELLS[2]], table[CELLS[3]]]]
    yield blocks.Matrix(["judge: pass", "judge: fail"], ["people: pass", "people: fail"], rows, "Labelled samples")
    worth = [blocks.figure_of(names[name], held, name) for name in _WORTH if as_number(held.get(name)) is not None]
    yield blocks.Figures(worth, "What the judge is worth")
    apart = 0 if "labels_of" in held else table[CELLS[1]] + table[CELLS[2]]
    if apart and about.has_rows:
        listed = {str(number): cells for number, cells in enumerate(islice(_disagreements(about, key), _MOST), 1)}
        title = f"Where they disagree{f', the first {_MOST} of {apart:,}' if apart > _MOST else ''}"
        yield blocks.Table(["sample", "judge", "people", "the judge's reason"], listed, title)


def _disagreements(about: Report, key: str) -> Iterator[list[blocks.Cell]]:
    for position, (number, _, line) in enumerate(about.lines()):
        row = as_map(as_map(about.row(number, line).get("grades")).get(key)) if b'"gold"' in line else {}
        if row.get("state") != "graded" or "gold" not in row:
            continue
        passed = row.get("passed", (as_number(row.get("score")) or 0) >= 1)
        judge = "pass" if passed else "fail"
        if judge != row["gold"]:
            sample = as_text(as_map(about.row(number, line)["sample"]).get("id"))
            yield [blocks.Link(sample, position=position), judge, row["gold"], brief(row.get("rationale"), _LONGEST)]
