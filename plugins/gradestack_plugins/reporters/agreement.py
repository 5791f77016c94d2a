"""Which graders tell the same story: how often their verdicts of a sample agree, and how much of that is chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import attrs

from gradestack import RowIndex, ratio_interval
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.reporters.text import brief, number, percent
from gradestack_plugins.statistics.raters import ac1, alpha, kappa

_PASSED, _LOST = frozenset({"passed", "part"}), frozenset({"lost"})
_NEITHER = ord(" ")
"""Stands for no verdict."""
_ALL_PAIRS = 4
"""Graders up to which each is compared with each; of more, the outcome with each."""
_SAME = 0.9
"""Share of equal verdicts from which on two graders tell the same story."""
_MOST_SAMPLES = 200_000
"""Samples up to which intervals are computed for a page."""


@attrs.frozen
class Pair:
    """Two graders of the same samples."""

    a: str
    b: str
    both: int
    """Samples both have a verdict of."""
    same: str
    interval: str
    kappa: str
    ac1: str
    alpha: str
    only_a: int
    """Samples that pass by ``a`` alone."""
    only_b: int
    story: str
    """``the same``, ``different`` or ``open``: whether nine in ten verdicts are equal, as far as the interval says."""


def agreement_of(header: Mapping[str, Any], summary: Mapping[str, Any], index: RowIndex) -> tuple[Pair, ...]:
    """Return pairs of the graders of a run that has an outcome; none where presets are shown side by side.

    Args:
        header: The run's header.
        summary: Its summary.
        index: The index of its rows.
    """
    graders = [as_map(each) for each in as_list(header.get("components"))]
    presets = sum(bool(as_text(as_map(each.get("options")).get("preset"))) for each in graders)
    outcome, keys = as_text(as_map(summary.get("outcome")).get("grader")), list(index.verdicts.by_grader)
    if presets > 1 or outcome not in keys or len(keys) < 2 or not index.entries:
        return ()
    keys.sort(key=lambda key: key != outcome)
    pairs = combinations(keys, 2) if len(keys) <= _ALL_PAIRS else ((outcome, key) for key in keys[1:])
    verdicts = _verdicts(index)
    return tuple(found for a, b in pairs if (found := _pair(a, b, verdicts, index)) is not None)


def _verdicts(index: RowIndex) -> dict[str, bytes]:
    """Return a letter per sample and grader: P, F, or a space for no verdict."""
    letters = {**dict.fromkeys(_PASSED, "P"), **dict.fromkeys(_LOST, "F")}
    table = "".join(letters.get(state, " ") for state, _ in index.verdicts.marks).ljust(256).encode()
    return {key: bytes(marks.translate(table)) for key, marks in index.verdicts.by_grader.items()}


def _pair(a: str, b: str, verdicts: Mapping[str, bytes], index: RowIndex) -> Pair | None:
    counted = Counter(zip(verdicts[a], verdicts[b], strict=True))
    table = {(chr(x), chr(y)): times for (x, y), times in counted.items() if ord(" ") not in (x, y)}
    both, same = sum(table.values()), sum(times for (x, y), times in table.items() if x == y)
    if not both:
        return None
    low, high = _ends(verdicts[a], verdicts[b], index)
    story = (
        "open" if low is None or high is None or low < _SAME <= high else "the same" if low >= _SAME else "different"
    )
    return Pair(
        brief(a, 80),
        brief(b, 80),
        both,
        percent(same, both),
        "" if low is None or high is None else f"{100 * low:.1f} – {100 * high:.1f}%",
        number(kappa(table)),
        number(ac1(table)),
        number(alpha(dict(table.items()), "nominal")),
        table.get(("P", "F"), 0),
        table.get(("F", "P"), 0),
        story,
    )


def _ends(a: bytes, b: bytes, index: RowIndex) -> tuple[float | None, float | None]:
    """Return the ends of the interval of the share of equal verdicts, clustered by task."""
    if len(a) > _MOST_SAMPLES:
        return None, None
    both, same = ([0] * len(index.names) for _ in range(2))
    for task, x, y in zip(index.verdicts.tasks, a, b, strict=True):
        if _NEITHER not in (x, y):
            both[task] += 1
            same[task] += x == y
    found = ratio_interval(Counter(zip(both, same, strict=True)))
    return found.get("low"), found.get("high")
