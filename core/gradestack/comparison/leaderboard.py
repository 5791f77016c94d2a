"""Three models and more in order, with the ranks each may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from gradestack.comparison.families import CERTAIN
from gradestack.model import JSON

Maps = Sequence[Mapping[str, Any]]


def leaderboard(values: Mapping[str, float], pairs: Maps, rows: Maps) -> list[dict[str, JSON]]:
    """Rank sides by the question's figure, the best first, each with its possible ranks and groups.

    Args:
        values: Name of a side -> its figure over the tasks that all have.
        pairs: Names of two sides each, ``a`` and ``b``.
        rows: The question's row of each pair.
    """
    ahead = set()
    for pair, row in zip(pairs, rows, strict=True):
        if row["verdict"] in ("better", "higher"):
            ahead.add((pair["b"], pair["a"]))
        elif row["verdict"] in CERTAIN:
            ahead.add((pair["a"], pair["b"]))
    better_is = rows[0]["better_is"]
    sign = 1 if better_is == "lower" else -1
    ranking = sorted(values, key=lambda name: sign * values[name])
    letters = _letters(ranking, ahead)
    board = []
    for name in ranking:
        better = sum((other, name) in ahead for other in ranking)
        worse = sum((name, other) in ahead for other in ranking)
        ranks = [1 + better, len(ranking) - worse]
        entry: dict[str, Any] = {"name": name, "mean": values[name], "ranks": ranks}
        board.append({**entry, "groups": letters[name]})
    return board


def _letters(ranking: Sequence[str], ahead: set[tuple[str, str]]) -> dict[str, str]:
    """Return the letters of maximal runs of neighbours that do not differ."""
    letters = dict.fromkeys(ranking, "")
    number = end = 0
    for first in range(len(ranking)):
        last = first + 1
        while last < len(ranking):
            above = ranking[first:last]
            if any((name, ranking[last]) in ahead for name in above):
                break
            last += 1
        if last > end:
            end = last
            letter = ascii_lowercase[number] if number < 26 else f"({number + 1})"
            for name in ranking[first:last]:
                letters[name] += letter
            number += 1
    return letters
