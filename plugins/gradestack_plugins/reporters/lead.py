"""The first screen of a page: what the run comes to, and what to know before using it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from gradestack import RowIndex
from gradestack.jsonio import as_count, as_map
from gradestack_plugins.reporters.estimate_rows import EstimateRow, confidence_of, rows_of
from gradestack_plugins.reporters.findings import Finding, Opposed, findings, opposed
from gradestack_plugins.reporters.funnel import Funnel, funnel_of
from gradestack_plugins.reporters.headline import Success, words_of
from gradestack_plugins.reporters.lede import Part, made_of, sentence, states_of
from gradestack_plugins.reporters.reliability import reliability_of
from gradestack_plugins.reporters.taskmap import TaskMap, about, maps_of


@attrs.frozen
class Lead:
    """The first screen: what the run comes to, and what to know before using it."""

    sentence: tuple[Part, ...]
    made_of: str
    states: tuple[tuple[str, int], ...]
    """Samples by state of the outcome grader, else of the main one."""
    confidence: str
    rows: tuple[EstimateRow, ...]
    findings: tuple[Finding, ...]
    opposed: Opposed | None
    """How the main scores go with the outcome, where nothing else is to be said."""
    about_tasks: tuple[Part, ...]
    maps: tuple[TaskMap, ...]
    funnel: Funnel | None


def lead_of(
    summary: Mapping[str, Any], index: RowIndex, success: Success | None, main: str, aside: Collection[str] = ()
) -> Lead:
    """Return the first screen of a run.

    Args:
        summary: Its summary.
        index: The index of its rows.
        success: Its successes, if it has an outcome.
        main: Key of the main grader, "" without one.
        aside: Keys of graders that are only compared with others.
    """
    words, metrics = words_of(summary), as_map(summary.get("metrics"))
    reliable = reliability_of(index, outcome=success is not None)
    rows = rows_of(summary, success, words, reliable)
    own = success.grader if success is not None else main
    states = as_map(as_map(metrics.get("states")).get(own))
    found = findings(summary, index, success, rows, own, reliable.noun, aside)
    return Lead(
        sentence=sentence(success, words, reliable, rows, as_count(metrics.get("total"))),
        made_of=made_of(summary, reliable),
        states=states_of(states) if states else (),
        confidence=confidence_of(summary),
        rows=rows,
        findings=found,
        opposed=_scores(index, success, main, words),
        about_tasks=about(reliable, words),
        maps=maps_of(index, words, outcome=success is not None),
        funnel=funnel_of(index),
    )


def _scores(index: RowIndex, success: Success | None, main: str, words: Mapping[str, str]) -> Opposed | None:
    return opposed(index, main, words, main) if success is not None and main != success.grader else None
