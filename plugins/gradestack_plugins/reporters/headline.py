"""The headline of a run: how many samples are a success, in the words of its stack, and the figures it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from gradestack.jsonio import as_count, as_list, as_map, as_text
from gradestack_plugins.reporters.blocks import Figure
from gradestack_plugins.reporters.estimates import interval_text, short_interval
from gradestack_plugins.reporters.text import brief, number, percent

_WORDS = {
    "lost": "not passed",
    "graded": "graded",
    "error": "broken",
    "missing": "missing",
    "skipped": "skipped",
    "passed": "passed",
}
_LONGEST_WORD = 40
_MOST_OF_A_MAP = 8
"""Figures of a map that are shown; of more, the first and the last are."""


@attrs.frozen
class Success:
    """How many samples are a success."""

    passed: int
    of: int
    """Samples the outcome grader graded."""
    share: str
    rule: str
    """What decided."""
    models: Mapping[str, tuple[int, int]]
    """Model -> samples that are a success, and that are not."""


def success_of(summary: Mapping[str, Any]) -> Success | None:
    """Return the successes of a summary; None where the run has no outcome."""
    outcome = as_map(summary.get("outcome"))
    if not outcome:
        return None
    passed = as_count(outcome.get("passed"))
    of = passed + as_count(outcome.get("failed"))
    models = map(as_map, as_list(outcome.get("per_model")))
    return Success(
        passed=passed,
        of=of,
        share=percent(passed, of) if of else "",
        rule=brief(as_text(outcome.get("rule")), 200),
        models={
            as_text(each.get("model_name")): (as_count(each.get("passed")), as_count(each.get("failed")))
            for each in models
        },
    )


def words_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the words for what may become of a sample, those for success and its opposite as the run has them."""
    own = as_map(as_map(summary.get("outcome")).get("words"))
    passed, failed = (brief(as_text(own.get(name)), _LONGEST_WORD) for name in ("passed", "failed"))
    return {**_WORDS, "passed": passed or _WORDS["passed"], "lost": failed or _WORDS["lost"]}


def figures_of(summary: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Return the figures of a summary's headline, those of several models one after the other."""
    found = []
    for entry in map(as_map, as_list(as_map(summary.get("headline")).get("figures"))):
        label, models = brief(as_text(entry.get("label")), 80), as_map(entry.get("models"))
        if models:
            found += [
                _figure(f"{label}, {brief(name, 80) or '(no name)'}", as_map(each)) for name, each in models.items()
            ]
        else:
            found.append(_figure(label, entry))
    return tuple(found)


def _figure(label: str, entry: Mapping[str, Any]) -> Figure:
    value = entry.get("value")
    if isinstance(value, Mapping):
        intervals = as_map(entry.get("interval"))
        shown = [f"{key}: {number(each)} {_ends(intervals.get(key))}".rstrip() for key, each in value.items()]
        if len(shown) > _MOST_OF_A_MAP:
            shown = [shown[0], "…", shown[-1]]
        return Figure(label, brief(", ".join(shown), 400), plain=True)
    if value is None:
        return Figure(label, number(None), note=brief(as_text(entry.get("reason")), 200), defined=False)
    return Figure(label, number(value), interval=interval_text({"interval": entry.get("interval")}))


def _ends(interval: Any) -> str:
    return short_interval({"interval": as_map(interval)})
