"""What a notebook shows of a report.

The headline with intervals, states, causes, and a link to its page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradestack import Progress, Report, library
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.models import with_first_models
from gradestack_plugins.pages.overview import page_of
from gradestack_plugins.pages.text import number, percent

_MOST_CAUSES, _MOST_WARNINGS = 5, 3
_SECONDS = 0.2
"""Between two changes of the line."""


def cell(report: Report) -> str:
    """Return a report as HTML that needs no style and no script.

    Every name in it came from data and is escaped.
    """
    page = page_of(with_first_models(report))
    lead, losses = page.view.lead, page.losses
    causes = [
        (cause.name, number(cause.samples), cause.share) for cause in losses.causes[:_MOST_CAUSES]
    ]
    rest = losses.failed - sum(cause.samples for cause in losses.causes[:_MOST_CAUSES])
    if rest:
        causes.append(("all other causes", number(rest), percent(rest, losses.failed)))
    file = None if report.path is None else Path(report.path) / "report.html"
    shown = (
        environment()
        .get_template("notebook.html")
        .render(
            name=report.name,
            lead=lead,
            figures=[
                (f"{row.title} {row.code}".strip(), row.value + row.unit, row.interval, row.note)
                for row in lead.rows
            ],
            causes=causes,
            has_outcome=page.view.success is not None,
            warnings=page.view.warnings[:_MOST_WARNINGS],
            page=Path(os.path.relpath(file)).as_posix()
            if file is not None and file.is_file()
            else "",
        )
    )
    return shown.rstrip("\n")


def progress() -> Callable[[Progress], None]:
    """Return what writes how far a run is below the cell that runs it, in one line that changes."""
    display = library("IPython.display").display
    line: Any = display({"text/plain": "0 samples"}, raw=True, display_id=True)
    shown = [0.0]

    def show(state: Progress) -> None:
        now = time.monotonic()
        if now - shown[0] > _SECONDS or state.share == 1.0:
            shown[0] = now
            share = "" if state.share in (None, 1.0) else f", {state.share:.0%} of the input"
            line.update({"text/plain": f"{number(state.samples)} samples{share}"}, raw=True)

    return show
