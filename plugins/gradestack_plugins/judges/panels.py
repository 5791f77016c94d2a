"""What judges show on pages: how far people agree with each, and where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from gradestack import Report
from gradestack.jsonio import as_map, as_number, as_text
from gradestack_plugins.judges.calibrated import CELLS, Calibrated
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.text import brief, counted

_MOST = 20  # disagreements that are listed
_LONGEST = 400  # characters of a reason


@blocks.panel("Judge and people", place="first")
def judges(about: Report) -> Iterable[blocks.Block] | None:
    """Rates, table of judge and people, agreement and disagreements of every judge.

    None without one.
    """
    found = {key: as_map(metrics.get("calibrated")) for key, metrics in about.aggregates.items()}
    parts = {key: [*_judge(about, key, held)] for key, held in found.items() if held}
    if len(parts) < 2:
        return next(iter(parts.values()), None)
    return [blocks.Section(key, part) for key, part in parts.items()]


def _judge(about: Report, key: str, held: Mapping[str, Any]) -> Iterator[blocks.Block]:
    if "error" in held:
        yield blocks.Words(f"Not computed: {as_text(held['error'])}.")
        return
    where = " in another run" if "labels_of" in held else ""
    labels = f"{counted(held['labels'], 'samples')} labelled by people{where}; "
    why = as_text(held.get("uncalibrated"))
    gates = "A gate on these rates fails unless `on_uncalibrated` says otherwise"
    what = f"uncalibrated: {why}. {gates}." if why else "the judge is calibrated."
    more = "" if held["labels"] else " To draw samples to label: gradestack judge --sample 100."
    yield blocks.Words(labels + what + more)
    figures = {
        each.name: blocks.figure_of(each.label, held, each.name) for each in Calibrated.figures
    }
    yield blocks.Interval(
        [figures.pop(name) for name in ("rate", "rogan_gladen", "raw")], "Pass rate"
    )
    if not held["labels"]:
        return
    both, judge, people, none = (held["table"][name] for name in CELLS)
    rows = [[both, judge], [people, none]]
    yield blocks.Matrix(
        ["judge: pass", "judge: fail"], ["people: pass", "people: fail"], rows, "Labelled samples"
    )
    worth = [figure for name, figure in figures.items() if as_number(held.get(name)) is not None]
    yield blocks.Figures(worth, "Judge against labels")
    apart = 0 if "labels_of" in held else judge + people
    if apart and about.has_rows:
        listed = {
            f"{n}. {name}": cells
            for n, (name, cells) in enumerate(islice(_disagreements(about, key), _MOST), 1)
        }
        title = f"Where they disagree{f', the first {_MOST} of {apart:,}' if apart > _MOST else ''}"
        yield blocks.Table(["Judge / people", "Judge's reason"], listed, title, "Sample")


def _disagreements(about: Report, key: str) -> Iterator[tuple[str, list[blocks.Cell]]]:
    for position, (number, _, line) in enumerate(about.lines()):
        row = (
            as_map(as_map(about.row(number, line).get("grades")).get(key))
            if b'"gold"' in line
            else {}
        )
        if row.get("state") != "graded" or "gold" not in row:
            continue
        passed = row.get("passed", (as_number(row.get("score")) or 0) >= 1)
        judge = "pass" if passed else "fail"
        if judge != row["gold"]:
            sample = as_text(as_map(about.row(number, line)["sample"]).get("id"))
            verdicts = blocks.Link(f"{judge} / {row['gold']}", position=position)
            yield sample, [verdicts, brief(row.get("rationale"), _LONGEST)]
