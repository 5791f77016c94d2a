"""Rows of a run one by one: what they are called, where they stand, those that are looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct

from gradestack import DataError, Report, Row
from gradestack_plugins.pages.index import RowEntry, RowIndex, index_of, outcome_of

_PIECE = 1 << 21
"""Bytes of long rows read at once: more than a chunk of pages has, but for a row that is longer."""


class RowName(NamedTuple):
    """What one row is called."""

    position: int
    place: int
    id: str
    model: str
    run: str


class _Task(Struct, frozen=True, gc=False):
    id: str | int | None = None


class _Named(Struct, frozen=True, gc=False):
    sample: _Task = _Task()
    run: str | int | None = None
    model_name: str | None = None


_named = msgspec.json.Decoder(_Named).decode


def row_names(report: Report, places: Iterable[tuple[int, int]] | None = None) -> Iterator[RowName]:
    """Yield the names of rows, of which little else is decoded; faster than the index, and nothing is kept."""
    for position, (number, place, line) in enumerate(report.lines(places)):
        try:
            row = _named(line)
        except (ValueError, RecursionError):  # NaN, and numbers that msgspec does not know
            try:
                row = msgspec.convert(report.row(number, line), _Named)
            except ValueError as error:  # of msgspec's own kind, or a lone surrogate
                raise DataError(f"{report.rows_name}:{number}: {error}") from error
        names = ("" if each is None else str(each) for each in (row.sample.id, row.model_name, row.run))
        yield RowName(position if places is None else number - 1, place, *names)


def samples_at(
    report: Report, places: Iterable[tuple[int, int]], *, trajectories: bool = True
) -> Iterator[tuple[RowEntry, Row]]:
    """Yield single samples as the index has them, each with its row, without an index of all."""
    for number, place, line in report.lines(places):
        row = report.row(number, line)
        (entry,) = RowIndex.of([(number, place, line)], report.row, outcome_of(report), where=report.rows_name).entries
        rows = report.completed([row]) if trajectories and report.completed is not None else iter([row])
        yield msgspec.structs.replace(entry, position=number - 1), next(rows)


def rows_at(report: Report, positions: Iterable[int], *, trajectories: bool = True) -> Iterator[Row]:
    """Yield the rows at these positions, which entries of the index have; no other row is read.

    Rows of a slim run come with their ``trajectory``, read again from the input (fastest in the order of the rows), or
    with ``trajectory_gone``, a sentence that says why it cannot be read.
    """
    index = index_of(report)
    lines = report.lines((position, index.place(position)) for position in positions)
    rows = (report.row(number, line) for number, _, line in lines)
    return report.completed(rows) if trajectories and report.completed is not None else rows


def pieces_of(report: Report, start: int, stop: int) -> Iterator[bytes]:
    """Yield the rows from position ``start`` to before ``stop`` as they stand in results.jsonl, a line each.

    A row may be longer than what memory should hold: pieces end anywhere. No end of a line comes after the last one.
    """
    index = index_of(report)
    count = len(index.entries)
    if not 0 <= start < min(stop, count):
        return
    with report.open_rows() as file:
        if not index.whole:  # with blank lines, or lines that are no row, between them
            for position in range(start, min(stop, count)):
                file.seek(index.place(position))
                yield b"\n" * (position > start)
                while (piece := file.readline(_PIECE)) and not piece.endswith(b"\n"):
                    yield piece
                yield piece.rstrip(b"\n")
            return
        file.seek(index.place(start))
        left = index.place(stop) - index.place(start) if stop < count else sys.maxsize
        ends = b""
        while piece := file.read(min(left, _PIECE)):
            left -= len(piece)
            text = piece.rstrip(b"\n")
            yield ends if text else b""
            yield text
            ends = piece[len(text) :] if text else ends + piece
