"""Rows of results.jsonl read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from gradestack.errors import DataError
from gradestack.jsonio.files import iter_lines
from gradestack.jsonio.values import as_map, loads
from gradestack.model import Fault, Grade, Item, Key, Outcome, Reason, Status
from gradestack.table import Columns, Table, Wanted

Row = dict[str, Any]


def _fault_from(row: Row | None) -> Fault | None:
    return None if row is None else Fault(**row)


def _graded_from(row: Row) -> dict[str, Any]:
    return {
        "counts": row.get("counts", {}),
        "parts": row.get("parts", {}),
        "label": row.get("label"),
        "gold": row.get("gold"),
        "reasons": tuple(Reason(**reason) for reason in row.get("reasons", ())),
        "fault": _fault_from(row.get("fault")),
    }


def grade_from_json(row: Row) -> Grade:
    """Return the grade that :func:`gradestack.grade_to_json` wrote: metrics can be recomputed from rows alone."""
    outcome = Outcome(row["state"])
    items = tuple(
        Item(
            id=item["id"],
            outcome=Outcome(item.get("outcome", "graded")),
            score=item.get("score"),
            metadata=item.get("metadata", {}),
            **_graded_from(item),
        )
        for item in row.get("items", ())
    )
    return Grade(
        outcome=outcome,
        score=row["score"] if outcome is Outcome.GRADED else None,
        passed=row.get("passed"),
        items=items,
        rationale=row["rationale"],
        metadata=row["metadata"],
        **_graded_from(row),
    )


def iter_rows(path: Path) -> Iterator[tuple[bytes, Row]]:
    """Yield the lines of a results file with their rows."""
    for line in iter_lines(path):
        yield line.data, loads(line.data)


def check_count(path: Path | None, rows: int, summary: Mapping[str, Any]) -> None:
    """Refuse a results file that has lost rows, or got some, since the figures of its run were computed.

    Args:
        path: The file; None for rows that were never written to one.
        rows: How many it has.
        summary: Content of summary.json.

    Raises:
        DataError: They are not the samples the summary is of.
    """
    total = as_map(summary.get("metrics")).get("total")
    if path is not None and isinstance(total, int) and rows != total:
        msg = f"{path}: {rows} rows, but summary.json is of {total} samples: it was changed; grade the files again"
        raise DataError(msg)


def key_from_row(row: Row, ordinal: int) -> Key:
    """Return the aggregation key of a row; ``ordinal`` is its position in results.jsonl."""
    return Key(
        id=str(row["sample"]["id"]),
        cluster=row.get("cluster"),
        model=row["model_name"],
        run=row["run"],
        ordinal=ordinal,
        facets=row["facets"],
    )


_BLOCK = 1024
"""Rows decoded at a time."""


def table_of_rows(rows: Iterable[Row], wanted: Wanted) -> Table:
    """Return the table of the grades in rows.

    Args:
        rows: Rows of one run, in order.
        wanted: Which graders, and what figures need of their grades.

    Raises:
        KeyError, TypeError, ValueError: A row is not that of a run, or lacks a grader.
    """
    columns, found, rest = Columns(wanted), Table(wanted.parts), enumerate(rows)
    while block := list(islice(rest, _BLOCK)):
        grades = {key: [grade_from_json(row["grades"][key]) for _, row in block] for key in wanted.parts}
        columns.add(
            [key_from_row(row, at) for at, row in block], grades, [row["status"] == Status.OK for _, row in block]
        )
    found.extend(columns.to_bytes())
    return found
