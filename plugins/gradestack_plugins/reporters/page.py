"""The model of a run's pages, made once and shared by all that show it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import attrs

from gradestack import Report, RowIndex
from gradestack_plugins.reporters.agreement import Pair, agreement_of
from gradestack_plugins.reporters.index import index_of
from gradestack_plugins.reporters.overview import Overview, overview
from gradestack_plugins.reporters.panels import Asked, asked, says_left_out
from gradestack_plugins.reporters.presets import Presets, presets_of


@attrs.frozen
class Page:
    """What pages show of a run beside single samples.

    Attributes:
        index: The index of its rows.
        view: Everything made of summary, header and index.
        presets: What graders that declare a preset say, side by side; None where there are fewer than two.
        panels: What plugins show of the run, below the overview or on pages of their own.
        agreement: How far the verdicts of other graders agree.
    """

    index: RowIndex
    view: Overview
    presets: Presets | None
    panels: Asked
    agreement: tuple[Pair, ...]


_known: WeakKeyDictionary[RowIndex, tuple[Report, Page]] = WeakKeyDictionary()


def page_of(report: Report) -> Page:
    """Return the model of a report's pages; the same one for every reporter of a run."""
    index = index_of(report)
    known = _known.get(index)
    if known is not None and _same(known[0], report):
        return known[1]
    header, summary = report.header, report.summary
    presets, pairs = presets_of(header, summary, index), agreement_of(header, summary, index)
    view = overview(report, index, presets.others if presets else ())
    view = attrs.evolve(view, warnings=tuple(each for each in view.warnings if not says_left_out(each)))
    panels = asked(report.panels, ("overview", "page"), report)
    page = Page(index, view, presets, panels, pairs)
    _known[index] = (report, page)
    return page


def _same(one: Report, other: Report) -> bool:
    return one.summary is other.summary and one.header is other.header and one.panels == other.panels
