"""What a page loads only when it is looked at: rows and drill-downs, packed, in the page or in files beside it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gradestack import Report
from gradestack_plugins.pages.index import RowIndex
from gradestack_plugins.pages.rows import bytes_of

FOLDER = "report_data"
BESIDE = (f"{FOLDER}/chunk-*.js", f"{FOLDER}/index.js")
"""Files in it that a page loads."""
LEVEL = 1
_CHUNK = 1 << 20
"""Bytes of a chunk before it is packed: a hundredth of a second to unpack."""
_RATIO = 20
"""Rows are hardly ever packed to less than this part of them."""


def packed(data: bytes) -> bytes:
    """Return data compressed, the same bytes at any time."""
    return gzip.compress(data, LEVEL, mtime=0)


class Chunks:
    """Chunks in memory as long as there is room for them in the page, then files.

    Attributes:
        texts: The chunks as base64; none when they are files.
        beside: Whether they are files.
        sums: SHA-256 of each chunk before it was made base64.
        first: Position of the first row of each chunk of rows.
        panelled: Positions of the samples of each chunk of panels; these come after those of rows.
        drilled: Positions of the drill-downs of each chunk that has such; these come last.
        without: Titles of panels that are drawn in drill-downs alone.
    """

    def __init__(self, folder: Path, room: int) -> None:
        self._folder, self._room = folder, room
        self.texts: list[str] = []
        self.beside = room < 0
        self.sums: list[str] = []
        self.first: list[int] = []
        self.panelled: list[list[int]] = []
        self.drilled: list[list[int]] = []
        self.without: list[str] = []

    def add_rows(self, report: Report, index: RowIndex) -> None:
        """Add all rows of a report, as they stand in results.jsonl."""
        entries = range(len(index.entries))
        if entries and (index.place(entries[-1]) - index.place(0)) // _RATIO > self._room:
            self._move()
        start = 0
        while start < len(entries):
            stop = bisect_left(entries, index.place(start) + _CHUNK, start + 1, key=index.place)
            self.first.append(start)
            self._add(bytes_of(report, start, stop))
            start = stop

    def add_panels(self, panels: Iterable[tuple[int, list[str]]]) -> None:
        """Add rendered panels of samples that have no drill-down, those of each as a line of JSON."""
        for positions, lines in _batches(panels):
            self.panelled.append(positions)
            self._add("\n".join(lines).encode())

    def add_drilldowns(self, drilldowns: Iterable[tuple[int, str]]) -> None:
        """Add rendered drill-downs, each a line of JSON."""
        for positions, lines in _batches(drilldowns):
            self.drilled.append(positions)
            self._add("\n".join(lines).encode())

    def _add(self, data: bytes) -> None:
        found = packed(data)
        text = base64.b64encode(found).decode()
        self.sums.append(hashlib.sha256(found).hexdigest())
        self._room -= len(text)
        if not self.beside:
            self.texts.append(text)
            if self._room < 0:
                self._move()
        else:
            self.write(f"chunk-{len(self.sums)}", text)

    def write(self, name: str, text: str) -> None:
        """Write a file that assigns one text of base64 to the one name the page's loader reads."""
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"{name}.js"
        path.write_text(f'globalThis.gradestackChunk = "{text}";\n', encoding="ascii", newline="\n")

    def _move(self) -> None:
        """Write what is here, and all that comes, into files."""
        if not self.beside:
            self.beside = True
            for number, text in enumerate(self.texts, start=1):
                self.write(f"chunk-{number}", text)
            self.texts.clear()

    def listed(self) -> dict[str, Any]:
        """Return what the list of samples says of the chunks."""
        sums = self.sums if self.beside else []
        found: dict[str, Any] = {"first": self.first, "drilled": self.drilled, "sums": sums}
        return found | {"panels": self.panelled, "without": self.without}


def _batches(texts: Iterable[tuple[int, str | list[str]]]) -> Iterator[tuple[list[int], list[str]]]:
    positions, lines, size = list[int](), list[str](), 0
    for position, text in texts:
        positions.append(position)
        lines.append(json.dumps(text))
        size += len(lines[-1])
        if size >= _CHUNK:
            yield positions, lines
            positions, lines, size = [], [], 0
    if lines:
        yield positions, lines
