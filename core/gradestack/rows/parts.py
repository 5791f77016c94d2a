"""Parts of a run's samples, found by the first bytes of their rows: a run of millions needs no index for that."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack.jsonio.files import open_regular, whole_line
from gradestack.rows.index import RowEntry
from gradestack.rows.names import NumberedLine, names_of, samples_of
from gradestack.rows.read import Row, check_count

VERDICTS = ("passed", "failed", "ungraded")
_PIECE = 1 << 20


@attrs.frozen(kw_only=True)
class SamplePart:
    """Samples of a run, in the order of the rows.

    Attributes:
        shown: What the index says of each, and its row without conversation read again.
        start: Position of the first row that was looked at.
        stop: Position after the last one; ``total`` when all were.
        total: Rows of the run.
        query: Text that id, model or run contain, or the whole id in double quotes; "" for any.
        verdict: ``passed``, ``failed`` or ``ungraded`` where only these are asked for, else "".
    """

    shown: tuple[tuple[RowEntry, Row], ...]
    start: int
    stop: int
    total: int
    query: str = ""
    verdict: str = ""


class RowPlaces:
    """The rows of a file by position.

    Args:
        path: A results.jsonl.
        loads: Returns the value of a line, given its number and bytes.
        outcome: Key of the outcome grader, if the run has one.
        summary: Content of the run's summary.json.

    Raises:
        DataError: The file has not the rows the summary is of.
    """

    def __init__(
        self,
        path: Path,
        loads: Callable[[int, bytes], Any],
        outcome: str | None,
        summary: Mapping[str, Any],
    ) -> None:
        self._path, self._loads, self._outcome = path, loads, outcome
        self._places = array("q")
        place = 0
        with open_regular(path, _PIECE) as file:
            for line in file:
                if not line.isspace():
                    self._places.append(place)
                place += len(line)
        check_count(path, len(self), summary)

    def __len__(self) -> int:
        return len(self._places)

    def place(self, position: int) -> int:
        """Return the first byte of a row."""
        return self._places[position]

    def line(self, position: int) -> bytes:
        """Return one row as it stands in the file.

        Raises:
            DataError: The file has changed since, and there is no row any more.
        """
        ((_, (number, _, line)),) = self._lines(position, position + 1)
        self._loads(number, line)
        return line

    def part(self, start: int, most: int, farthest: int, query: str = "", verdict: str = "") -> SamplePart:
        """Return the first samples from a position on that are asked for.

        Args:
            start: Position to begin at.
            most: Samples in the part.
            farthest: Rows looked at for it.
            query: Text that id, model or run contain, whatever its case, or the whole id in double quotes.
            verdict: One of ``VERDICTS``, or "".
        """
        start = min(max(start, 0), len(self))
        found: list[tuple[RowEntry, Row]] = []
        stop = start
        for position, line in self._lines(start, min(start + farthest, len(self))):
            stop = position + 1
            if query and not self._named(line, query):
                continue
            for entry, row in samples_of([(position, line)], self._loads, self._outcome):
                if verdict in ("", _verdict(entry)):
                    found.append((entry, row))
            if len(found) == most:
                break
        return SamplePart(shown=tuple(found), start=start, stop=stop, total=len(self), query=query, verdict=verdict)

    def _named(self, line: NumberedLine, query: str) -> bool:
        (name,) = names_of([line], self._loads)
        if len(query) > 1 and query[0] == query[-1] == '"':
            return name.id == query[1:-1]
        return any(query.casefold() in text.casefold() for text in (name.id, name.model, name.run))

    def _lines(self, start: int, stop: int) -> Iterator[tuple[int, NumberedLine]]:
        with open_regular(self._path, _PIECE) as file:
            for position in range(start, stop):
                place = self._places[position]
                if file.tell() != place:
                    file.seek(place)
                yield position, (position + 1, place, whole_line(file))


def _verdict(entry: RowEntry) -> str:
    if entry.state != "graded":
        return "ungraded"
    return "" if entry.passed is None else "passed" if entry.passed else "failed"
