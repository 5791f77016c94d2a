"""What presets say of one run, side by side: their figures, how far they agree, and why they do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack import RowIndex
from gradestack.jsonio import as_list, as_map, as_number, as_text
from gradestack_plugins.reporters.causes import NOTHING_EXPECTED, OTHER_ORDER, harder, silent, softer
from gradestack_plugins.reporters.estimate_rows import scale_of
from gradestack_plugins.reporters.grouping import uncertainty
from gradestack_plugins.reporters.index import name_of
from gradestack_plugins.reporters.text import brief, number, percent

_MOST_KINDS, _LONGEST_NAME = 60, 80
SOFTER, HARDER, SILENT = "softer", "harder", "silent"


@attrs.frozen
class PresetRow:
    """One preset: its average, and how far its verdicts are those of the outcome."""

    key: str
    name: str
    version: str
    value: str
    interval: str
    at: float | None
    low: float | None
    high: float | None
    same: int
    """Samples with the verdict of the outcome."""
    both: int
    """Samples both have a verdict of."""
    share: str
    softer: int
    harder: int
    silent: int
    """Samples without a grade of this preset."""
    own: bool
    """Whether it is the outcome grader."""

    @property
    def program(self) -> str:
        """The first part of its name."""
        return self.name.partition("/")[0]


@attrs.frozen
class Difference:
    """A way in which presets differ from the outcome."""

    kind: str
    """``softer``: they pass more; ``harder``: they pass less; ``silent``: they say nothing."""
    cause: str
    samples: int
    names: tuple[str, ...]
    """Of the presets."""
    position: int
    """Of an example."""
    example: str

    @property
    def programs(self) -> str:
        """The programs these presets are of."""
        return ", ".join(dict.fromkeys(name.partition("/")[0] for name in self.names))


@attrs.frozen
class Presets:
    """Presets side by side."""

    samples: int
    outcome: str
    """Name of what they are compared with, "" in a run without an outcome."""
    rows: tuple[PresetRow, ...]
    differences: tuple[Difference, ...]
    kinds: tuple[tuple[str, ...], ...]
    """Presets that give every sample the same verdict, or none."""
    agreement: tuple[tuple[str, ...], ...]
    """Of each kind with those before it: the share of samples with the same verdict, in percent."""

    @property
    def graded(self) -> bool:
        """Whether any of them has a grade of any sample."""
        return any(row.silent < self.samples for row in self.rows)

    @property
    def others(self) -> frozenset[str]:
        """The keys of the graders beside the outcome grader, none in a run without an outcome."""
        return frozenset(row.key for row in self.rows if not row.own) if self.outcome else frozenset()

    def of(self, kind: str) -> tuple[Difference, ...]:
        """Return the differences of one kind."""
        return tuple(each for each in self.differences if each.kind == kind)


class _Masks:
    """Sets of samples as whole numbers, one byte per sample: intersections cost next to nothing."""

    def __init__(self, index: RowIndex) -> None:
        verdicts = index.verdicts
        self._marks, self._data = verdicts.marks, verdicts.by_grader
        self.traits: dict[str, int] = {}
        for trait, positions in verdicts.traits.items():
            found = bytearray(len(index.entries))
            for position in positions:
                found[position] = 1
            self.traits[trait] = int.from_bytes(found, "little")

    def of(self, key: str, *states: str) -> int:
        """Return the samples that have one of these states by a grader."""
        places = {place for place, (state, _) in enumerate(self._marks) if state in states}
        return self._mask(key, places)

    def others(self, key: str) -> Iterable[tuple[str, str, int]]:
        """Yield state, code and samples of those without a verdict."""
        for place, (state, code) in enumerate(self._marks):
            if state not in {"passed", "part", "lost"}:
                yield state, code, self._mask(key, {place})

    def _mask(self, key: str, places: set[int]) -> int:
        return int.from_bytes(self._data[key].translate(bytes(place in places for place in range(256))), "little")


def presets_of(header: Mapping[str, Any], summary: Mapping[str, Any], index: RowIndex) -> Presets | None:
    """Return the presets of a run side by side, None where fewer than two graders declare one.

    A verdict is the grader's own where it has one, else whether the score is 1.

    Args:
        header: The run's header, which has the options of its graders.
        summary: Its summary.
        index: The index of its rows.
    """
    options = _options(header, index)
    if len(options) < 2 or not index.entries:
        return None
    names = {key: brief(as_text(each["preset"]).partition("@")[0], _LONGEST_NAME) for key, each in options.items()}
    base, masks = as_text(as_map(summary.get("outcome")).get("grader")), _Masks(index)
    base = base if base in index.verdicts.by_grader else ""
    metrics = as_map(summary.get("metrics"))
    found: dict[tuple[str, str], tuple[int, list[str]]] = {}
    for key in options:
        for kind, cause, samples in _differences(masks, base, key, options[key]) if base and key != base else ():
            before, own = found.get((kind, cause), (0, []))
            found[kind, cause] = before | samples, own if names[key] in own else [*own, names[key]]
    passed, graded = {}, {}
    for key in options:
        passed[key] = masks.of(key, "passed", "part")
        graded[key] = passed[key] | masks.of(key, "lost")
    kinds: dict[tuple[int, int], list[str]] = {}
    for key in options:
        kinds.setdefault((passed[key], graded[key]), []).append(names[key])
    return Presets(
        samples=len(index.entries),
        outcome=names.get(base) or brief(base, _LONGEST_NAME),
        rows=tuple(_row(masks, base, key, names[key], options[key], metrics) for key in options),
        differences=_sorted(found, masks, index),
        kinds=tuple(tuple(each) for each in kinds.values()),
        agreement=_agreement(list(kinds)) if len(kinds) <= _MOST_KINDS else (),
    )


def _options(header: Mapping[str, Any], index: RowIndex) -> dict[str, Mapping[str, Any]]:
    known = index.verdicts.by_grader
    graders = [each for each in map(as_map, as_list(header.get("components"))) if each.get("kind") == "grader"]
    held = {as_text(each.get("key")): as_map(each.get("options")) for each in graders}
    return {key: each for key, each in held.items() if key in known and as_text(each.get("preset"))}


def _row(
    masks: _Masks, base: str, key: str, name: str, options: Mapping[str, Any], metrics: Mapping[str, Any]
) -> PresetRow:
    average = as_number(as_map(as_map(metrics.get("by_metric")).get(key)).get("avg_score_attempted"))
    low, high, _, _ = uncertainty(as_map(as_map(metrics.get("aggregates")).get(key)), average)
    ends = "" if low is None or high is None else f"{low:.3f} – {high:.3f}"
    passed, lost = masks.of(key, "passed", "part"), masks.of(key, "lost")
    ours, theirs = (masks.of(base, "passed", "part"), masks.of(base, "lost")) if base else (0, 0)
    same = (passed & ours | lost & theirs).bit_count()
    more, less = (passed & theirs).bit_count(), (lost & ours).bit_count()
    both = same + more + less
    return PresetRow(
        key,
        name,
        brief(as_text(options["preset"]).partition("@")[2], 40),
        number(average),
        ends,
        scale_of(average),
        scale_of(low),
        scale_of(high),
        same,
        both,
        percent(same, both) if both else "",
        more,
        less,
        sum(samples.bit_count() for _, _, samples in masks.others(key)),
        key == base,
    )


def _differences(masks: _Masks, base: str, key: str, options: Mapping[str, Any]) -> Iterable[tuple[str, str, int]]:
    """Yield kind, cause and samples of what sets a preset apart from the outcome; a sample may have several causes."""
    ours, theirs = masks.of(base, "passed", "part"), masks.of(base, "lost")
    rest = masks.of(key, "passed", "part") & theirs
    for part in (False, True):
        hits = unexplained = masks.of(key, "part" if part else "passed") & rest
        for code, samples in masks.traits.items():
            if code not in {NOTHING_EXPECTED, OTHER_ORDER} and hits & samples:
                unexplained &= ~samples
                yield SOFTER, softer(code, options, part=part), hits & samples
        if unexplained:
            yield SOFTER, softer("", options, part=part), unexplained
    rest = masks.of(key, "lost") & ours
    for trait in (NOTHING_EXPECTED, OTHER_ORDER, ""):
        hits, cause = rest & masks.traits.get(trait, 0) if trait else rest, harder(trait, options)
        if hits and cause:
            rest &= ~hits
            yield HARDER, cause, hits
    for state, code, samples in masks.others(key):
        if hits := samples & (ours | theirs):
            yield SILENT, silent(state, code), hits


def _sorted(
    found: Mapping[tuple[str, str], tuple[int, Sequence[str]]], masks: _Masks, index: RowIndex
) -> tuple[Difference, ...]:
    """Return differences, the most frequent first; the example is one with as little else wrong as can be."""
    once = twice = 0
    for trait, samples in masks.traits.items():
        if trait not in {NOTHING_EXPECTED, OTHER_ORDER}:
            once, twice = once | samples, twice | once & samples
    differences = []
    for (kind, cause), (samples, names) in found.items():
        clearest = samples & ~twice or samples
        position = ((clearest & -clearest).bit_length() - 1) // 8
        example = name_of(index.entries[position].id)
        differences.append(Difference(kind, cause, samples.bit_count(), tuple(names), position, example))
    order = (SOFTER, HARDER, SILENT)
    return tuple(sorted(differences, key=lambda each: (order.index(each.kind), -each.samples, -len(each.names))))


def _agreement(kinds: Sequence[tuple[int, int]]) -> tuple[tuple[str, ...], ...]:
    rows = []
    for place, (passed, graded) in enumerate(kinds):
        cells = []
        for others, theirs in kinds[:place]:
            both = graded & theirs
            same, of = (both & ~(passed ^ others)).bit_count(), both.bit_count()
            cells.append(f"{100 if same == of else min(99, round(100 * same / of))}" if of else "–")
        rows.append(tuple(cells))
    return tuple(rows)
