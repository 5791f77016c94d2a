"""The model of a run's pages, made once and shared by all that show it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import attrs

from gradestack import Report, RowIndex
from gradestack_plugins.reporters.agreement import Pair, agreement_of
from gradestack_plugins.reporters.index import index_of
from gradestack_plugins.reporters.overview import Overview, overview
from gradestack_plugins.reporters.presets import Presets, presets_of


@attrs.frozen
class Page:
    """What pages show of a run beside single samples.

    Attributes:
        index: The index of its rows.
        view: Everything made of summary, header and index.
        presets: What graders that declare a preset say, side by side; None where there are fewer than two.
        agreement: How far the verdicts of other graders agree.
    """

    index: RowIndex
    view: Overview
    presets: Presets | None
    agreement: tuple[Pair, ...]


_known: WeakKeyDictionary[RowIndex, tuple[Report, Page]] = WeakKeyDictionary()


def page_of(report: Report) -> Page:
    """Return the model of a report's pages; the same one for every reporter of a run."""
    index = index_of(report)
    known = _known.get(index)
    if known is not None and known[0].summary is report.summary and known[0].header is report.header:
        return known[1]
    header, summary = report.header, report.summary
    pairs = agreement_of(header, summary, index)
    page = Page(index, overview(report, index), presets_of(header, summary, index), pairs)
    _known[index] = (report, page)
    return page
