"""All figures of a comparison as blocks: differences, pairs, leaderboard, groups of a facet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack import compared_rows
from gradestack_plugins.pages.blocks import DifferenceLine, Differences, Matrix, Table, Value
from gradestack_plugins.pages.compare_text import (
    change_text,
    ends_text,
    is_certain,
    p_text,
    pairs_of,
    points_text,
    question_of,
    value_text,
    verdict_text,
)
from gradestack_plugins.pages.text import brief, counted, number

Fields = Mapping[str, Any]
_LONGEST_NAME = 80
_OPPOSITE = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}


def differences_of(data: Fields) -> Differences:
    """Return every figure before and after, and its difference."""
    rows = compared_rows(data)
    upward = all(row.get("better_is") == "higher" for row in rows)
    directions = ("worse", "better") if upward else ("lower", "higher")
    tested = data.get("tested")
    notes = [tested, _HOW_DECIDED, data.get("failed_count")]
    lines = [_difference_line(row) for row in rows]
    return Differences(lines, directions, [note for note in notes if note])


_HOW_DECIDED = (
    "Each interval is the one that decides its verdict: there is a difference exactly where it "
    "leaves out 0."
)


def _difference_line(row: Fields) -> DifferenceLine:
    share = row["share"]
    is_share = bool(share) and row["difference"] is not None
    points = " points" if is_share else ""
    label = row["label"]
    path = row["path"]
    ends = row["interval"]["ends"] if is_share else None
    reason = row["interval"].get("reason") or "no interval"
    if label != path:
        title = label
    else:
        title = f"Average score of {path}"
    before = value_text(row["a"], row)
    after = value_text(row["b"], row)
    ends_shown = ends_text(row)
    return DifferenceLine(
        label=brief(title, _LONGEST_NAME),
        values=f"{before} → {after}",
        change=change_text(row),
        interval=f"{ends_shown}{points}" if ends_shown else str(reason),
        verdict=verdict_text(row),
        note=_note_on(row),
        difference=row["difference"] if is_share else None,
        ends=None if ends is None else (ends[0], ends[1]),
        is_certain=is_certain(row),
    )


def _note_on(row: Fields) -> str:
    """Return the note below a difference: number of tasks, p, smallest detectable difference."""
    tasks = counted(row["tasks"], "tasks")
    parts = [tasks]
    if row.get("better") is not None:
        parts = [f"{row['better']} better, {row['worse']} worse, {row['same']} the same of {tasks}"]
    parts.append(p_text(row))
    if row.get("question"):
        parts.append("the question, tested alone" if row["tests"] == 1 else "the question")
        mde80 = row["mde80"]
        if mde80 is not None and not is_certain(row):
            size = points_text(row["mde80"], row)
            chance = "would be found in four of five such comparisons"
            parts.append(f"a true difference of {size} {chance}")
    return "; ".join(part for part in parts if part)


def pair_matrix(data: Fields) -> Matrix:
    """Return the question's difference of every pair: row minus column."""
    runs = data["runs"]
    names = [brief(run["name"], 40) for run in runs]
    cells: dict[tuple[str, str], str] = {}
    for pair in pairs_of(data):
        row = question_of(pair)
        a = brief(pair["a"], 40)
        b = brief(pair["b"], 40)
        word = verdict_text(row)
        cells[b, a] = f"{change_text(row)} {word}"
        gap = row["difference"]
        difference = None if gap is None else -gap
        opposite = {**row, "difference": difference}
        cells[a, b] = f"{change_text(opposite)} {_OPPOSITE.get(word, word)}"
    values = [[cells.get((row, column)) for column in names] for row in names]
    return Matrix(names, names, values, corner="row minus column")


def leaderboard_table(data: Fields) -> Table:
    """Return the sides, the best first, with the ranks that each may have."""
    question = question_of(data)
    rows: dict[str, list[Value]] = {}
    for entry in data["groups"]:
        low, high = entry["ranks"]
        mean = value_text(entry["mean"], question)
        groups = entry["groups"]
        rows[brief(entry["name"], _LONGEST_NAME)] = [mean, f"{low}–{high}", groups]
    columns = ["over common tasks", "rank interval", "ties (same letter)"]
    return Table(columns, rows, corner="Name")


def facet_table(data: Fields) -> Table:
    """Return the difference within each value of a facet, the worst first."""
    rows: dict[str, list[Value]] = {}
    for row in data["by"]["groups"]:
        cells: list[Value] = [change_text(row), ends_text(row) or "no interval"]
        name = brief(row["group"], _LONGEST_NAME)
        rows[name] = [*cells, verdict_text(row), number(row["tasks"])]
    columns = ["difference", "interval", "verdict", "tasks"]
    facet = data["by"]["facet"]
    corner = brief(facet, _LONGEST_NAME)
    return Table(columns, rows, corner=corner)
