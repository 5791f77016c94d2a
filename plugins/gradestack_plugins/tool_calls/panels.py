"""What the family shows on pages.

What other tools would say of the same run, how far they agree, and why not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Report, declared_presets
from gradestack.jsonio import as_map, as_number, as_text
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.index import RowIndex, index_of
from gradestack_plugins.pages.losses import NOTHING_EXPECTED, OTHER_ORDER, traits_of

_MOST_KINDS = 60
_EQUAL = 1e-9
_KINDS = {
    "softer": "Pass where {} does not",
    "harder": "Do not pass where {} does",
    "silent": "No verdict where {} has one",
}
_VERDICT = "A verdict is the rule's own where it has one, otherwise score = 1."


@blocks.panel("Verdicts of other tools' rules", place="figures")
def other_tools(about: Report) -> Iterable[blocks.Block] | None:
    """The presets of a run side by side: why they differ, and each with its figures.

    None for fewer than two.
    """
    presets = presets_of(about)
    if presets is None or presets.graded:
        return None if presets is None else _blocks(presets)
    none = f"None of the {len(presets.rows)} rules graded a sample"
    return [blocks.Words(f"{none}; the reasons are with the samples.")]


class Difference(msgspec.Struct, frozen=True):
    """A way in which presets differ from the outcome: they pass more, or less, or say nothing."""

    kind: str
    cause: str
    samples: int
    names: tuple[str, ...]
    position: int
    example: str

    @property
    def title(self) -> str:
        """The cause as a sentence."""
        return f"{self.cause[:1].upper()}{self.cause[1:]}"

    @property
    def cells(self) -> list[blocks.Cell]:
        """What a table says of it, the programs these presets are of last."""
        programs = ", ".join(dict.fromkeys(name.partition("/")[0] for name in self.names))
        return [
            self.samples,
            blocks.Link(self.example, position=self.position),
            len(self.names),
            programs,
        ]


class Presets(msgspec.Struct, frozen=True):
    """Presets side by side."""

    samples: int
    outcome: str
    """Name of what they are compared with, "" in a run without an outcome."""
    rows: dict[str, list[blocks.Cell]]
    """Preset -> its average, how far its verdicts are those of the outcome, samples without a
    grade, version.
    """
    graded: bool
    """Whether any of them has a grade of any sample."""
    differences: tuple[Difference, ...]
    kinds: tuple[tuple[str, ...], ...]
    """Presets that give every sample the same verdict, or none."""
    agreement: tuple[tuple[int | None, ...], ...]
    """Of each kind with those before it: the share of samples with the same verdict, in percent."""


def _blocks(presets: Presets) -> Iterator[blocks.Block]:
    compared = f", compared here with {presets.outcome}" if presets.outcome else ""
    kinds = _counted(len(presets.kinds), "different set")
    rules = f"The same {_counted(presets.samples, 'sample')} by {len(presets.rows)} rules"
    yield blocks.Words(f"{rules}: {kinds} of verdicts{compared}. {_VERDICT}")
    for kind, title in _KINDS.items():
        if rows := {each.title: each.cells for each in presets.differences if each.kind == kind}:
            yield blocks.Table(
                ["samples", "such as", "rules", "of"], rows, title.format(presets.outcome), "Cause"
            )
    compared_by = ["same verdict", "of", "passes more", "less"] if presets.outcome else []
    yield blocks.Table(
        ["average", *compared_by, "no grade", "version"], presets.rows, "Every rule", "Rule"
    )
    if presets.differences:
        named = {each.title: [", ".join(each.names)] for each in presets.differences}
        yield blocks.Section(
            "The rules by cause", [blocks.Table(["rules"], named, corner="Cause")], folded=True
        )
    if len(presets.agreement) > 1:
        numbers = [str(number) for number in range(1, len(presets.kinds) + 1)]
        rules_of = {
            number: [", ".join(names)] for number, names in zip(numbers, presets.kinds, strict=True)
        }
        shares = [
            [*cells, *[None] * (len(numbers) - 1 - len(cells))] for cells in presets.agreement[1:]
        ]
        title = "Percent of equal verdicts, of the samples both judge"
        matrix = blocks.Matrix(numbers[1:], numbers[:-1], shares, title)
        yield blocks.Section(
            "Pairwise agreement", [blocks.Table(["rules"], rules_of), matrix], folded=True
        )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class _Masks:
    """Sets of samples as whole numbers, one byte per sample: intersections cost next to nothing."""

    def __init__(self, index: RowIndex, base: str) -> None:
        self._marks, self._data = index.verdicts.marks, index.verdicts.by_grader
        self.traits: dict[str, int] = {}
        for trait, positions in traits_of(index, base).items():
            found = bytearray(len(index.entries))
            for position in positions:
                found[position] = 1
            self.traits[trait] = int.from_bytes(found, "little")

    def of(self, key: str, *states: str) -> int:
        places = {place for place, (state, _) in enumerate(self._marks) if state in states}
        return self._mask(key, places)

    def passed(self, key: str) -> int:
        return self.of(key, "passed", "part")

    def others(self, key: str) -> Iterable[tuple[str, str, int]]:
        for place, (state, code) in enumerate(self._marks):
            if state not in {"passed", "part", "lost"}:
                yield state, code, self._mask(key, {place})

    def _mask(self, key: str, places: set[int]) -> int:
        return int.from_bytes(
            self._data[key].translate(bytes(place in places for place in range(256))), "little"
        )


def presets_of(report: Report) -> Presets | None:
    """Return the presets of a run side by side, None where fewer than two graders declare one."""
    declared = declared_presets(report.header)
    if len(declared) < 2 or not report.has_rows or not index_of(report).entries:
        return None
    index = index_of(report)
    options = {key: each for key, each in declared.items() if key in index.verdicts.by_grader}
    names = _names(options)
    base = as_text(as_map(report.summary.get("outcome")).get("grader"))
    base = base if base in index.verdicts.by_grader else ""
    masks = _Masks(index, base)
    found: dict[tuple[str, str], tuple[int, dict[str, None]]] = {}
    kinds: dict[tuple[int, int], list[str]] = {}
    for key, own_options in options.items():
        for kind, cause, samples in (
            _differences(masks, base, key, own_options) if base and key != base else ()
        ):
            before, own = found.get((kind, cause), (0, {}))
            found[kind, cause] = before | samples, own | {names[key]: None}
        passed, lost = masks.passed(key), masks.of(key, "lost")
        kinds.setdefault((passed, passed | lost), []).append(names[key])
    silent = {key: sum(samples.bit_count() for *_, samples in masks.others(key)) for key in options}
    samples = len(index.entries)
    return Presets(
        samples=samples,
        outcome=names.get(base) or base,
        rows={
            names[key]: [
                blocks.Figure(names[key], *_average(report.metrics, key)),
                *(_compared(masks, base, key) if base else ()),
                silent[key],
                as_text(options[key]["preset"]).partition("@")[2],
            ]
            for key in options
        },
        graded=any(each < samples for each in silent.values()),
        differences=_sorted(found, masks, index),
        kinds=tuple(map(tuple, kinds.values())),
        agreement=_agreement(list(kinds)) if len(kinds) <= _MOST_KINDS else (),
    )


def _names(options: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the name of each preset by the key of its grader, which stands behind it where two
    have one.
    """
    found = {key: as_text(each["preset"]).partition("@")[0] for key, each in options.items()}
    named = list(found.values())
    return {
        key: name if named.count(name) == 1 else f"{name} ({key})" for key, name in found.items()
    }


