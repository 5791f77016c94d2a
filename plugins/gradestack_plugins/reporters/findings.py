"""What a reader should know before using the figures: computed, ranked, and only what holds."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from gradestack import RowIndex
from gradestack.jsonio import as_count, as_list, as_map, as_text
from gradestack_plugins.reporters.charts import span
from gradestack_plugins.reporters.estimate_rows import EstimateRow
from gradestack_plugins.reporters.headline import Success
from gradestack_plugins.reporters.lede import Part
from gradestack_plugins.reporters.losses import loss_of
from gradestack_plugins.reporters.phrases import behind, counted, one, those
from gradestack_plugins.reporters.text import brief, number, percent

_MOST = 3
_LOST_INPUT, _UNGRADED = 0.01, 0.01
"""Shares from which unread records and ungraded samples are said."""
_NO_DIFFERENCE, _ENOUGH = 0.05, 10
"""A grader whose means differ by less between successes and the others, over so many samples each, tells them not."""


@attrs.frozen
class Bar:
    """One line of a back-to-back chart: a range of scores, and the samples there."""

    label: str
    left: int
    right: int
    left_width: float
    """Percent of the widest bar."""
    right_width: float


@attrs.frozen
class Opposed:
    """Scores of one grader, successes on the left, the others on the right."""

    name: str
    left: str
    right: str
    bars: tuple[Bar, ...]


@attrs.frozen
class Finding:
    """One finding."""

    parts: tuple[Part, ...]
    chart: Opposed | None = None
    more: str = ""
    link: str = ""
    """Id on the page that has the details."""
    kinds: tuple[int, ...] = ()
    """Numbers of the kinds of reasons that the lost samples it is about have one of."""


def findings(
    summary: Mapping[str, Any],
    index: RowIndex,
    success: Success | None,
    rows: Sequence[EstimateRow],
    main: str,
    noun: str,
    aside: Collection[str] = (),
) -> tuple[Finding, ...]:
    """Return the findings of a run, the gravest first.

    Args:
        summary: Its summary.
        index: The index of its rows.
        success: Its successes, if it has an outcome.
        rows: The figures it is summed up by.
        main: Key of the grader whose states are shown.
        noun: What its samples are, ``runs`` or ``samples``.
        aside: Keys of graders that are only compared with others.
    """
    words = _words(summary)
    unrelated = _unrelated(index, success, words, _names(summary), noun)
    losses = _losses(index, success, words, noun, aside)
    found = [*_unread(summary), *_ungraded(summary, main), *unrelated, *losses, *_noise(rows, success)]
    return tuple(found[:_MOST])


def opposed(index: RowIndex, key: str, words: Mapping[str, str], name: str) -> Opposed | None:
    """Return how the scores of one grader go with the outcome; None where they are 0 and 1 only, or all on one side."""
    scores = index.scores.get(key)
    sides = [index.by_outcome.get((key, passed)) for passed in (True, False)]
    if scores is None or not scores.fractional or None in sides:
        return None
    left, right = (each.bins for each in sides if each is not None)
    edges = scores.edges
    labels = [*(f"{low:g}–{high:g}" for low, high in itertools.pairwise(edges)), "1"]
    lines = list(zip(labels, left.counts, right.counts, strict=True))[::-1]
    if left.above or right.above:
        lines.insert(0, (span(1.0, None).replace("≥", ">"), left.above, right.above))
    if left.below or right.below:
        lines.append((span(None, 0.0), left.below, right.below))
    top = max(max(ours, theirs) for _, ours, theirs in lines) or 1
    bars = tuple(
        Bar(label, ours, theirs, round(100 * ours / top, 2), round(100 * theirs / top, 2))
        for label, ours, theirs in lines
    )
    return Opposed(name, words["passed"], words["lost"], bars)


def _words(summary: Mapping[str, Any]) -> Mapping[str, str]:
    own = as_map(as_map(summary.get("outcome")).get("words"))
    return {"passed": brief(as_text(own.get("passed")), 40), "lost": brief(as_text(own.get("failed")), 40)}


def _names(summary: Mapping[str, Any]) -> Mapping[str, str]:
    """Return grader keys by what the headline calls their mean."""
    figures = map(as_map, as_list(as_map(summary.get("headline")).get("figures")))
    named = {as_text(each.get("figure")): brief(as_text(each.get("label")), 60) for each in figures}
    means = {path.removesuffix(".mean"): label for path, label in named.items() if path.endswith(".mean")}
    return {key: label for key, label in means.items() if "." not in key}


def _unread(summary: Mapping[str, Any]) -> Iterator[Finding]:
    bad = as_count(as_map(summary.get("bad_records")).get("count"))
    every = bad + as_count(as_map(summary.get("metrics")).get("total"))
    if every and bad / every > _LOST_INPUT:
        parts = (
            Part(f"{number(bad)} of {counted(every, 'records')} could not be read", "b"),
            Part(f" ({percent(bad, every)}). No figure contains them."),
        )
        yield Finding(parts, link="problems")


def _ungraded(summary: Mapping[str, Any], main: str) -> Iterator[Finding]:
    states = as_map(as_map(as_map(summary.get("metrics")).get("states")).get(main))
    failed, missing = as_count(states.get("failed")), as_count(states.get("missing"))
    every = as_count(states.get("graded")) + failed + missing
    if every and (failed + missing) / every > _UNGRADED:
        kinds = " and ".join(
            f"{number(count)} {name}" for name, count in (("failed", failed), ("missing", missing)) if count
        )
        has = "has" if failed + missing == 1 else "have"
        parts = (
            Part(f"{number(failed + missing)} of {counted(every, 'samples')} {has} no grade", "b"),
            Part(f" by {brief(main, 60)}: {kinds}. Means over what was graded leave them out."),
        )
        yield Finding(parts, link="samples")


def _unrelated(
    index: RowIndex, success: Success | None, words: Mapping[str, str], names: Mapping[str, str], noun: str
) -> Iterator[Finding]:
    if success is None or success.many:
        return
    for key in sorted({key for key, _ in index.by_outcome} - {success.grader}):
        ours, theirs = index.by_outcome.get((key, True)), index.by_outcome.get((key, False))
        if ours is None or theirs is None:
            continue
        high, low = ours.scores.mean, theirs.scores.mean
        if min(ours.scores.count, theirs.scores.count) < _ENOUGH or high is None or low is None:
            continue
        if high - low < _NO_DIFFERENCE:
            name = names.get(key) or brief(key, 60)
            parts = (
                Part(f"{name} does not tell {_either(words, noun)} here:", "b"),
                Part(
                    f" it averages {high:.2f} in the {number(ours.scores.count)} {behind(words['passed'])}"
                    f" and {low:.2f} in the {number(theirs.scores.count)} {behind(words['lost'])}."
                ),
            )
            yield Finding(parts, opposed(index, key, words, name), _quiet(index, words, noun), "samples")


def _either(words: Mapping[str, str], noun: str) -> str:
    """Return ``solved from not solved runs``."""
    passed, lost = (those(words[name], noun) for name in ("passed", "lost"))
    both = all(each.endswith(f" {noun}") for each in (passed, lost))
    return f"{passed.removesuffix(f' {noun}') if both else passed} from {lost}"


def _quiet(index: RowIndex, words: Mapping[str, str], noun: str) -> str:
    """Return what samples that expect no call have to do with it, "" when nothing."""
    entries = [index.entries[position] for position in index.quiet]
    lost = sum(entry.passed is True and entry.score == 0 for entry in entries)
    if not lost:
        return ""
    tasks = len({(entry.model, entry.id) for entry in entries})
    every = f"{counted(tasks, 'tasks')} ({counted(len(entries), noun)}) {'expects' if tasks == 1 else 'expect'} no call"
    ones = those(words["passed"], one(noun) if lost == 1 else noun)
    told = f"{number(lost)} {ones} {'scores' if lost == 1 else 'score'} 0"
    return f"{every} at all: any call counts against {'it' if tasks == 1 else 'them'}, so {told}."


def _losses(
    index: RowIndex, success: Success | None, words: Mapping[str, str], noun: str, aside: Collection[str]
) -> Iterator[Finding]:
    """Yield what most lost samples have in common."""
    loss = None if success is None or success.many else loss_of(index, aside)
    if loss is None:
        return
    of = f"{number(loss.lost)} of {number(loss.of_lost)} {those(words['lost'], noun)}"
    tool = brief(loss.tool, 60)
    head = f"{tool}.{brief(loss.argument, 60)} is wrong in {of}" if loss.argument else f"{tool} goes wrong in {of}"
    others = (
        f", and in {number(loss.passed)} of {number(loss.of_passed)} {behind(words['passed'])}"
        if loss.of_passed
        else ""
    )
    yield Finding((Part(head, "b"), Part(f" by {brief(loss.grader, 60)}{others}.")), link="samples", kinds=loss.kinds)


def _noise(rows: Sequence[EstimateRow], success: Success | None) -> Iterator[Finding]:
    """Yield that two models' first figure does not tell them apart, where each is in the other's interval."""
    if success is None or not success.many:
        return
    first = [row for row in rows if row.title == rows[0].title]
    if len(first) != 2:
        return
    one, two = first
    if None in (one.low, one.high, two.low, two.high, one.at, two.at):
        return
    if all(a.low <= b.at <= a.high for a, b in ((one, two), (two, one))):  # type: ignore[operator]
        parts = (
            Part(f"{one.title} does not tell {one.code} from {two.code}:", "b"),
            Part(
                " the figure of each lies in the interval of the other. gradestack compare looks at them task by task."
            ),
        )
        yield Finding(parts)
