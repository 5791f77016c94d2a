"""Why samples were lost: expected calls by tool, causes; facets, agreement of graders."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from statistics import median, quantiles
from typing import Any

import msgspec

from gradestack import ratio_interval
from gradestack.jsonio import as_map, as_text
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.index import RowIndex, name_of
from gradestack_plugins.pages.tallies import SEPARATOR, Kind, Usage, declared_presets
from gradestack_plugins.pages.text import brief, natural, number, percent
from gradestack_plugins.statistics.agreement import ac1, alpha, kappa

_MOST_LINES, _MOST_CAUSES, _MOST_FACETS, _FEW, _LONGEST = 7, 40, 12, 8, 80
_NEITHER = ord(" ")
"""Stands for no verdict."""
_ALL_PAIRS = 4
"""Graders up to which each is compared with each; of more, the outcome with each."""
_SAME, _WIDE = 0.9, 0.02
"""Share of equal verdicts from which on two graders agree; an interval around it this wide does not say so."""
NOTHING_EXPECTED, OTHER_ORDER = "nothing_expected", "other_order"
"""Traits of samples beside codes of reasons: no call is expected; calls were made in another order than expected."""
_MOST_TRAITS, _LONGEST_CODE = 100, 60
_MOST_SAMPLES = 200_000
"""Samples up to which intervals are computed for a page."""


def funnel_of(index: RowIndex) -> Shape | None:
    """Return what became of expected calls by tool, most lost first; None where no grader pairs calls."""
    tally = index.calls
    if not any(counts.expected for counts in tally.tools.values()):
        return None
    ranked = sorted(tally.tools.items(), key=lambda each: (each[1].right - each[1].expected - each[1].extra, each[0]))
    tools = []
    for name, counts in ranked[:_MOST_LINES]:
        wrong, absent = counts.called - counts.right, counts.expected - counts.called
        parts = {"right": counts.right, "wrong": wrong, "absent": absent}
        widths = {f"{part}_width": round(100 * n / max(1, counts.expected), 2) for part, n in parts.items()}
        parts |= {"extra": counts.extra, "lost": counts.expected - counts.right + counts.extra}
        tools.append(Shape(name=name_of(name), expected=counts.expected, **parts, **widths))
    extra = any(tool.extra for tool in tools)  # of which not every grader speaks
    return Shape(tools=tools, tools_left_out=len(ranked) - len(tools), extra=extra)


class Cause(msgspec.Struct, frozen=True):
    """A cause of lost samples: the code of a reason, a tool it names, or an argument of that."""

    name: str
    path: str
    """As the search takes it after ``cause:``."""
    samples: int
    """Lost samples whose main cause it is."""
    share: str
    """Of all lost samples."""
    width: float
    passed: int
    """Samples that passed although a grader gave this reason."""
    parts: tuple[Cause, ...] = ()


class Losses(msgspec.Struct, frozen=True):
    """Lost samples by their main causes, and those without a verdict by state and reason."""

    lost: int
    explained: int
    """Lost samples with a reason: what the causes sum to."""
    causes: tuple[Cause, ...] = ()
    others: tuple[tuple[str, str, int], ...] = ()
    """State, reason and samples, the most first."""
    main: Mapping[tuple[int, ...], int] = {}
    """Numbers of the reasons of lost samples -> that of their main cause."""


def path_of(kind: Kind) -> tuple[str, ...]:
    """Return code, tool and argument of a reason, as far as it names them."""
    return tuple(filter(None, kind[1:]))


def main_causes(
    kinds: Sequence[Kind], sets: Mapping[tuple[int, ...], int], aside: Collection[str] = ()
) -> dict[tuple[int, ...], int]:
    """Return for each set of reasons of so many lost samples the one that they are counted under.

    Reasons of graders that are only compared (``aside``) stand behind others, and those that name no tool behind
    those that do. Of the rest it is that with the most frequent code, then tool, then argument.
    """
    times: Counter[tuple[str, ...]] = Counter()
    for numbers, count in sets.items():
        for prefix in {prefix for place in numbers for prefix in _prefixes(kinds[place])}:
            times[prefix] += count

    def rank(place: int) -> tuple[Any, ...]:
        kind = kinds[place]
        return (kind[0] in aside, not kind[2], [(-times[each], each) for each in _prefixes(kind)], place)

    return {numbers: min(numbers, key=rank) for numbers in sets if numbers}


def losses_of(index: RowIndex, aside: Collection[str] = ()) -> Losses:
    """Return why samples were lost: each lost sample counts once, under its main cause."""
    kinds = list(index.given.kinds)
    found: Counter[tuple[str, ...]] = Counter()
    passed: Counter[tuple[str, ...]] = Counter()
    others: Counter[tuple[str, str]] = Counter()
    lost = explained = 0
    below = [of.score is not None and of.score < 1 if of.passed is None else not of.passed for of in index.entries]
    sets = Counter(zip(index.given.given, below, [of.state for of in index.entries], strict=True))
    main = main_causes(kinds, {key[0]: n for key, n in sets.items() if key[1:] == (True, "graded")}, aside)
    for (numbers, low, state), count in sets.items():
        if low and state == "graded":
            lost += count
            if numbers:
                explained += count
                found.update(dict.fromkeys(_prefixes(kinds[main[numbers]]), count))
        elif state == "graded":
            passed.update(dict.fromkeys({each for place in numbers for each in _prefixes(kinds[place])}, count))
        else:
            others[state or "skipped", kinds[numbers[0]][1] if numbers else ""] += count
    tree = _causes(found, passed, lost)
    rest = [(state, brief(code, _LONGEST), count) for (state, code), count in others.items()]
    return Losses(lost, explained, tree, tuple(sorted(rest, key=lambda each: (-each[2], each[:2]))), main)


def _prefixes(kind: Kind) -> list[tuple[str, ...]]:
    path = path_of(kind)
    return [path[:size] for size in range(1, len(path) + 1)]


def _causes(
    found: Mapping[tuple[str, ...], int], passed: Mapping[tuple[str, ...], int], lost: int
) -> tuple[Cause, ...]:
    """Return the causes on top of the tree, the most frequent first; every path comes with those above it."""
    below: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in sorted(found, key=lambda path: (-found[path], path)):
        below.setdefault(path[:-1], []).append(path)

    def parts(above: tuple[str, ...]) -> tuple[Cause, ...]:
        return tuple(
            Cause(
                name=brief(path[-1], _LONGEST),
                path=SEPARATOR.join(brief(part, _LONGEST) for part in path),
                samples=found[path],
                share=percent(found[path], lost),
                width=round(100 * found[path] / lost, 2),
                passed=passed.get(path, 0),
                parts=parts(path),
            )
            for path in below.get(above, ())[:_MOST_CAUSES]
        )

    return parts(())


def traits_of(index: RowIndex, base: str) -> dict[str, list[int]]:
    """Return the samples of every code that the outcome grader gave, and of the two traits beside these."""
    kinds, found = list(index.given.kinds), dict[str, list[int]]()
    codes = {
        numbers: sorted({kinds[number][1][:_LONGEST_CODE] for number in numbers if kinds[number][0] == base})
        for numbers in set(index.given.given)
    }
    more = [(trait, set(of)) for trait, of in ((NOTHING_EXPECTED, index.quiet), (OTHER_ORDER, index.verdicts.turned))]
    for position, numbers in enumerate(index.given.given):
        for trait in sorted({*codes[numbers], *(trait for trait, of in more if position in of)}):
            if trait in found or len(found) < _MOST_TRAITS:
                found.setdefault(trait, []).append(position)
    return found


def took_of(index: RowIndex) -> list[Shape]:
    """Return what the samples of each model took, as texts, "" where no sample recorded it; no line where none did.

    Cost of a run, cost of all its runs by success, tokens of a run, median and 95th percentile of seconds.
    """
    rows: dict[str, list[tuple[Usage, bool]]] = {}
    for entry, usage in zip(index.entries, index.usage, strict=True):
        if usage is not None:
            rows.setdefault(entry.model, []).append((usage, entry.passed is True))
    found = []
    for model, held in rows.items():
        costs = [usage.cost_usd for usage, _ in held if usage.cost_usd is not None]
        tokens = [usage.tokens for usage, _ in held if usage.tokens is not None]
        seconds = [usage.seconds for usage, _ in held if usage.seconds is not None]
        solved = sum(passed for usage, passed in held if usage.cost_usd is not None)
        late = quantiles(seconds, n=20, method="inclusive")[18] if len(seconds) > 1 else sum(seconds)
        if costs or tokens or seconds:
            found.append(
                Shape(
                    model=name_of(model),
                    cost=f"${_figures(math.fsum(costs) / len(costs))}" if costs else "",
                    success=f"${_figures(math.fsum(costs) / solved)}" if solved else "",
                    tokens=number(round(Fraction(sum(tokens), len(tokens)))) if tokens else "",  # beyond any float, too
                    seconds=f"{_figures(median(seconds))} / {_figures(late)} s" if seconds else "",
                )
            )
    return found


def _figures(value: float) -> str:
    """Return three digits of a number."""
    return f"{float(f'{value:.3g}'):,.10g}"


def facets_of(index: RowIndex) -> list[Shape]:
    """Return the facets that group samples, each with the successes among the samples of each value."""
    found = []
    for name, values in sorted(index.facets.counts().items(), key=lambda item: natural(item[0])):
        lines = []
        for value, counts in sorted(values.items(), key=lambda item: natural(item[0])):
            known = counts.passed + counts.failed
            width = round(100 * counts.passed / known, 2) if known else 0.0
            others = counts.samples - known
            lines.append(Shape(value=brief(value, 80), passed=counts.passed, of=known, others=others, width=width))
        found.append(Shape(name=brief(name, 80), lines=lines, few=len(lines) <= _FEW))
    return found[:_MOST_FACETS]


def agreement_of(header: Mapping[str, Any], summary: Mapping[str, Any], index: RowIndex) -> list[Shape]:
    """Return pairs of the graders of a run that has an outcome; none where presets are shown side by side."""
    outcome, keys = as_text(as_map(summary.get("outcome")).get("grader")), list(index.verdicts.by_grader)
    if len(declared_presets(header)) > 1 or outcome not in keys or len(keys) < 2 or not index.entries:
        return []
    keys.sort(key=lambda key: key != outcome)
    pairs = combinations(keys, 2) if len(keys) <= _ALL_PAIRS else ((outcome, key) for key in keys[1:])
    letters = {"passed": "P", "part": "P", "lost": "F"}
    table = "".join(letters.get(state, " ") for state, _ in index.verdicts.marks).ljust(256).encode()
    verdicts = {key: bytes(marks.translate(table)) for key, marks in index.verdicts.by_grader.items()}
    return [found for a, b in pairs if (found := _pair(a, b, verdicts, index)) is not None]


def _pair(a: str, b: str, verdicts: Mapping[str, bytes], index: RowIndex) -> Shape | None:
    times = Counter(zip(verdicts[a], verdicts[b], strict=True))
    table = {(chr(x), chr(y)): count for (x, y), count in times.items() if _NEITHER not in (x, y)}
    both, same = sum(table.values()), sum(count for (x, y), count in table.items() if x == y)
    if not both:
        return None
    low, high = _ends(verdicts[a], verdicts[b], index)
    unclear = low is None or high is None or (low < _SAME <= high and high - low > _WIDE)
    unclear = unclear and len(index.entries) <= _MOST_SAMPLES
    return Shape(
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
        agree="too few samples to tell" if unclear else "yes" if same >= _SAME * both else "no",
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
