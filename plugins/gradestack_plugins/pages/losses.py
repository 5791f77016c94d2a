"""Why samples were lost: expected calls by tool, causes; facets, agreement of graders."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from statistics import median, quantiles
from typing import Any, NamedTuple

import msgspec

from gradestack import (
    Cause,
    CauseKind,
    declared_presets,
    find_causes,
    is_failed,
    most_often,
    ratio_interval,
)
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.index import RowIndex, name_of
from gradestack_plugins.pages.tallies import SEPARATOR, Usage, sum_over
from gradestack_plugins.pages.text import brief, natural, number, percent
from gradestack_plugins.statistics.agreement import ac1, alpha, kappa

_MOST_TOOLS, _MOST_CAUSES, _MOST_FACETS, _FEW, _LONGEST = 500, 12, 12, 8, 80
_MOST_TOOLS_SHOWN, _MOST_ARGUMENTS = 8, 4
"""Parts of a cause, and of such a part, that are shown; samples of the others are counted."""
_ALL_PAIRS = 4
"""Graders up to which each is compared with each; of more, the outcome with each."""
_SAME, _WIDE = 0.9, 0.02
"""Share of equal verdicts from which on two graders agree.

An interval around it this wide does not say so.
"""
NOTHING_EXPECTED, OTHER_ORDER = "nothing_expected", "other_order"
"""Traits of samples beside codes of reasons: no call is expected.

