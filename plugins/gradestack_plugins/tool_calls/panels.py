"""The panel of the family: verdicts of other tools on the same run, and why they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Report, declared_presets
from gradestack.jsonio import as_map, as_number, as_text
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.index import RowIndex, index_of
from gradestack_plugins.tool_calls.traits import NOTHING_EXPECTED, OTHER_ORDER, traits_of

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
        """The cells of its row in a table, the programs these presets are of last."""
        programs = dict.fromkeys([name.partition("/")[0] for name in self.names])
        example = blocks.Link(self.example, position=self.position)
        name_count = len(self.names)
        return [self.samples, example, name_count, ", ".join(programs)]


Shares = list[int | None]


class Presets(msgspec.Struct, frozen=True):
    """Presets side by side."""

    samples: int
    outcome: str
    """Name of the grader they are compared with, "" in a run without an outcome."""
    rows: dict[str, list[blocks.Cell]]
    """Preset -> its average, how far its verdicts are those of the outcome, samples without a
    grade, version.
    """
    graded: bool
    """Whether any of them has a grade of any sample."""
    differences: list[Difference]
    kinds: list[list[str]]
    """Presets that give every sample the same verdict, or none."""
    agreement: list[Shares]
    """Of each kind with those before it: the share of samples with the same verdict, in percent."""


def _blocks(presets: Presets) -> Iterator[blocks.Block]:
    """Yield the blocks of the panel that compares the verdicts of all rules on the same samples."""
    differences, kinds = presets.differences, presets.kinds
    samples = _counted(presets.samples, "sample")
    sets = _counted(len(kinds), "different set")
    compared = f", compared here with {presets.outcome}" if presets.outcome else ""
    sentence = f"The same {samples} by {len(presets.rows)} rules: {sets} of verdicts{compared}"
    yield blocks.Words(f"{sentence}. {_VERDICT}")
    columns = ["samples", "such as", "rules", "of"]
    for kind, title in _KINDS.items():
        rows = {one.title: one.cells for one in differences if one.kind == kind}
        if rows:
            yield blocks.Table(columns, rows, title.format(presets.outcome), "Cause")
    columns = ["average", *_COMPARED, "no grade", "version"]
    if not presets.outcome:
        columns = ["average", "no grade", "version"]
    yield blocks.Table(columns, presets.rows, "Every rule", "Rule")
    if differences:
        named: dict[str, list[blocks.Cell]] = {
            one.title: [", ".join(one.names)] for one in differences
        }
        table = blocks.Table(["rules"], named, corner="Cause")
        yield blocks.Section("The rules by cause", [table], folded=True)
    if len(presets.agreement) > 1:
        agreement_blocks = _agreement_blocks(presets)
        yield blocks.Section("Pairwise agreement", agreement_blocks, folded=True)


def _agreement_blocks(presets: Presets) -> list[blocks.Block]:
    """Build a table of rules with equal verdicts, and a matrix of their pairwise agreement."""
    kind_count = len(presets.kinds)
    numbers = [str(number) for number in range(1, kind_count + 1)]
    rules: dict[str, list[blocks.Cell]] = {
        number: [", ".join(names)] for number, names in zip(numbers, presets.kinds, strict=True)
    }
    width = len(numbers) - 1
    rows = presets.agreement[1:]
    shares = [[*row, *[None] * (width - len(row))] for row in rows]
    title = "Percent of equal verdicts, of the samples both judge"
    matrix = blocks.Matrix(numbers[1:], numbers[:-1], shares, title)
    return [blocks.Table(["rules"], rules), matrix]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_PASSED, _LOST = ("passed", "part"), "lost"


class _Masks:
    """Sets of samples as whole numbers, one byte per sample: intersections cost next to nothing."""

    def __init__(self, index: RowIndex, base: str) -> None:
        self._marks = index.verdicts.marks
        self._data = index.verdicts.by_grader
        self.traits: dict[str, int] = {}
        for trait, positions in traits_of(index, base).items():
            mask = bytearray(len(index.entries))
            for position in positions:
                mask[position] = 1
            self.traits[trait] = int.from_bytes(mask, "little")

    def of(self, key: str, *states: str) -> int:
        """Return the samples in which a grader's verdict is in one of some states."""
        return self._mask(key, [state in states for state, _ in self._marks])

    def passed(self, key: str) -> int:
        """Return the samples that a grader passes."""
        return self.of(key, *_PASSED)

    def silent(self, key: str) -> Iterator[tuple[str, str, int]]:
        """Yield state, code and samples of each reason why a grader has no verdict."""
        for index, (state, code) in enumerate(self._marks):
            if state not in {*_PASSED, _LOST}:
                mask = self._mask(key, [other == index for other in range(index + 1)])
                yield state, code, mask

    def _mask(self, key: str, is_wanted: list[bool]) -> int:
        table = bytes(is_wanted).ljust(256, b"\0")
        return int.from_bytes(self._data[key].translate(table), "little")


