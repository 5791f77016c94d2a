"""The check of panels: shown of a run as it is, and of one with hostile texts."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any

from gradestack import Report
from gradestack.jsonio import dumps
from gradestack_plugins.pages.blocks import Panel
from gradestack_plugins.pages.draw import draw_block

_HOSTILE = "\"'><x-hostile onclick=x>"
"""Behind every text of a run; where it is not escaped the page has such an element."""
_FIXED = {
    "state",
    "outcome",
    "status",
    "role",
    "code",
    "category",
    "pointer",
    "type",
    "tool_call_id",
    "source",
}
"""Keys of rows whose texts are words of the program."""
_NAMES = {"id", "model_name", "label", "gold", "subject", "name"}
"""Keys of rows whose texts may stand in the summary, too."""
_ROWS = 20
_Mark = Callable[[str, str], str]
"""Gives a text and the key it stands at, ``KEY:`` for a key below KEY, what stands in its place."""


def _marked(value: Any, mark: _Mark, fixed: Collection[str] = (), key: str = "") -> Any:
    if isinstance(value, Mapping):
        marked = {}
        for name, part in value.items():
            marked[name] = part if name in fixed else _marked(part, mark, fixed, name)
        return {mark(name, f"{key}:"): part for name, part in marked.items()}
    if isinstance(value, list | tuple):
        return [_marked(part, mark, fixed, key) for part in value]
    return mark(value, key) if isinstance(value, str) else value


def _marked_run(report: Report, comparison: Any, mark: str) -> tuple[Report, Any]:
    """Return the first rows of a run and a comparison with something behind every text."""
    graders = {
        key for part in ("by_metric", "aggregates") for key in report.metrics.get(part) or {}
    }
    aggregates = report.metrics.get("aggregates")
    graders = graders.union(*(aggregates or {}).values())
    names = set[str]()

    def of_rows(text: str, key: str) -> str:
        if text in graders or (key.endswith(":") and key != "arguments:"):
            return text
        if key in _NAMES:
            names.add(text)
        return f"{text}{mark}"

    def of_figures(text: str, _: str) -> str:
        if text in names:
            return f"{text}{mark}"
        return text

    rows = []
    for row in islice(report.rows() if report.has_rows else (), _ROWS):
        rows.append(_marked(row, of_rows, _FIXED))
    file = io.BytesIO("".join(f"{dumps(row)}\n" for row in rows).encode("utf-8", "replace"))
    summary, data = (_marked(part, of_figures) for part in (report.summary, comparison))
    return Report(path=None, header=report.header, summary=summary, row_buffer=file), data


def check_panel(
    panel: Panel, report: Report, *, comparison: Mapping[str, Any] | None = None
) -> None:
    """Check that a panel shows something of a run, the same twice, and changes nothing.

    It is asked again with markup in every text of the run, of which it must not raise either.

    Args:
        panel: The panel.
        report: A finished run it has something to show of.
        comparison: Content of comparison.json, for a panel of comparisons.

    Raises:
        AssertionError: It says what is wrong.
    """
    named = f"panel {panel.__name__!r}"
    is_compared = panel.place == "compare"
    assert comparison is not None or not is_compared, (
        f"{named} is one of comparisons: hand over the content of one"
    )
    for mark in ("", _HOSTILE):
        marked, data = _marked_run(report, comparison, mark)
        abouts = [data] if is_compared else [marked]
        if panel.place == "sample":
            abouts = list(marked.rows())
        shown = []
        for about in abouts:
            before = _content(about)
            first = _draw_panel(panel, about)
            second = _draw_panel(panel, about)
            what = "comparison" if is_compared else "run"
            assert _content(about) == before, f"{named} changed the {what}"
            assert repr(first) == repr(second), f"{named}: the same {what} gave different blocks"
            shown += first
        assert shown or mark, f"{named} shows nothing of this run"


def _content(about: Any) -> str:
    """Return a panel's input as a text to compare."""
    return dumps([about.summary, about.header] if isinstance(about, Report) else about)


def _draw_panel(panel: Panel, about: Any) -> list[Any]:
    """Draw the blocks of a panel."""
    blocks = panel(about) or ()
    return [shape for block in blocks for shape in draw_block(block)]