def _compared(masks: _Masks, base: str, key: str) -> list[blocks.Cell]:
    """Return how many samples have the verdict of the outcome, of how many, and how many pass that
    do not there.
    """
    if key == base:
        return [""] * 4
    passed, lost, ours, theirs = (
        masks.passed(key),
        masks.of(key, "lost"),
        masks.passed(base),
        masks.of(base, "lost"),
    )
    same, more, less = (
        each.bit_count() for each in (passed & ours | lost & theirs, passed & theirs, lost & ours)
    )
    return [same, same + more + less, more, less]


def _average(
    metrics: Mapping[str, Any], key: str
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the average of a grader, and the interval of the aggregator's figure that estimates
    it.
    """
    average = as_number(
        as_map(as_map(metrics.get("by_metric")).get(key)).get("avg_score_attempted")
    )
    aggregates = as_map(as_map(metrics.get("aggregates")).get(key))
    for found in (as_map(aggregates[name]) for name in sorted(aggregates)):
        for name, value in found.items():
            held, estimate = as_map(found.get(f"{name}_interval")), as_number(value)
            low, high = as_number(held.get("low")), as_number(held.get("high"))
            near = (
                average is not None and estimate is not None and abs(estimate - average) <= _EQUAL
            )
            if near and low is not None and high is not None:
                return average, (low, high)
    return average, None


def _differences(
    masks: _Masks, base: str, key: str, options: Mapping[str, Any]
) -> Iterable[tuple[str, str, int]]:
    """Yield kind, cause and samples of what sets a preset apart from the outcome.

    A sample may have several causes.
    """
    ours, theirs = masks.passed(base), masks.of(base, "lost")
    rest = masks.passed(key) & theirs
    for part in (False, True):
        hits = unexplained = masks.of(key, "part" if part else "passed") & rest
        for code, samples in masks.traits.items():
            if code not in {NOTHING_EXPECTED, OTHER_ORDER} and hits & samples:
                unexplained &= ~samples
                yield "softer", _softer(code, options, part=part), hits & samples
        if unexplained:
            yield "softer", _softer("", options, part=part), unexplained
    rest = masks.of(key, "lost") & ours
    for trait in (NOTHING_EXPECTED, OTHER_ORDER, ""):
        hits, cause = rest & masks.traits.get(trait, 0) if trait else rest, _harder(trait, options)
        if hits and cause:
            rest &= ~hits
            yield "harder", cause, hits
    for state, code, samples in masks.others(key):
        if hits := samples & (ours | theirs):
            yield "silent", _silent(state, code), hits


def _sorted(
    found: Mapping[tuple[str, str], tuple[int, Iterable[str]]], masks: _Masks, index: RowIndex
) -> tuple[Difference, ...]:
    """Return differences, the most frequent first.

    The example is one with as little else wrong as can be.
    """
    once = twice = 0
    for trait, samples in masks.traits.items():
        if trait not in {NOTHING_EXPECTED, OTHER_ORDER}:
            once, twice = once | samples, twice | once & samples
    differences = []
    for (kind, cause), (samples, names) in found.items():
        clearest = samples & ~twice or samples
        position = ((clearest & -clearest).bit_length() - 1) // 8
        example = index.entries[position].id
        differences.append(
            Difference(kind, cause, samples.bit_count(), tuple(names), position, example)
        )
    order = list(_KINDS)
    return tuple(
        sorted(
            differences, key=lambda each: (order.index(each.kind), -each.samples, -len(each.names))
        )
    )


def _agreement(kinds: Sequence[tuple[int, int]]) -> tuple[tuple[int | None, ...], ...]:
    rows = []
    for place, (passed, graded) in enumerate(kinds):
        cells: list[int | None] = []
        for others, theirs in kinds[:place]:
            both = graded & theirs
            same, of = (both & ~(passed ^ others)).bit_count(), both.bit_count()
            cells.append((100 if same == of else min(99, round(100 * same / of))) if of else None)
        rows.append(tuple(cells))
    return tuple(rows)


_NAMES_ONLY = "only names of tools are compared, no arguments"
_ONCE = "one call counts for several equal ones: expected twice and made once is right"
_AGAIN = "a call made again costs nothing: equal calls count once"
_SPELLED = "a call of a name spelled otherwise counts as the one expected"
_NOT_MADE = "expected calls that were not made cost nothing"
_PART = "a score below 1 is enough to pass"
_FREE = {
    "extra_call": "unexpected calls cost nothing",
    "unexpected_call": "calls cost nothing where none is expected",
    "missing_argument": "arguments left out cost nothing",
    "unknown_argument": "unexpected arguments cost nothing",
    "wrong_type": "values of another type count as equal",
    "wrong_value": "other values count as equal",
    "wrong_order": "the order of calls counts for nothing",
    "undecodable_arguments": "arguments that are no JSON object count as right",
}
_ARGUMENTS = frozenset(
    {"missing_argument", "unknown_argument", "wrong_type", "wrong_value", "undecodable_arguments"}
)
_EQUALITY = {
    "text": 'values are compared as text, so "1" is 1',
    "python": "values are compared as Python does: true is 1",
}


def _softer(code: str, options: Mapping[str, Any], *, part: bool) -> str:
    """Return why a preset passes samples in which the outcome grader found something wrong."""
    if code in _ARGUMENTS:
        if options.get("arguments") == "ignore":
            return _NAMES_ONLY
        if part:
            return _PART
        if options.get("missing", "allow") == options.get("extra") == "allow":
            return _NOT_MADE
        return (
            _EQUALITY.get(str(options.get("equality")), _FREE[code])
            if code == "wrong_type"
            else _FREE[code]
        )
    if code == "missing_call":
        return _missing(options, part=part)
    if code == "extra_call" and options.get("extra", "allow") != "allow":
        return _AGAIN if options.get("repeats") == "set" else _PART if part else _SPELLED
    return _FREE.get(code) or (
        f"{code.replace('_', ' ')} costs nothing" if code else "no reason is given"
    )


def _missing(options: Mapping[str, Any], *, part: bool) -> str:
    if options.get("repeats") == "set":
        return _ONCE
    if part:
        return _PART
    if options.get("missing", "allow") == "allow":
        return _NOT_MADE
    return _SPELLED


def _harder(trait: str, options: Mapping[str, Any]) -> str:
    """Return why a preset does not pass samples that are a success.

    "" where this trait does not explain it.
    """
    if trait == NOTHING_EXPECTED:
        return "to expect no call, and make none, is worth nothing"
    if trait == OTHER_ORDER:
        return (
            "calls must come in the order expected"
            if options.get("order") in {"strict", "in_order"}
            else ""
        )
    if options.get("equality") == "text":
        return "values are compared as text, so 1 is not 1.0"
    if options.get("assignment") == "first_fit":
        return "the first call that fits is taken, and a later one may be left without any"
    return "it is stricter in a way its options do not name"


def _silent(state: str, code: str) -> str:
    why = f": {code.replace('_', ' ')}" if code else ""
    if state == "failed":
        return f"the original program raises{why}" if code else "the grade is failed"
    return f"not graded{why}" if state == "skipped" else f"{state.replace('_', ' ')}{why}"