Found = dict[tuple[str, str], tuple[int, dict[str, None]]]
"""Kind and cause of a difference -> its samples, and the presets that have it."""


def presets_of(report: Report) -> Presets | None:
    """Return the presets of a run side by side, None where fewer than two graders declare one."""
    declared = declared_presets(report.header)
    if len(declared) < 2 or not report.has_rows or not index_of(report).entries:
        return None
    index = index_of(report)
    options = {key: declared[key] for key in declared if key in index.verdicts.by_grader}
    names = _names(options)
    outcome = as_map(report.summary.get("outcome"))
    base = as_text(outcome.get("grader"))
    base = base if base in index.verdicts.by_grader else ""
    masks = _Masks(index, base)
    samples = len(index.entries)
    differences: Found = {}
    kinds: dict[tuple[int, int], list[str]] = {}
    rows: dict[str, list[blocks.Cell]] = {}
    is_graded = False
    for key, own_options in options.items():
        name = names[key]
        passed = masks.passed(key)
        kinds.setdefault((passed, passed | masks.of(key, _LOST)), []).append(name)
        for kind, cause, mask in _differences(masks, base, key, own_options):
            before, presets = differences.get((kind, cause), (0, {}))
            differences[kind, cause] = before | mask, {**presets, name: None}
        silent = sum([mask.bit_count() for *_, mask in masks.silent(key)])
        is_graded = is_graded or silent < samples
        average = blocks.Figure(name, *_average(report.metrics, key))
        preset = as_text(own_options["preset"])
        version = preset.partition("@")[2]
        rows[name] = [average, *_compare(masks, base, key), silent, version]
    return Presets(
        samples=samples,
        outcome=names.get(base) or base,
        rows=rows,
        graded=is_graded,
        differences=_sorted(differences, masks, index),
        kinds=list(kinds.values()),
        agreement=_agreement(list(kinds)) if len(kinds) <= _MOST_KINDS else [],
    )


