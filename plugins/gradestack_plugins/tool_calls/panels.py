"""What the family shows on pages: what other tools would say of the same run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from typing_extensions import override

from gradestack import Report
from gradestack_plugins.pages import blocks
from gradestack_plugins.tool_calls.side_by_side import (
    HARDER,
    SILENT,
    SOFTER,
    Difference,
    PresetRow,
    Presets,
    presets_of,
)

_KINDS = {
    SOFTER: "Pass where {} does not",
    HARDER: "Do not pass where {} does",
    SILENT: "No verdict where {} has one",
}
_VERDICT = "A verdict is the rule's own where it has one, otherwise score = 1."


class OtherTools(blocks.Panel):
    """The presets of a run side by side: why they differ, and each with its figures; None for fewer than two."""

    place = "figures"
    title = "Verdicts of other tools' rules"

    @override
    def show(self, about: Report) -> Iterable[blocks.Block] | None:
        presets = presets_of(about)
        if presets is None:
            return None
        if not presets.graded:
            none = f"None of the {len(presets.rows)} rules graded a sample"
            return [blocks.Words(f"{none}; the reasons are with the samples.")]
        return _blocks(presets)


def _blocks(presets: Presets) -> Iterator[blocks.Block]:
    compared = f", compared here with {presets.outcome}" if presets.outcome else ""
    kinds = _counted(len(presets.kinds), "different set")
    rules = f"The same {_counted(presets.samples, 'sample')} by {len(presets.rows)} rules"
    yield blocks.Words(f"{rules}: {kinds} of verdicts{compared}. {_VERDICT}")
    causes = {kind: presets.of(kind) for kind in _KINDS}
    for kind, found in causes.items():
        if found:
            rows = {_sentence(each.cause): _cause(each) for each in found}
            title = _KINDS[kind].format(presets.outcome)
            yield blocks.Table(["samples", "such as", "rules", "of"], rows, title, "Cause")
    columns = [
        "average",
        *(["same verdict", "of", "passes more", "less"] if presets.outcome else []),
        "no grade",
        "version",
    ]
    figures = {row.name: _rule(row, presets) for row in presets.rows}
    yield blocks.Table(columns, figures, "Every rule", "Rule")
    if presets.differences:
        named = {_sentence(each.cause): [", ".join(each.names)] for each in presets.differences}
        yield blocks.Section("The rules by cause", [blocks.Table(["rules"], named, corner="Cause")], folded=True)
    if len(presets.agreement) > 1:
        yield blocks.Section("Pairwise agreement", list(_agreement(presets)), folded=True)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _cause(found: Difference) -> list[blocks.Cell]:
    return [found.samples, blocks.Link(found.example, position=found.position), len(found.names), found.programs]


def _rule(row: PresetRow, presets: Presets) -> list[blocks.Cell]:
    average = blocks.Figure(row.name, row.average, row.interval)
    counts = ["", "", "", ""] if row.own else [row.same, row.both, row.softer, row.harder]
    return [average, *(counts if presets.outcome else []), row.silent, row.version]


def _agreement(presets: Presets) -> Iterator[blocks.Block]:
    numbers = [str(number) for number in range(1, len(presets.kinds) + 1)]
    yield blocks.Table(["rules"], dict(zip(numbers, ([", ".join(names)] for names in presets.kinds), strict=True)))
    rows = [[*cells, *[None] * (len(numbers) - 1 - len(cells))] for cells in presets.agreement[1:]]
    yield blocks.Matrix(numbers[1:], numbers[:-1], rows, "Percent of equal verdicts, of the samples both judge")
