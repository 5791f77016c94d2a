"""The model of a run's pages, made once and shared by all that show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from gradestack import Report, RowIndex
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.reporters.agreement import Pair, agreement_of
from gradestack_plugins.reporters.index import index_of
from gradestack_plugins.reporters.overview import Overview, overview
from gradestack_plugins.reporters.panels import Asked, asked, says_left_out


@attrs.frozen
class Page:
    """What pages show of a run beside single samples.

    Attributes:
        index: The index of its rows.
        view: Everything made of summary, header and index.
        folded: Keys of graders that declare a preset and are compared with the outcome grader; their figures and
            reasons are folded.
        panels: What plugins show of the run, below the overview or on pages of their own.
        agreement: How far the verdicts of other graders agree.
    """

    index: RowIndex
    view: Overview
    folded: frozenset[str]
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
    others, pairs = _compared(header, summary, index), agreement_of(header, summary, index)
    view = overview(report, index, others)
    view = attrs.evolve(view, warnings=tuple(each for each in view.warnings if not says_left_out(each)))
    panels = asked(report.panels, ("overview", "page"), report)
    page = Page(index, view, others, panels, pairs)
    _known[index] = (report, page)
    return page


def _compared(header: Mapping[str, Any], summary: Mapping[str, Any], index: RowIndex) -> frozenset[str]:
    """Return the keys of graders that declare a preset beside the outcome grader; none of fewer than two."""
    graders = map(as_map, as_list(header.get("components")))
    declared = {as_text(each.get("key")) for each in graders if as_text(as_map(each.get("options")).get("preset"))}
    known, outcome = index.verdicts.by_grader, as_text(as_map(summary.get("outcome")).get("grader"))
    several = len(declared & known.keys()) > 1 and outcome in known
    return frozenset(declared & known.keys() - {outcome}) if several else frozenset()


def _same(one: Report, other: Report) -> bool:
    return one.summary is other.summary and one.header is other.header and one.panels == other.panels
