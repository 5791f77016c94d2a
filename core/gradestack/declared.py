"""What figures of a finished run mean.

What graders and aggregators declared of them, as its header records it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from gradestack.api import Direction, Figure, Unit, declared_figure
from gradestack.jsonio.values import as_list, as_map, as_text

_MEAN = "mean"  # aggregator whose figure means what its grader says of a score


class Declarations:
    """What the components of a run declare of figures, looked up by path.

    For whatever shows or compares them.
    """

    def __init__(self, header: Mapping[str, Any]) -> None:
        entries = [as_map(each) for each in as_list(header.get("components"))]
        self._scores: dict[str, Figure] = {}
        self._figures: dict[tuple[str, str], tuple[Figure, ...]] = {}
        for each in entries:
            key = as_text(each.get("key"))
            if each.get("kind") == "grader" and "better" in each:
                label = as_text(each.get("label"))
                least, most = as_list(each.get("bounds")) or (0.0, 1.0)
                score = _figure(
                    {**each, "name": _MEAN, "label": "Mean score" if label == key else label}
                )
                self._scores[key] = msgspec.structs.replace(score, least=least, most=most)
        for each in entries:
            of = as_text(each.get("of"))
            if each.get("kind") == "aggregator":
                own = tuple(_figure(as_map(one)) for one in as_list(each.get("figures")))
                mean = each.get("name") == _MEAN and of in self._scores
                self._figures[of, as_text(each.get("key"))] = (self._scores[of],) if mean else own

    def score(self, grader: str) -> Figure | None:
        """Return what the mean score of a grader means; None: nobody says."""
        return self._scores.get(grader)

    def figure(self, grader: str, aggregator: str, path: str = "") -> Figure | None:
        """Return what a figure means, of aggregator "" (averages) or one, by the path below it.

        None: nobody says.
        """
        if not aggregator:
            return self._scores.get(grader) if path.startswith("avg_score") else None
        return declared_figure(self._figures.get((grader, aggregator), ()), aggregator, path)

    def at(self, path: str) -> Figure | None:
        """Return what the figure at ``GRADER.AGGREGATOR.FIGURE`` means, as headlines and gates
        write it.
        """
        for grader, aggregator in self._figures:
            prefix = f"{grader}.{aggregator}"
            if path == prefix or path.startswith(f"{prefix}."):
                return self.figure(grader, aggregator, path[len(prefix) + 1 :])
        grader, _, name = path.rpartition(".")
        return self.figure(grader, "", name)


def _figure(entry: Mapping[str, Any]) -> Figure:
    better, unit = entry.get("better"), entry.get("unit")
    return Figure(
        name=as_text(entry.get("name")),
        label=as_text(entry.get("label")),
        better=next((each for each in get_args(Direction) if each == better), "neither"),
        unit=next((each for each in get_args(Unit) if each == unit), "score"),
        about=as_text(entry.get("about")),
        divisor=as_text(entry.get("divisor")),
        samples=as_text(entry.get("samples")),
    )


def declared_entry(figure: Figure) -> dict[str, Any]:
    """Return what header.json records of a figure: what is not said is left out."""
    names = ["name", "label", "better", "unit"]
    names += [name for name in ("about", "divisor", "samples") if getattr(figure, name)]
    return {name: getattr(figure, name) for name in names}


_UNITS = {"seconds": "{} s", "tokens": "{} tokens", "usd": "${}", "bits": "{} bits"}


def with_unit(number: str, unit: str) -> str:
    """Return a number as written with its unit; shares, scores and counts have none.

    >>> with_unit("0.8", "seconds"), with_unit("0.596", "share")
    ('0.8 s', '0.596')
    """
    return _UNITS.get(unit, "{}").format(number)


def which_is_better(better: str) -> str:
    """Return what has to be said of a figure's direction.

    Nothing where higher is better, or neither.

    >>> which_is_better("lower")
    'lower is better'
    """
    return "lower is better" if better == "lower" else ""
