"""Three models and more in order, with the ranks each may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from gradestack.comparison.families import CERTAIN
from gradestack.model import JSON

_AHEAD = frozenset({"better", "higher"})

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
        if row["verdict"] in _AHEAD:
            ahead.add((pair["b"], pair["a"]))
        elif row["verdict"] in CERTAIN:
            ahead.add((pair["a"], pair["b"]))
    is_lower_better = rows[0]["better_is"] == "lower"
    order = sorted(values, key=lambda name: values[name] * (1 if is_lower_better else -1))
    letters = _letters(order, ahead)
    board = []
    for name in order:
        better = sum((other, name) in ahead for other in order)
        worse = sum((name, other) in ahead for other in order)
        entry: dict[str, Any] = {"name": name, "mean": values[name]}
        entry["ranks"] = [1 + better, len(order) - worse]
        entry["groups"] = letters[name]
        board.append(entry)
    return board


def _letters(order: Sequence[str], ahead: set[tuple[str, str]]) -> dict[str, str]:
    """Return the letters of maximal runs of neighbours that do not differ."""
    spans: list[tuple[int, int]] = []
    for first in range(len(order)):
        last = first
        while last + 1 < len(order):
            following = order[last + 1]
            neighbours = order[first : last + 1]
            if any((name, following) in ahead for name in neighbours):
                break
            last += 1
        if not spans or last > spans[-1][1]:
            spans.append((first, last))
    letters_of = dict.fromkeys(order, "")
    for number, (first, last) in enumerate(spans):
        letter = ascii_lowercase[number] if number < len(ascii_lowercase) else f"({number + 1})"
        for name in order[first : last + 1]:
            letters_of[name] += letter
    return letters_of
