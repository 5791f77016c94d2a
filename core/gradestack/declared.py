"""Meanings of the figures of a finished run.

They are what graders and aggregators declared, as the header records it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from gradestack.aggregator import Figure, declared_figure
from gradestack.api import Direction, Unit
from gradestack.jsonio.values import as_list, as_map, as_text

_OPTIONAL = ("about", "divisor", "samples")
_TEXTS = ("name", "label", *_OPTIONAL)
_MEAN = "mean"  # aggregator whose figure means what its grader says of a score


class Declarations:
    """The declarations of figures by the components of a run, looked up by path.

    For whatever shows or compares them.
    """

    def __init__(self, header: Mapping[str, Any]) -> None:
        """Read the figures that the components in a header declare, by grader and aggregator."""
        components = header.get("components")
        entries = [as_map(entry) for entry in as_list(components)]
        self._scores: dict[str, Figure] = {}
        self._figures: dict[tuple[str, str], tuple[Figure, ...]] = {}
        for entry in entries:
            kind = entry.get("kind")
            if kind == "grader" and "better" in entry:
                self._scores[as_text(entry.get("key"))] = _score(entry)
        for entry in entries:
            if entry.get("kind") == "aggregator":
                grader = as_text(entry.get("of"))
                key = as_text(entry.get("key"))
                if entry.get("name") == _MEAN and grader in self._scores:
                    figures: tuple[Figure, ...] = (self._scores[grader],)
                else:
                    figures = tuple(map(_figure, map(as_map, as_list(entry.get("figures")))))
                self._figures[grader, key] = figures

    def score(self, grader: str) -> Figure | None:
        """Return the declaration of a grader's mean score; None: nobody says."""
        return self._scores.get(grader)

    def figure(self, grader: str, aggregator: str, path: str = "") -> Figure | None:
        """Return the declaration of a figure, of aggregator "" (averages) or one, by the path below
        it.

        None: nobody says.
        """
        if not aggregator:
            if path.startswith("avg_score"):
                return self._scores.get(grader)
            return None
        figures = self._figures.get((grader, aggregator), ())
        return declared_figure(figures, aggregator, path)

    def at(self, path: str) -> Figure | None:
        """Return the declaration of the figure at ``GRADER.AGGREGATOR.FIGURE``, as headlines and
        gates write it.
        """
        for grader, aggregator in self._figures:
            prefix = f"{grader}.{aggregator}"
            if path == prefix or path.startswith(f"{prefix}."):
                return self.figure(grader, aggregator, path[len(prefix) + 1 :])
        grader, _, name = path.rpartition(".")
        return self.figure(grader, "", name)


def _score(entry: Mapping[str, Any]) -> Figure:
    """Return the declaration of a grader's mean score."""
    label = as_text(entry.get("label"))
    key = entry.get("key")
    if label == as_text(key):
        label = "Mean score"
    bounds = entry.get("bounds")
    least, most = as_list(bounds) or (0.0, 1.0)
    figure = _figure({**entry, "name": _MEAN, "label": label})
    return msgspec.structs.replace(figure, least=least, most=most)


def _figure(entry: Mapping[str, Any]) -> Figure:
    """Build a figure from its entry in the header; replace unknown directions and units."""
    better: Any = entry.get("better")
    unit: Any = entry.get("unit")
    texts: dict[str, Any] = {name: as_text(entry.get(name)) for name in _TEXTS}
    return Figure(
        **texts,
        better=better if better in get_args(Direction) else "neither",
        unit=unit if unit in get_args(Unit) else "score",
    )


def declared_entry(figure: Figure) -> dict[str, Any]:
    """Return the entry of a figure in header.json: what is not said is left out."""
    entry = {name: getattr(figure, name) for name in ("name", "label", "better", "unit")}
    for name in _OPTIONAL:
        value = getattr(figure, name)
        if value:
            entry[name] = value
    return entry


_UNITS = {"seconds": "{} s", "tokens": "{} tokens", "usd": "${}", "bits": "{} bits"}


def with_unit(number: str, unit: str) -> str:
    """Return a number as written with its unit; shares, scores and counts have none.

    >>> with_unit("0.8", "seconds"), with_unit("0.596", "share")
    ('0.8 s', '0.596')
    """
    return _UNITS.get(unit, "{}").format(number)


def which_is_better(better: str) -> str:
    """Describe a figure's direction, where lower is better; "" where not.

    >>> which_is_better("lower")
    'lower is better'
    """
    if better == "lower":
        return "lower is better"
    return ""
