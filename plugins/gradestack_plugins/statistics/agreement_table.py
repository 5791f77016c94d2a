"""Agreement of a run's graders, pair by pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from gradestack import Report, declared_presets, ratio_interval
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.statistics.coefficients import ac1, alpha, kappa

_ALL_PAIRS = 4
"""Graders up to which each is compared with each; of more, the outcome with each."""
_SAME, _WIDE = 0.9, 0.02
"""Share of equal verdicts from which on two graders agree; an interval this wide around it says
neither.
"""
_MOST_SAMPLES = 200_000
"""Samples up to which intervals are computed for a page."""
_LETTERS = {"passed": "P", "part": "P", "lost": "F"}


class Agreement(msgspec.Struct, frozen=True):
    """Agreement of two graders over the samples on which both have verdicts."""

    a: str
    b: str
    both: int
    same: float
    """Share of equal verdicts."""
    interval: tuple[float, float] | None
    """Of that share, clustered by task."""
    kappa: float | None
    ac1: float | None
    alpha: float | None
    only_a: int
    """Samples that only the first passes."""
    only_b: int
    agree: str
    """``yes``, ``no``, or that there are too few samples to tell."""


def agreements_of(report: Report) -> list[Agreement]:
    """Return pairs of the graders of a run that has an outcome; none where presets are compared."""
    if not report.has_rows or len(declared_presets(report.header)) > 1:
        return []
    index = index_of(report)
    grader = as_map(report.summary.get("outcome")).get("grader")
    outcome = as_text(grader)
    keys = list(index.verdicts.by_grader)
    if outcome not in keys or len(keys) < 2 or not index.entries:
        return []
    keys.sort(key=lambda key: key != outcome)
    pairs = list(combinations(keys, 2))
    if len(keys) > _ALL_PAIRS:
        pairs = [(outcome, key) for key in keys[1:]]
    letters = [_LETTERS.get(state, " ") for state, _ in index.verdicts.marks]
    table = "".join(letters).ljust(256).encode()
    marks = index.verdicts.by_grader
    verdicts = {key: marks[key].translate(table).decode() for key in keys}
    tasks = index.verdicts.tasks
    return [agreement for a, b in pairs for agreement in _compare(a, b, verdicts, tasks)]


def _compare(
    a: str, b: str, verdicts: Mapping[str, str], tasks: Sequence[int]
) -> Iterator[Agreement]:
    """Yield the agreement of raters ``a`` and ``b``; nothing where no sample has both verdicts.

    ``verdicts`` has a text for each rater, one letter a sample: P, F, or a space without verdict.
    """
    verdict = verdicts[a]
    times = Counter(zip(verdict, verdicts[b], strict=True))
    table = {pair: count for pair, count in times.items() if " " not in pair}
    both = sum(table.values())
    if not both:
        return
    same = table.get(("P", "P"), 0) + table.get(("F", "F"), 0)
    few = len(tasks) <= _MOST_SAMPLES
    ends = None
    if few:
        ends = _interval_of(verdicts[a], verdicts[b], tasks)
    yield Agreement(
        a=a,
        b=b,
        both=both,
        same=same / both,
        interval=ends,
        kappa=kappa(table),
        ac1=ac1(table),
        alpha=alpha(dict(table.items()), "nominal"),
        only_a=table.get(("P", "F"), 0),
        only_b=table.get(("F", "P"), 0),
        agree=_verdict(same, both, ends, few=few),
    )


def _interval_of(a: str, b: str, tasks: Sequence[int]) -> tuple[float, float] | None:
    """Return the interval of the share of equal verdicts, clustered by task."""
    judged = Counter[int]()
    equal = Counter[int]()
    for task, verdict_of_a, verdict_of_b in zip(tasks, a, b, strict=True):
        is_judged = " " not in (verdict_of_a, verdict_of_b)
        judged[task] += is_judged
        equal[task] += is_judged and verdict_of_a == verdict_of_b
    equal_of_judged: Counter[tuple[float, ...]] = Counter()
    equal_of_judged.update((count, equal[task]) for task, count in judged.items())
    interval = ratio_interval(equal_of_judged)
    low = interval.get("low")
    high = interval.get("high")
    if low is None or high is None:
        return None
    return (low, high)


def _verdict(same: int, both: int, ends: tuple[float, float] | None, *, few: bool) -> str:
    is_sure = False
    if ends is not None:
        low, high = ends
        is_sure = not low < _SAME <= high or high - low <= _WIDE
    if few and not is_sure:
        return "too few samples to tell"
    return "yes" if same >= _SAME * both else "no"
