"""Cost, tokens and seconds of runs, and successes by category, as blocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import median, quantiles

import msgspec

from gradestack_plugins.pages.blocks import BeforeAfter, Cell, Change, Figure, Link, Matrix, Table
from gradestack_plugins.pages.draw import quoted
from gradestack_plugins.pages.index import RowIndex, name_of
from gradestack_plugins.pages.tallies import Usage, sum_over
from gradestack_plugins.pages.text import brief, natural, number, percent, three_digits

_MOST_FACETS, _FEW, _MOST_COMPARED = 12, 8, 4
MOST_TOOK = 8
_QUANTITIES = {
    "share": "",
    "cost": "cost per run",
    "cost_passed": "cost per passed run",
    "tokens": "tokens per run",
    "seconds": "seconds, median",
    "seconds_95": "seconds, 95th percentile",
}


class Amounts(msgspec.Struct):
    """Cost, tokens and seconds of a model's runs as texts; "" for what no run recorded."""

    model: str
    share: str = ""
    """Of successes, among several models with costs."""
    cost: str = ""
    cost_passed: str = ""
    """Cost of all its runs by success."""
    tokens: str = ""
    seconds: str = ""
    seconds_95: str = ""
    is_best: bool = False
    """Whether no other model is better for the same cost or less, or as good for less."""


def amounts_of(index: RowIndex, models: Mapping[str, tuple[int, int]]) -> list[Amounts]:
    """Return cost, tokens and seconds of each model; no line for a model that recorded none.

    Args:
        index: The samples.
        models: Model -> successes, and others.
    """
    by_model: dict[str, list[tuple[Usage, bool]]] = {}
    for entry, usage in zip(index.entries, index.usage, strict=True):
        if usage is not None:
            by_model.setdefault(entry.model, []).append((usage, entry.passed is True))
    priced: dict[str, tuple[Fraction, float]] = {}
    for model, recorded in by_model.items():
        costs = [usage.cost_usd for usage, _ in recorded if usage.cost_usd is not None]
        passed, failed = models.get(model, (0, 0))
        if costs and passed + failed:
            pass_rate = Fraction(passed, passed + failed)
            priced[model] = pass_rate, sum_over(costs, len(costs))
    unbeaten = _unbeaten(priced)
    lines = []
    for model, recorded in by_model.items():
        line = _amounts(model, recorded)
        if model in priced and len(priced) > 1:
            share = priced[model][0]
            line.share = percent(share.numerator, share.denominator)
            line.is_best = model in unbeaten
        if line.cost or line.tokens or line.seconds:
            lines.append(line)
    return lines


def _unbeaten(priced: Mapping[str, tuple[Fraction, float]]) -> set[str]:
    """Return the models that are best for their price."""
    best = math.inf
    points = set[tuple[Fraction, float]]()
    ranked = sorted(set(priced.values()), key=lambda pair: (-pair[0], pair[1]))
    for share, cost in ranked:
        if cost < best:
            points.add((share, cost))
            best = cost
    return {model for model, point in priced.items() if point in points}


def _amounts(model: str, recorded: Sequence[tuple[Usage, bool]]) -> Amounts:
    costs = [usage.cost_usd for usage, _ in recorded if usage.cost_usd is not None]
    tokens = [usage.tokens for usage, _ in recorded if usage.tokens is not None]
    seconds = [usage.seconds for usage, _ in recorded if usage.seconds is not None]
    passed = sum(is_passed for usage, is_passed in recorded if usage.cost_usd is not None)
    line = Amounts(name_of(model))
    if costs:
        line.cost = f"${three_digits(sum_over(costs, len(costs)))}"
    if passed:
        line.cost_passed = f"${three_digits(sum_over(costs, passed))}"
    if tokens:
        fraction = Fraction(sum(tokens), len(tokens))
        rounded = round(fraction)
        line.tokens = number(rounded)  # beyond any float, too
    if seconds:
        line.seconds = f"{three_digits(median(seconds))}"
    if len(seconds) > 1:
        line.seconds_95 = three_digits(quantiles(seconds, n=20, method="inclusive")[18])
    return line


