"""Where points were lost: expected calls by tool and argument, reasons, what lost samples share; facets, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from gradestack import ratio_interval
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.index import RowIndex, name_of
from gradestack_plugins.pages.text import brief, natural, number, percent
from gradestack_plugins.statistics.raters import ac1, alpha, kappa

_MOST_LINES, _MOST_FAILURES, _MOST_FACETS, _LONGEST = 7, 40, 12, 80
_ENOUGH = 10
"""Lost samples from which on they are looked at."""
_MOST, _RARER = 0.5, 0.5
"""More than this share of them, and among successes at most this share of that: then it goes with the losses."""
_NEITHER = ord(" ")
"""Stands for no verdict."""
_ALL_PAIRS = 4
"""Graders up to which each is compared with each; of more, the outcome with each."""
_SAME = 0.9
"""Share of equal verdicts from which on two graders agree."""
_MOST_SAMPLES = 200_000
"""Samples up to which intervals are computed for a page."""


class Funnel(msgspec.Struct, frozen=True):
    """Expected calls by tool, most lost first, and arguments, most often wrong first."""

    tools: Sequence[Shape]
    tools_left_out: int
    arguments: Sequence[Shape]
    arguments_left_out: int

    @property
    def extra(self) -> bool:
        """Whether there are extra calls, of which not every grader speaks."""
        return any(tool.extra for tool in self.tools)

    @property
    def worst(self) -> Shape | None:
        """The shown tool that loses many calls and many of its own; None where nothing is lost."""
        losing = [tool for tool in self.tools if tool.lost and tool.expected + tool.extra > 1]
        return max(losing, key=lambda each: each.lost**2 / (each.expected + each.extra), default=None)


def funnel_of(index: RowIndex) -> Funnel | None:
    """Return what became of expected calls; None where no grader pairs calls."""
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
    places = sorted(tally.arguments.items(), key=lambda each: (-each[1], each[0]))
    top = places[0][1] if places else 1
    arguments = [
        Shape(tool=name_of(tool), name=name_of(name), samples=samples, width=round(100 * samples / top, 2))
        for (tool, name), samples in places[:_MOST_LINES]
    ]
    return Funnel(tools, len(ranked) - len(tools), arguments, len(places) - len(arguments))


class Failure(msgspec.Struct, frozen=True):
    """One kind of reason."""

    number: int
    """Its number in the list of samples."""
    grader: str
    code: str
    subject: str
    argument: str
    samples: int
    share: str
    width: float

    @property
    def text(self) -> str:
        """It on one line."""
        about = f"{self.subject}.{self.argument}" if self.argument else self.subject
        return f"{self.code} {about}".strip()


def failures_of(index: RowIndex) -> tuple[tuple[Failure, ...], int]:
    """Return the most frequent kinds of reasons, and how many others there are."""
    tally = index.given
    ranked = sorted(tally.kinds.items(), key=lambda each: (-tally.samples[each[1]], each[0]))
    top = max(tally.samples, default=1)
    found = []
    for kind, place in ranked[:_MOST_FAILURES]:
        samples = tally.samples[place]
        share, width = percent(samples, len(index.entries)), round(100 * samples / top, 2)
        grader, code, subject, argument = (brief(part, _LONGEST) for part in kind)
        found.append(Failure(place, grader, code, subject, argument, samples, share, width))
    return tuple(found), len(ranked) - len(found)


class Loss(msgspec.Struct, frozen=True):
    """What most lost samples have among their reasons."""

    grader: str
    tool: str
    argument: str
    """"" where it is the tool as a whole."""
    lost: int
    of_lost: int
    passed: int
    of_passed: int
    kinds: tuple[int, ...]
    """Numbers of the kinds of these reasons in the list of samples."""


def loss_of(index: RowIndex, aside: Collection[str] = ()) -> Loss | None:
    """Return what most lost samples have in common; an argument goes before a whole tool, then the more frequent.

    None where there are fewer than ten lost samples, nothing is among the reasons of more than half of them, or it is
    among those of successes more than half as often.
    """
    sets: Counter[tuple[bool, tuple[int, ...]]] = Counter()
    for entry, numbers in zip(index.entries, index.given.given, strict=True):
        if entry.passed is not None:
            sets[entry.passed, numbers] += 1
    of = {side: sum(times for (passed, _), times in sets.items() if passed is side) for side in (False, True)}
    if of[False] < _ENOUGH:
        return None
    places = {place: tuple(_places(kind, aside)) for kind, place in index.given.kinds.items()}
    counts: dict[bool, Counter[tuple[str, str, str | None]]] = {False: Counter(), True: Counter()}
    for (passed, numbers), times in sets.items():
        for about in {about for place in numbers for about in places[place]}:
            counts[passed][about] += times
    holding = [
        about
        for about, lost in counts[False].items()
        if lost > _MOST * of[False] and counts[True][about] * of[False] <= _RARER * lost * of[True]
    ]
    if not holding:
        return None
    found = min(holding, key=lambda about: (about[2] is None, -counts[False][about], about[:2], about[2] or ""))
    return Loss(
        grader=found[0],
        tool=found[1],
        argument=found[2] or "",
        lost=counts[False][found],
        of_lost=of[False],
        passed=counts[True][found],
        of_passed=of[True],
        kinds=tuple(place for place, own in sorted(places.items()) if found in own),
    )


def _places(kind: tuple[str, str, str, str], aside: Collection[str]) -> Iterator[tuple[str, str, str | None]]:
    """Yield what a kind of reason is about: its tool, and the argument if it names one."""
    grader, _, tool, argument = kind
    if tool and grader not in aside:
        yield grader, tool, None
        if argument:
            yield grader, tool, argument


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
        found.append(Shape(name=brief(name, 80), lines=lines))
    return found[:_MOST_FACETS]


def agreement_of(header: Mapping[str, Any], summary: Mapping[str, Any], index: RowIndex) -> list[Shape]:
    """Return pairs of the graders of a run that has an outcome; none where presets are shown side by side."""
    graders = [as_map(each) for each in as_list(header.get("components"))]
    presets = sum(bool(as_text(as_map(each.get("options")).get("preset"))) for each in graders)
    outcome, keys = as_text(as_map(summary.get("outcome")).get("grader")), list(index.verdicts.by_grader)
    if presets > 1 or outcome not in keys or len(keys) < 2 or not index.entries:
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
    unclear = low is None or high is None or low < _SAME <= high
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
        agree="too few samples to tell" if unclear else "yes" if low is not None and low >= _SAME else "no",
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
