"""Samples of a run by the values of their facets."""

from __future__ import annotations

import attrs

from gradestack import RowIndex
from gradestack_plugins.reporters.text import brief, natural

_MOST_FACETS = 12


@attrs.frozen
class FacetLine:
    """One value of a facet.

    Attributes:
        value: The value.
        passed: Samples that are a success.
        of: Samples of which that is known.
        others: Samples of which it is not.
        width: Successes in percent of them.
    """

    value: str
    passed: int
    of: int
    others: int
    width: float


@attrs.frozen
class Facet:
    """One facet with its values, in natural order."""

    name: str
    lines: tuple[FacetLine, ...]


def facets_of(index: RowIndex) -> tuple[Facet, ...]:
    """Return the facets that group samples, each with the successes among the samples of each value."""
    found = []
    for name, values in sorted(index.facets.counts().items(), key=lambda item: natural(item[0])):
        lines = []
        for value, counts in sorted(values.items(), key=lambda item: natural(item[0])):
            known = counts.passed + counts.failed
            width = round(100 * counts.passed / known, 2) if known else 0.0
            lines.append(FacetLine(brief(value, 80), counts.passed, known, counts.samples - known, width))
        found.append(Facet(brief(name, 80), tuple(lines)))
    return tuple(found[:_MOST_FACETS])
