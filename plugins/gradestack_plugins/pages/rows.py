"""Rows of a run one by one, as they are looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from gradestack import Report, Row
from gradestack_plugins.pages.index import index_of

_PIECE = 1 << 21
"""Bytes of long rows read at once: more than a chunk of pages has, but for a row that is longer."""


def rows_at(report: Report, positions: Iterable[int]) -> Iterator[Row]:
    """Yield the rows at these positions, which entries of the index have; no other row is read."""
    index = index_of(report, short=True)
    lines = report.lines((position, index.first_byte(position)) for position in positions)
    return (report.row(number, line) for number, _, line in lines)


def pieces_of(report: Report, start: int, stop: int) -> Iterator[bytes]:
    """Yield the rows from position ``start`` to before ``stop``, as in results.jsonl, a
    line each.

    A row may be longer than what memory should hold: pieces end anywhere. No end of a line comes
    after the last one.
    """
    index = index_of(report, short=True)
    count = len(index.entries)
    if not 0 <= start < min(stop, count):
        return
    with report.open_rows() as file:
        if not index.has_only_rows:  # with blank lines, or lines that are no row, between them
            for position in range(start, min(stop, count)):
                file.seek(index.first_byte(position))
                yield b"\n" * (position > start)
                while (piece := file.readline(_PIECE)) and not piece.endswith(b"\n"):
                    yield piece
                yield piece.rstrip(b"\n")
            return
        file.seek(index.first_byte(start))
        if stop < count:
            first_byte = index.first_byte(stop)
            left = first_byte - index.first_byte(start)
        else:
            left = sys.maxsize
        ends = b""
        while piece := file.read(min(left, _PIECE)):
            left -= len(piece)
            text = piece.rstrip(b"\n")
            yield ends if text else b""
            yield text
            if text:
                ends = piece[len(text) :]
            else:
                ends = ends + piece
