"""Why samples failed, and what became of expected calls, as blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

import msgspec

from gradestack import NO_REASON, Cause, CauseKind, find_causes, is_failed, most_often
from gradestack_plugins.pages.blocks import CauseLine, Causes, Cell, Link, Section, Table
from gradestack_plugins.pages.draw import quoted
from gradestack_plugins.pages.index import RowIndex, name_of
from gradestack_plugins.pages.tallies import SEPARATOR, CallCounts
from gradestack_plugins.pages.text import (
    brief,
    cause_text,
    counted,
    number,
    percent,
    state_word,
)

CausePath = tuple[str, ...]
"""Cause, tool and argument, as far as they are named."""
ReasonSet = tuple[int, ...]
"""The reasons of a sample, each by its place among all kinds."""
_LONGEST, _MOST_TOOLS = 80, 100
MOST_CAUSES, _MOST_PARTS, _MOST_ARGUMENTS = 12, 8, 4
"""Causes, parts of a cause and of such a part that are shown; samples of the others are counted."""
_ENDING = attrgetter("state", "score", "passed", "model")
"""How a run ended, and whose it is: of many runs the same."""
_APPLICABLE = ("graded", "failed", "missing")


class Failures(msgspec.Struct, frozen=True):
    """Why samples failed: each counts once, under its main cause."""

    failed: int
    """Samples that did not pass, ended in an error or are missing; what the causes add up to."""
    states: Mapping[str, int]
    """How many of them are what."""
    causes: tuple[Cause, ...]
    lines: tuple[CauseLine, ...]
    """The most frequent causes."""
    rest: int
    """Samples of causes that have no line."""
    others: tuple[tuple[str, str, int], ...]
    """State, reason and number of samples that were skipped, the most first."""
    main: Mapping[ReasonSet, int]
    """The reasons of a sample -> the one it is counted under."""
    by_model: Mapping[tuple[str, str], int] = {}
    """Cause and model -> samples, where there are two models."""

    def block(self, most: int = MOST_CAUSES, *, whole: bool = False) -> Causes:
        """Return the first causes as a block, with their parts where the whole is shown."""
        lines = self.lines[:most]
        total = sum(line.samples for line in lines)
        rest = self.failed - total
        return Causes(lines, self.failed, rest, whole=whole)

    def block_of_two(self, most: int) -> Causes:
        """Return the first causes with how many samples each of two models has."""
        models = {model for _, model in self.by_model}
        first, second = sorted(models)
        lines = []
        causes = self.causes[:most]
        for cause, line in zip(causes, self.lines[:most], strict=True):
            counts = [self.by_model.get((cause.name, model), 0) for model in (first, second)]
            samples = counts[0]
            structs = msgspec.structs.replace(line, samples=samples, samples_b=counts[1])
            lines.append(structs)
        return Causes(lines, self.failed, 0, (name_of(first), name_of(second)))


def failures_of(index: RowIndex, aside: Collection[str] = (), passed_word: str = "") -> Failures:
    """Return why samples of a run failed.

    Args:
        index: The samples.
        aside: Keys of graders whose reasons come after those of others.
        passed_word: The word for samples that are a success.
    """
    kinds = list(index.reasons.kinds)
    failed: Counter[ReasonSet] = Counter()
    passed: Counter[CausePath] = Counter()
    states: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    failed_by_model: Counter[tuple[ReasonSet, str]] = Counter()
    runs = Counter(zip(index.reasons.by_run, map(_ENDING, index.entries), strict=True))
    for (numbers, (state, score, passes, model)), count in runs.items():
        if is_failed(state, score, passed=passes):
            failed[numbers] += count
            states[state] += count
            failed_by_model[numbers, model] += count
        elif state in _APPLICABLE:
            for path in {path for number in numbers for path in _paths(kinds[number])}:
                passed[path] += count
        else:
            skipped[brief(kinds[numbers[0]][1], _LONGEST) if numbers else ""] += count
    causes = find_causes(kinds, failed, aside, index.reasons.skipped)
    by_model: Counter[tuple[str, str]] = Counter()
    if len(set(map(attrgetter("model"), index.entries))) == 2:
        for (numbers, model), count in failed_by_model.items():
            name = kinds[causes.main[numbers]][1] if numbers in causes.main else NO_REASON
            by_model[name, model] += count
    tools = {*index.calls.tools, *index.searched.tools}
    lines = _Lines(passed, tools, passed_word)
    tree = causes.tree[:MOST_CAUSES]
    shown = tuple(lines.line(cause) for cause in tree)
    total = failed.total()
    rest = failed.total() - sum(line.samples for line in shown)
    sorted_reasons = _sorted_reasons(skipped)
    return Failures(
        failed=total,
        states=states,
        causes=causes.tree,
        lines=shown,
        rest=rest,
        others=sorted_reasons,
        main=causes.main,
        by_model=by_model,
    )


def _sorted_reasons(skipped: Mapping[str, int]) -> tuple[tuple[str, str, int], ...]:
    reasons = [(state_word("skipped"), reason, count) for reason, count in skipped.items()]
    return tuple(sorted(reasons, key=lambda entry: (-entry[2], entry)))


def _paths(kind: CauseKind) -> list[CausePath]:
    """Return cause, tool and argument of a reason, each behind those above it."""
    path = tuple(filter(None, kind[1:]))
    return [path[:size] for size in range(1, len(path) + 1)]


class _Lines:
    """Makes the lines of causes."""

    def __init__(self, passed: Mapping[CausePath, int], tools: Collection[str], word: str) -> None:
        self._passed = passed
        self._tools = tools
        self._word = word

    def line(self, cause: Cause, most: int = _MOST_PARTS) -> CauseLine:
        """Return the line of a cause, or of a part of one."""
        often = most_often(cause)
        if often is None:
            about = ""
        else:
            about = ".".join(brief(part, _LONGEST) for part in often[1])
        parts = [self.line(part, _MOST_ARGUMENTS) for part in cause.parts[:most]]
        shown = sum(part.samples for part in parts)
        first = cause.parts[0].name if cause.parts else ""
        is_first_level = len(cause.path) == 1
        is_tool = is_first_level and first in self._tools
        link = self._link(cause)
        about_samples = 0 if often is None else often[2]
        return CauseLine(
            name=link,
            samples=cause.samples,
            often="" if often is None else often[0],
            about=about,
            about_samples=about_samples,
            also=self._also(cause),
            parts=parts,
            kinds=len(cause.parts),
            rest=cause.samples - shown if parts else 0,
            noun="tools" if is_tool else "values",
        )

    def _link(self, cause: Cause) -> Link:
        name = brief(cause.name, _LONGEST)
        if len(cause.path) == 1:
            text = cause_text(name)
        else:
            text = name
        return Link(text, search=f"cause:{quoted(search_path(cause.path))}")

    def _also(self, cause: Cause) -> Link | None:
        """Return a link to the samples that passed although a grader gave the same reason."""
        count = self._passed.get(cause.path, 0)
        if not count:
            return None
        search = f"reason:{quoted(search_path(cause.path))} passed:yes"
        return Link(f"{number(count)} {self._word}", search=search)


def search_path(path: Sequence[str]) -> str:
    """Return a cause, tool and argument as the search takes them."""
    return SEPARATOR.join(brief(part, _LONGEST) for part in path)


def skipped_section(failures: Failures, places: Mapping[str, int]) -> Section | None:
    """Return the samples that were skipped, by reason; None without any.

    Args:
        failures: Why samples failed.
        places: Outcome -> its number on the page.
    """
    if not failures.others:
        return None
    without = "".join(
        str(number_shown) for name, number_shown in places.items() if name != "skipped"
    )
    links = []
    for state, reason, count in failures.others[:20]:
        search = f"reason:{quoted(reason)}" if reason else ""
        if reason:
            text = f"{number(count)} {state}: {cause_text(reason)}"
        else:
            text = f"{number(count)} {state}"
        link = Link(text, search=search, without=without)
        links.append(link)
    return Section("Not graded", links, id="skipped")


def calls_section(index: RowIndex) -> Section | None:
    """Count right, wrong and absent calls by tool, most lost first; None without expected calls."""
    tools = index.calls.tools
    if not any(counts.expected for counts in tools.values()):
        return None
    ranked = sorted(tools, key=lambda name: (-_lost_calls(tools[name]), name))
    has_extra = any(counts.extra for counts in tools.values())
    columns = ["expected", "right", "share right", "wrong arguments", "not called"]
    rows = {}
    for name in ranked[:_MOST_TOOLS]:
        counts = tools[name]
        cells = _cells_of(name, counts)
        rows[name_of(name)] = [*cells, counts.extra] if has_extra else cells
    table = Table([*columns, "extra"] if has_extra else columns, rows, corner="Tool")
    unlisted = _unlisted(len(ranked))
    return Section("Calls by tool", [table], id="calls", note=unlisted)


def _unlisted(tools: int) -> str:
    left_out = tools - _MOST_TOOLS
    if left_out > 0:
        return f"the first {_MOST_TOOLS} of {counted(tools, 'tools')}"
    return ""


def _lost_calls(counts: CallCounts) -> int:
    return counts.expected - counts.right + counts.extra


def _cells_of(name: str, counts: CallCounts) -> list[Cell]:
    absent = counts.expected - counts.called
    expected = f"expected:{quoted(name)}"
    not_called = f"uncalled:{quoted(name)}"
    return [
        _linked(counts.expected, expected),
        counts.right,
        percent(counts.right, counts.expected),
        counts.called - counts.right,
        _linked(absent, not_called),
    ]


def _linked(count: int, search: str) -> Cell:
    return Link(number(count), search=search) if count else 0
