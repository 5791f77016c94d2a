"""A report as a notebook shows it.

The headline with intervals, states, causes, and a link to its page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradestack import Progress, Report, library
from gradestack_plugins.pages.draw import draw_all, plain_text
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.models import with_first_models
from gradestack_plugins.pages.page import page_of
from gradestack_plugins.pages.text import number, percent

_MOST_CAUSES, _MOST_WARNINGS = 5, 3
_SECONDS = 0.2
"""Between two changes of the line."""


def cell(report: Report) -> str:
    """Return a report as HTML that needs no style and no script.

    Every name in it came from data and is escaped.
    """
    page = page_of(with_first_models(report))
    shapes = draw_all(page.first)
    results = [shape for shape in shapes if shape.id == "estimates"]
    figures = [row for section in results for block in section.blocks for row in block.rows]
    blocks_shown = [page.failures.block(_MOST_CAUSES)]
    (causes,) = draw_all(blocks_shown)
    counts = [(line.name.text, line.samples) for line in causes.lines]
    if causes.rest:
        counts.append(("all other causes", causes.rest))
    lines = [(name, number(count), percent(count, causes.total)) for name, count in counts]
    if report.path is None:
        file = None
    else:
        file = Path(report.path) / "report.html"
    has_page = file is not None and file.is_file()
    template = environment().get_template("notebook.html")
    sentence = plain_text(page.head.sentence)
    note = plain_text(page.head.note)
    warnings = page.warnings[:_MOST_WARNINGS]
    shown = template.render(
        name=report.name,
        sentence=sentence,
        note=note,
        figures=[
            (f"{row.title} {row.model}".strip(), row.value, row.interval, row.note)
            for row in figures
        ],
        causes=lines,
        has_outcome=page.success is not None,
        warnings=warnings,
        page=Path(os.path.relpath(file)).as_posix() if file is not None and has_page else "",
    )
    return shown.rstrip("\n")


def progress() -> Callable[[Progress], None]:
    """Return a function that writes the progress of a run below its cell, in one line."""
    display = library("IPython.display").display
    line: Any = display({"text/plain": "0 samples"}, raw=True, display_id=True)
    shown = [0.0]

    def show(state: Progress) -> None:
        now = time.monotonic()
        if now - shown[0] > _SECONDS or state.share == 1.0:
            shown[0] = now
            if state.share in (None, 1.0):
                share = ""
            else:
                share = f", {state.share:.0%} of the input"
            line.update({"text/plain": f"{number(state.samples)} samples{share}"}, raw=True)

    return show