def amounts_block(lines: Sequence[Amounts], words: Mapping[str, str]) -> BeforeAfter:
    """Return cost, tokens and seconds as a block: a column for each model."""
    shown = lines[:MOST_TOOK]
    rows = []
    for name, quantity in _QUANTITIES.items():
        values = [getattr(line, name) for line in shown]
        if any(values):
            passed = words["passed"]
            label = quantity.format(passed=passed) or words["passed"]
            rows.append(Change(label, values))
    if len(shown) == 1:
        return BeforeAfter([""], rows)
    best = [line.model or "(no name)" for line in shown if line.is_best]
    note = ""
    if 0 < len(best) < len(shown):
        note = f"Best for its price: {', '.join(best)}."
    return BeforeAfter([line.model or "(no name)" for line in shown], rows, note=note)


class Facet(msgspec.Struct, frozen=True):
    """Successes by the values of a facet."""

    block: Table | Matrix
    is_short: bool


def facets_of(index: RowIndex, words: Mapping[str, str]) -> list[Facet]:
    """Return the facets that group runs, each with the successes of its values.

    Of a few models a matrix of values and models.
    """
    facets = []
    models = list(dict.fromkeys(entry.model for entry in index.entries))
    by_name = sorted(index.facets.by_model().items(), key=lambda item: natural(item[0]))
    for name, values in by_name[:_MOST_FACETS]:
        ranked = dict(sorted(values.items(), key=lambda item: natural(item[0])))
        if 1 < len(models) <= _MOST_COMPARED:
            block: Table | Matrix = _model_matrix(name, ranked, models)
        else:
            sums = {value: sum(by_model.values(), Counter()) for value, by_model in ranked.items()}
            block = _facet_table(name, sums, words)
        facet = Facet(block, len(ranked) <= _FEW)
        facets.append(facet)
    return facets


def _facet_table(
    name: str, values: Mapping[str, Counter[bool | None]], words: Mapping[str, str]
) -> Table:
    """Return the successes of each value of a facet."""
    has_ungraded = any(verdicts[None] for verdicts in values.values())
    rows, links = {}, {}
    for value, verdicts in values.items():
        passed = verdicts[True]
        of = verdicts[True] + verdicts[False]
        label = brief(value, 80) or "(empty)"
        links[label] = Link(label, search=_search_of(name, value))
        share = Figure("share", passed / of if of else None, unit="share")
        passed_link = _passed_link(name, value, passed)
        cells: list[Cell] = [passed_link, of, share]
        rows[label] = [*cells, verdicts[None] or ""] if has_ungraded else cells
    columns = [words["passed"], "of", "share", *(["not graded"] if has_ungraded else ())]
    corner = brief(name, 80)
    return Table(columns, rows, corner=corner, links=links)


def _model_matrix(
    name: str, values: Mapping[str, Mapping[str, Counter[bool | None]]], models: Sequence[str]
) -> Matrix:
    """Return the share of successes of each value and model."""
    labels, shares, differences = [], [], []
    for value, by_model in values.items():
        counts = [by_model.get(model, Counter()) for model in models]
        row = [_share_of(verdicts) for verdicts in counts]
        labels.append(brief(value, 80) or "(empty)")
        shares.append(row)
        known = [share for share in row if share is not None]
        if len(known) == len(models) == 2:
            figure = Figure("difference", known[1] - known[0])
            differences.append(figure)
    term = _search_of(name, "{row}").replace("{", "{{").replace("}", "}}")
    search = term.replace("{{row}}", "{row}")
    corner = brief(name, 80)
    names = list(map(name_of, models))
    return Matrix(
        labels,
        names,
        shares,
        corner=corner,
        search=f"{search} model:{quoted('{column}')}" if search else "",
        unit="share",
        differences=differences if len(differences) == len(labels) else (),
    )


def _share_of(verdicts: Counter[bool | None]) -> float | None:
    graded = verdicts[True] + verdicts[False]
    return verdicts[True] / graded if graded else None


def _search_of(name: str, value: str) -> str:
    """Return the term that finds the samples of a value; "" where none can."""
    short = f"{brief(name, 80)}{brief(value, 80)}"
    if "=" in name or "…" in short:
        return ""
    return f"facet:{quoted(f'{name}={value}')}"


def _passed_link(name: str, value: str, passed: int) -> Cell:
    search = _search_of(name, value)
    if search and passed:
        return Link(number(passed), search=f"{search} passed:yes")
    return passed
