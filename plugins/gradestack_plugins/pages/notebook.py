"""What a notebook shows of a report: the headline with intervals, states, causes, and a link to its page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

from gradestack import Progress, Report, library
from gradestack_plugins.pages.overview import page_of
from gradestack_plugins.pages.text import clean, number

_MOST_CAUSES, _MOST_WARNINGS = 5, 3
_SECONDS = 0.2
"""Between two changes of the line."""


def cell(report: Report) -> str:
    """Return a report as HTML that needs no style and no script; every name in it came from data and is escaped."""
    page = page_of(report)
    lead, warnings = page.view.lead, page.view.warnings
    found = [f"<p><b>{_text(report.name)}</b> · {_text(''.join(part.text for part in lead.sentence))}</p>"]
    found.append(
        _table(
            ("figure", "value", "interval", "note"),
            (
                (f"{row.title} {row.code}".strip(), f"{row.value}{row.unit}", row.interval, row.note)
                for row in lead.rows
            ),
        )
    )
    states = ", ".join(f"{number(count)} {name}" for name, count in lead.states if count)
    found.append(f"<p>{_text('. '.join(filter(None, (states, lead.confidence))))}</p>")
    if page.losses.causes:
        causes = page.losses.causes[:_MOST_CAUSES]
        found.append(
            _table(("why points were lost", "samples", "share"), ((c.name, number(c.samples), c.share) for c in causes))
        )
    found += [f"<p>⚠ {_text(each)}</p>" for each in warnings[:_MOST_WARNINGS]]
    if report.path is not None and (file := Path(report.path) / "report.html").is_file():
        found.append(
            f'<p><a href="{_text(Path(os.path.relpath(file)).as_posix())}" target="_blank">report.html</a></p>'
        )
    return f'<div class="gradestack">{"".join(found)}</div>'


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


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = "".join(f"<th>{_text(each)}</th>" for each in head)
    lines = "".join(f"<tr>{''.join(f'<td>{_text(each)}</td>' for each in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def _text(text: str) -> str:
    return escape(clean(text))