def _names(options: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the name of each preset by the key of its grader.

    Where two have one, the key stands behind it.
    """
    names = {key: as_text(option["preset"]).partition("@")[0] for key, option in options.items()}
    times = Counter(names.values())
    return {key: name if times[name] == 1 else f"{name} ({key})" for key, name in names.items()}


_COMPARED = ("same verdict", "of", "passes more", "less")


def _compare(masks: _Masks, base: str, key: str) -> list[blocks.Cell]:
    """Count the samples on which a rule agrees with the outcome grader, and those where it differs.

    Returns:
        Samples with the outcome's verdict; all compared; those that pass where the outcome does
        not, and the reverse.
    """
    if not base:
        return []
    if key == base:
        return [""] * len(_COMPARED)
    passed = masks.passed(key)
    failed = masks.of(key, _LOST)
    base_passed = masks.passed(base)
    base_lost = masks.of(base, _LOST)
    same = (passed & base_passed | failed & base_lost).bit_count()
    more = (passed & base_lost).bit_count()
    less = (failed & base_passed).bit_count()
    return [same, same + more + less, more, less]


def _average(
    metrics: Mapping[str, Any], key: str
) -> tuple[float | None, tuple[float, float] | None]:
    """Return a grader's average, with the interval of the aggregator that estimates it."""
    by_metric = as_map(metrics.get("by_metric"))
    avg_score_attempted = as_map(by_metric.get(key)).get("avg_score_attempted")
    average = as_number(avg_score_attempted)
    if average is None:
        return None, None
    aggregates = as_map(as_map(metrics.get("aggregates")).get(key))
    for name in sorted(aggregates):
        figures = as_map(aggregates[name])
        for figure, value in figures.items():
            interval = as_map(figures.get(f"{figure}_interval"))
            estimate = as_number(value)
            low = as_number(interval.get("low"))
            high = as_number(interval.get("high"))
            is_near = estimate is not None and abs(estimate - average) <= _EQUAL
            if is_near and low is not None and high is not None:
                return average, (low, high)
    return average, None


def _differences(
    masks: _Masks, base: str, key: str, options: Mapping[str, Any]
) -> Iterator[tuple[str, str, int]]:
    """Yield kind, cause and samples of what sets a preset apart from the outcome.

    A sample may have several causes.
    """
    if not base or key == base:
        return
    base_passed = masks.passed(base)
    base_lost = masks.of(base, _LOST)
    for state in _PASSED:
        is_part = state == "part"
        hits = unexplained = masks.of(key, state) & masks.passed(key) & base_lost
        for code, samples in masks.traits.items():
            if code not in _OF_RIGHT_ONES and hits & samples:
                unexplained &= ~samples
                yield "softer", _softer(code, options, part=is_part), hits & samples
        if unexplained:
            softer = _softer("", options, part=is_part)
            yield "softer", softer, unexplained
    rest = masks.of(key, _LOST) & base_passed
    for trait in (*_OF_RIGHT_ONES, ""):
        hits = rest & masks.traits.get(trait, 0) if trait else rest
        cause = _harder(trait, options)
        if hits and cause:
            rest &= ~hits
            yield "harder", cause, hits
    for state, code, samples in masks.silent(key):
        hits = samples & (base_passed | base_lost)
        if hits:
            yield "silent", _silent(state, code), hits


_OF_RIGHT_ONES = (NOTHING_EXPECTED, OTHER_ORDER)
"""Traits of samples that pass; all others are mistakes."""


def _sorted(differences: Found, masks: _Masks, index: RowIndex) -> list[Difference]:
    """Return differences, the most frequent first.

    The example is a sample with as little else wrong as can be.
    """
    once = twice = 0
    for trait, samples in masks.traits.items():
        if trait not in _OF_RIGHT_ONES:
            once, twice = once | samples, twice | once & samples
    rows = []
    for (kind, cause), (samples, names) in differences.items():
        clearest = samples & ~twice or samples
        lowest_bit = clearest & -clearest
        position = (lowest_bit.bit_length() - 1) // 8
        example = index.entries[position].id
        number = samples.bit_count()
        difference = Difference(kind, cause, number, tuple(names), position, example)
        rows.append(difference)
    kinds_in_order = list(_KINDS)
    rows.sort(key=lambda row: (kinds_in_order.index(row.kind), -row.samples, -len(row.names)))
    return rows


def _agreement(verdicts_of_rules: Sequence[tuple[int, int]]) -> list[Shares]:
    """Compute the percentage of equal verdicts for each pair of rules, as a lower triangle.

    Each rule's verdicts are two bit sets over the samples: those it passes, those it grades.
    """
    rows = []
    for number, (passed, graded) in enumerate(verdicts_of_rules):
        row: Shares = []
        for others_passed, others_graded in verdicts_of_rules[:number]:
            judged_by_both = graded & others_graded
            n_judged = judged_by_both.bit_count()
            n_equal = (judged_by_both & ~(passed ^ others_passed)).bit_count()
            row.append(_percent(n_equal, n_judged) if n_judged else None)
        rows.append(row)
    return rows


def _percent(part: int, every: int) -> int:
    """Return a share in percent, 100 only for all."""
    if part == every:
        return 100
    rounded = round(100 * part / every)
    return min(99, rounded)


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
    missing = options.get("missing", "allow")
    extra = options.get("extra", "allow")
    is_set = options.get("repeats") == "set"
    if code in _ARGUMENTS:
        return _softer_arguments(code, options, part=part)
    if code == "missing_call" and is_set:
        return _ONCE
    if code == "missing_call":
        return _PART if part else _NOT_MADE if missing == "allow" else _SPELLED
    if code == "extra_call" and extra != "allow":
        return _AGAIN if is_set else _PART if part else _SPELLED
    if not code:
        return "no reason is given"
    return _FREE.get(code) or f"{code.replace('_', ' ')} costs nothing"


def _softer_arguments(code: str, options: Mapping[str, Any], *, part: bool) -> str:
    """Name the cause why a rule forgives an error of the arguments that another one counts."""
    if options.get("arguments") == "ignore":
        return _NAMES_ONLY
    if part:
        return _PART
    extra = options.get("extra")
    missing = options.get("missing", "allow")
    if missing == extra == "allow":
        return _NOT_MADE
    equality = ""
    if code == "wrong_type":
        equality = str(options.get("equality"))
    return _EQUALITY.get(equality, _FREE[code])


def _harder(trait: str, options: Mapping[str, Any]) -> str:
    """Return why a preset does not pass samples that are a success.

    "" where this trait does not explain it.
    """
    if trait == NOTHING_EXPECTED:
        return "to expect no call, and make none, is worth nothing"
    if trait == OTHER_ORDER:
        is_ordered = options.get("order") in {"strict", "in_order"}
        return "calls must come in the order expected" if is_ordered else ""
    if options.get("equality") == "text":
        return "values are compared as text, so 1 is not 1.0"
    if options.get("assignment") == "first_fit":
        return "the first call that fits is taken, and a later one may be left without any"
    return "it is stricter in a way its options do not name"


def _silent(state: str, code: str) -> str:
    why = ""
    if code:
        why = f": {code.replace('_', ' ')}"
    if state == "failed":
        return f"the original program raises{why}" if code else "the grade is failed"
    if state == "skipped":
        return f"not graded{why}"
    return f"{state.replace('_', ' ')}{why}"