Calls were made in another order than expected.
"""
_MOST_TRAITS, _LONGEST_CODE = 100, 60
_MOST_SAMPLES = 200_000
"""Samples up to which intervals are computed for a page."""


def funnel_of(index: RowIndex) -> Shape | None:
    """Return what became of expected calls by tool, most lost first.

    None where no grader pairs calls.
    """
    known = index.calls.tools
    if not any(counts.expected for counts in known.values()):
        return None
    ranked = sorted(
        known.items(), key=lambda each: (each[1].right - each[1].expected - each[1].extra, each[0])
    )
    tools = [
        Shape(name=name_of(name), **msgspec.structs.asdict(counts))
        for name, counts in ranked[:_MOST_TOOLS]
    ]
    for tool in tools:
        tool.wrong, tool.absent = tool.called - tool.right, tool.expected - tool.called
    extra = any(tool.extra for tool in tools)  # of which not every grader speaks
    return Shape(tools=tools, left_out=len(ranked) - len(tools), extra=extra)


def losses_of(index: RowIndex, aside: Collection[str] = ()) -> Shape:
    """Return why samples failed: each counts once, under its main cause.

    ``failed`` are samples that did not pass, failed or are missing, what the causes add up to, and
    ``states`` how many of them are what; ``main`` has the main cause for the numbers of their
    reasons; ``others`` are state, reason and number of samples that were skipped, the most first.
    """
    kinds = list(index.given.kinds)
    states = [
        (entry.state if is_failed(entry.state, entry.score, passed=entry.passed) else "")
        for entry in index.entries
    ]
    skipped = [entry.state not in ("graded", "failed", "missing") for entry in index.entries]
    counts = Counter(zip(index.given.given, states, skipped, strict=True))
    failed, passed = Counter[tuple[int, ...]](), Counter[tuple[str, ...]]()
    others = Counter[tuple[str, str]]()
    for (numbers, state, is_skipped), count in counts.items():
        if state:
            failed[numbers] += count
        elif is_skipped:
            reason = brief(kinds[numbers[0]][1], _LONGEST) if numbers else ""
            others["skipped", reason] += count
        else:
            paths = [path for number in numbers for path in _paths(kinds[number])]
            passed.update(dict.fromkeys(paths, count))
    causes = find_causes(kinds, failed, aside, index.given.skipped)
    tools = {*index.calls.tools, *index.searched.tools}
    shown = _Shown(failed.total(), passed, tools)
    rest = sorted(
        ((*named, count) for named, count in others.items()), key=lambda other: (-other[2], other)
    )
    return Shape(
        failed=failed.total(),
        states=Counter(filter(None, states)),
        causes=tuple(shown.cause(cause) for cause in causes.tree[:_MOST_CAUSES]),
        rest=_rest_of(failed.total(), causes.tree, _MOST_CAUSES),
        others=rest,
        main=causes.main,
    )


def _paths(kind: CauseKind) -> list[tuple[str, ...]]:
    """Return cause, tool and argument of a reason, each behind those above it."""
    path = tuple(filter(None, kind[1:]))
    return [path[:size] for size in range(1, len(path) + 1)]


def _rest_of(samples: int, parts: Sequence[Cause], most: int) -> Shape:
    """Return how many parts are not shown, and the samples in none of those that are."""
    shown = sum(part.samples for part in parts[:most])
    return Shape(kinds=max(0, len(parts) - most), samples=samples - shown)


class _Shown(NamedTuple):
    """Makes what pages show of causes."""

    failed: int
    passed: Mapping[tuple[str, ...], int]
    tools: Collection[str]

    def cause(self, cause: Cause, most: int = _MOST_TOOLS_SHOWN) -> Shape:
        """Return what is shown of a cause, or of a part of one.

        ``path`` is as the search takes it after ``cause:``, ``passed`` are samples that passed
        although a grader gave this reason, ``rest`` are samples in none of the ``parts`` shown,
        ``often`` is what the cause is most often about, how often, and in how many samples.
        """
        often = most_often(cause)
        about = "" if often is None else ".".join(brief(part, _LONGEST) for part in often[1])
        tool = cause.parts[0].name if cause.parts else ""
        return Shape(
            name=brief(cause.name, _LONGEST),
            path=SEPARATOR.join(brief(part, _LONGEST) for part in cause.path),
            samples=cause.samples,
            share=percent(cause.samples, self.failed),
            width=round(100 * cause.samples / self.failed, 2),
            passed=self.passed.get(cause.path, 0),
            parts=tuple(self.cause(part, _MOST_ARGUMENTS) for part in cause.parts[:most]),
            kinds=len(cause.parts),
            noun="tools" if tool in self.tools and len(cause.path) == 1 else "values",
            rest=_rest_of(cause.samples if cause.parts else 0, cause.parts, most),
            often=None if often is None else (often[0], about, often[2]),
        )


def traits_of(index: RowIndex, base: str) -> dict[str, list[int]]:
    """Return the samples of every code that the outcome grader gave, and of the two traits beside
    these.
    """
    kinds, found = list(index.given.kinds), dict[str, list[int]]()
    codes = {
        numbers: {
            kinds[number][1].partition(": ")[0][:_LONGEST_CODE]
            for number in numbers
            if kinds[number][0] == base
        }
        for numbers in set(index.given.given)
    }
    quiet, turned = set(index.quiet), set(index.verdicts.turned)
    for position, numbers in enumerate(index.given.given):
        more = [NOTHING_EXPECTED] * (position in quiet) + [OTHER_ORDER] * (position in turned)
        for trait in sorted({*codes[numbers], *more}):
            if trait in found or len(found) < _MOST_TRAITS:
                found.setdefault(trait, []).append(position)
    return found


def took_of(index: RowIndex, models: Mapping[str, tuple[int, int]]) -> list[Shape]:
    """Return what the samples of each model took, as texts, "" where no sample recorded it.

    No line where none did.

    Cost of a run, cost of all its runs by success, tokens of a run, median and 95th percentile of
    seconds. Of several models with costs and verdicts (``models``: successes and others) also the
    share of successes, and whether the model is on the ``frontier``: no other is better for the
    same cost or less, or as good for less.
    """
    rows: dict[str, list[tuple[Usage, bool]]] = {}
    for entry, usage in zip(index.entries, index.usage, strict=True):
        if usage is not None:
            rows.setdefault(entry.model, []).append((usage, entry.passed is True))
    priced: dict[str, tuple[Fraction, float]] = {}
    for model, held in rows.items():
        costs = [usage.cost_usd for usage, _ in held if usage.cost_usd is not None]
        passed, lost = models.get(model, (0, 0))
        if costs and passed + lost:
            priced[model] = Fraction(passed, passed + lost), -sum_over(costs, len(costs))
    unbeaten, best = set[tuple[Fraction, float]](), -math.inf
    for place in sorted(set(priced.values()), reverse=True):  # by share, then by cost
        if place[1] > best:
            unbeaten.add(place)
            best = place[1]
    lines = [_took(model, held) for model, held in rows.items()]
    for line, own in zip(lines, map(priced.get, rows), strict=True):
        line.share, line.frontier = "", False
        if own is not None and len(priced) > 1:
            line.share = percent(own[0].numerator, own[0].denominator)
            line.frontier = own in unbeaten
    return [line for line in lines if line.cost or line.tokens or line.seconds]


def _took(model: str, held: Sequence[tuple[Usage, bool]]) -> Shape:
    costs = [usage.cost_usd for usage, _ in held if usage.cost_usd is not None]
    tokens = [usage.tokens for usage, _ in held if usage.tokens is not None]
    seconds = [usage.seconds for usage, _ in held if usage.seconds is not None]
    solved = sum(passed for usage, passed in held if usage.cost_usd is not None)
    late = quantiles(seconds, n=20, method="inclusive")[18] if len(seconds) > 1 else sum(seconds)
    return Shape(
        model=name_of(model),
        cost=f"${_figures(sum_over(costs, len(costs)))}" if costs else "",
        success=f"${_figures(sum_over(costs, solved))}" if solved else "",
        tokens=number(round(Fraction(sum(tokens), len(tokens))))
        if tokens
        else "",  # beyond any float, too
        seconds=f"{_figures(median(seconds))} / {_figures(late)} s" if seconds else "",
    )


def _figures(value: float) -> str:
    """Return three digits of a number."""
    return f"{float(f'{value:.3g}'):,.10g}"


def facets_of(index: RowIndex) -> list[Shape]:
    """Return the facets that group samples, each with the successes among the samples of each
    value.
    """
    found = []
    for name, values in sorted(index.facets.counts().items(), key=lambda item: natural(item[0]))[
        :_MOST_FACETS
    ]:
        lines = []
        for value, counts in sorted(values.items(), key=lambda item: natural(item[0])):
            known = counts[True] + counts[False]
            width = round(100 * counts[True] / known, 2) if known else 0.0
            lines.append(
                Shape(
                    value=brief(value, 80),
                    passed=counts[True],
                    of=known,
                    others=counts[None],
                    width=width,
                )
            )
        found.append(Shape(name=brief(name, 80), lines=lines, few=len(lines) <= _FEW))
    return found


def agreement_of(
    header: Mapping[str, Any], summary: Mapping[str, Any], index: RowIndex
) -> list[Shape]:
    """Return pairs of the graders of a run that has an outcome.

    None where presets are shown side by side.
    """
    outcome, keys = (
        as_text(as_map(summary.get("outcome")).get("grader")),
        list(index.verdicts.by_grader),
    )
    if (
        len(declared_presets(header)) > 1
        or outcome not in keys
        or len(keys) < 2
        or not index.entries
    ):
        return []
    keys.sort(key=lambda key: key != outcome)
    pairs = (
        combinations(keys, 2) if len(keys) <= _ALL_PAIRS else ((outcome, key) for key in keys[1:])
    )
    letters = {"passed": "P", "part": "P", "lost": "F"}
    table = (
        "".join(letters.get(state, " ") for state, _ in index.verdicts.marks).ljust(256).encode()
    )
    verdicts = {
        key: marks.translate(table).decode() for key, marks in index.verdicts.by_grader.items()
    }
    return [found for a, b in pairs for found in _pair(a, b, verdicts, index.verdicts.tasks)]


def _pair(a: str, b: str, verdicts: Mapping[str, str], tasks: Sequence[int]) -> Iterator[Shape]:
    """Yield how far two graders agree where both have verdicts, with an interval
    clustered by task.
    """
    few, low, high = len(tasks) <= _MOST_SAMPLES, None, None
    times = Counter(zip(verdicts[a], verdicts[b], strict=True))
    table = {pair: count for pair, count in times.items() if " " not in pair}
    both, same = sum(table.values()), sum(count for (x, y), count in table.items() if x == y)
    if few:
        every, equal = Counter[int](), Counter[int]()
        for task, *pair in zip(tasks, verdicts[a], verdicts[b], strict=True):
            every[task] += " " not in pair
            equal[task] += pair in (["P", "P"], ["F", "F"])
        interval = ratio_interval(Counter((count, equal[task]) for task, count in every.items()))
        low, high = interval.get("low"), interval.get("high")
    sure = low is not None and high is not None and (not low < _SAME <= high or high - low <= _WIDE)
    if both:
        yield Shape(
            a=brief(a, 80),
            b=brief(b, 80),
            both=both,
            same=percent(same, both),
            interval="" if low is None or high is None else f"{100 * low:.1f} – {100 * high:.1f}%",
            kappa=number(kappa(table)),
            ac1=number(ac1(table)),
            alpha=number(alpha(dict(table.items()), "nominal")),
            only_a=table.get(("P", "F"), 0),
            only_b=table.get(("F", "P"), 0),
            agree="too few samples to tell"
            if few and not sure
            else "yes"
            if same >= _SAME * both
            else "no",
        )
