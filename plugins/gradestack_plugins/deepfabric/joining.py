"""Joining a dataset with replies recorded in other files, by id or by line.

Nothing but places is kept in memory: where each reply starts, not what it says.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import attrs

from gradestack import DataError, Input, Inputs
from gradestack.jsonio import JsonProblem, Line, iter_lines, loads
from gradestack_plugins.deepfabric.samples import identifier, split_entry

Join = Literal["auto", "id", "line"]
NO_ROW: Final = "the dataset has no row at this line"


@attrs.frozen
class Place:
    """Where one line of a file is."""

    offset: int
    line: int


@attrs.frozen
class Orphan:
    """A reply that belongs to no row of the dataset, and why."""

    place: Place
    reason: str


@attrs.frozen
class Replies:
    """Where the replies of one file are."""

    by_id: dict[str, tuple[Place, ...]] | None = None
    by_line: Any = None
    """Offset of each line (a compact array), -1 for a blank one; None when joined by id."""
    orphans: tuple[Orphan, ...] = ()
    most: int = 1
    """The largest number of replies to one row."""

    def of(self, key: str | None, line: int) -> tuple[Place, ...]:
        """Return the places of a dataset row's replies, in file order."""
        if self.by_id is not None:
            return self.by_id.get(key, ()) if key is not None else ()
        if line > len(self.by_line) or self.by_line[line - 1] < 0:
            return ()
        return (Place(self.by_line[line - 1], line),)


@attrs.frozen
class Joined:
    """A dataset and the replies to it, by input name."""

    dataset: Input
    by: Literal["id", "line"]
    replies: dict[str, Replies]
    repeated: frozenset[int] = frozenset()
    """Lines of dataset rows whose id an earlier row has."""


def join(inputs: Inputs, dataset: Input, wanted: Join) -> Joined:
    """Read the dataset's ids and the places of all replies.

    ``auto`` joins by id when the first row of the dataset and the first reply of every file have one, else by line.

    Raises:
        DataError: A file cannot be read.
    """
    for given in (dataset, *inputs.data):
        require_file(given)
    by = wanted
    if wanted == "auto":
        first = _first_id(dataset.path, is_dataset=True)
        both = first is not None and all(_first_id(given.path, is_dataset=False) is not None for given in inputs.data)
        by = "id" if both else "line"
    if by == "line":
        lines = sum(block.count(b"\n") for block in _blocks(dataset.path)) + 1
        filled = _filled_lines(dataset.path, lines)
        return Joined(dataset, "line", {given.name: _by_line(given.path, filled) for given in inputs.data})
    ids, repeated = _dataset_ids(dataset.path)
    found = {given.name: _by_id(given.path, ids) for given in inputs.data}
    return Joined(dataset, "id", found, frozenset(repeated))


def require_file(given: Input) -> None:
    """Check that an input is a readable file.

    Raises:
        DataError: It is not.
    """
    if not given.path.is_file():
        what = "is a directory, expected a JSONL file" if given.path.is_dir() else "no such file"
        msg = f"{given.shown}: {what}"
        raise DataError(msg)


def _first_id(path: Path, *, is_dataset: bool) -> str | None:
    for line in iter_lines(path):
        try:
            value = loads(line.data)
        except JsonProblem:
            return None
        if not isinstance(value, dict):
            return None
        return split_entry(value).id if is_dataset else identifier(value.get("id"))
    return None


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block


def _offsets(path: Path) -> Iterator[tuple[Place, bytes]]:
    """Yield every line that is not blank, with its place."""
    offset = 0
    with path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if data.strip() and not (number == 1 and not data[3:].strip() and data.startswith(b"\xef\xbb\xbf")):
                yield Place(offset, number), data
            offset += len(data)


def _filled_lines(path: Path, lines: int) -> bytearray:
    filled = bytearray(lines)
    for place, _ in _offsets(path):
        filled[place.line - 1] = 1
    return filled


def _by_line(path: Path, filled: bytearray) -> Replies:
    offsets = array("q")
    orphans = []
    for place, _ in _offsets(path):
        if place.line > len(filled) or not filled[place.line - 1]:
            orphans.append(Orphan(place, NO_ROW))
            continue
        offsets.extend([-1] * (place.line - 1 - len(offsets)))
        offsets.append(place.offset)
    return Replies(by_line=offsets, orphans=tuple(orphans))


def _dataset_ids(path: Path) -> tuple[frozenset[str], list[int]]:
    ids: set[str] = set()
    repeated = []
    for place, data in _offsets(path):
        try:
            found = split_entry(loads(_without_mark(place, data))).id
        except JsonProblem:
            continue  # reported when the row itself is read
        if found is None:
            continue
        if found in ids:
            repeated.append(place.line)
        ids.add(found)
    return frozenset(ids), repeated


def _by_id(path: Path, ids: frozenset[str]) -> Replies:
    found: dict[str, list[Place]] = {}
    orphans = []
    for place, data in _offsets(path):
        try:
            value = loads(_without_mark(place, data))
        except JsonProblem as error:
            orphans.append(Orphan(place, f"{error}; a reply that cannot be read cannot be joined by id"))
            continue
        key = identifier(value.get("id")) if isinstance(value, dict) else None
        if key is None:
            orphans.append(Orphan(place, "the reply has no id to join by (text or a whole number)"))
        elif key not in ids:
            orphans.append(Orphan(place, f"the dataset has no row with id {key!r}"))
        else:
            found.setdefault(key, []).append(place)
    most = max(map(len, found.values()), default=1)
    return Replies(by_id={key: tuple(places) for key, places in found.items()}, orphans=tuple(orphans), most=most)


def _without_mark(place: Place, data: bytes) -> bytes:
    return data[3:] if place.line == 1 and data.startswith(b"\xef\xbb\xbf") else data


def lines_at(file: BinaryIO, places: Iterable[Place]) -> Iterator[Line]:
    """Yield the lines at some places of an open file."""
    for place in places:
        file.seek(place.offset)
        yield Line(place.line, _without_mark(place, file.readline()))
