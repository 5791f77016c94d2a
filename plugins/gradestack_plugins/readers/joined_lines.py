"""Lines of JSONL files joined to the lines of a dataset, by id or by line number.

Of the files only places are in memory: where each line starts, not what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from gradestack import Input, Inputs, reading
from gradestack.jsonio import JsonProblem, loads, open_regular, whole_line

Join = Literal["auto", "id", "line"]
IdOf = Callable[[Any], str | None]
"""Returns the id that a decoded line is joined by, None where it has none."""


class Place(NamedTuple):
    """Where one line of a file is."""

    offset: int
    line: int


class Lines(NamedTuple):
    """Where the lines of one file are."""

    places: dict[str | int, list[Place]]
    """By what they are joined by, in file order."""
    orphans: list[tuple[Place, str]]
    """Lines that belong to no row of the dataset, and why."""


class Joined(msgspec.Struct, frozen=True):
    """A dataset and the lines that belong to its rows."""

    dataset: Input
    by: Literal["id", "line"]
    lines: dict[str, Lines]
    """By input name."""
    repeated: frozenset[int] = frozenset()
    """Lines of dataset rows whose id an earlier row has."""


def join_lines(
    inputs: Inputs, dataset: Input, wanted: Join, id_of_row: IdOf, id_of_line: IdOf
) -> Joined:
    """Read the dataset's ids and the places of all lines.

    ``auto`` joins by id when the first row of the dataset and the first line of every file have
    one, else by line.
    """
    by: Literal["id", "line"] = "line" if wanted == "line" else "id"
    if wanted == "auto":
        ids = [
            _first_id(dataset, id_of_row),
            *(_first_id(each, id_of_line) for each in inputs.data),
        ]
        by = "line" if None in ids else "id"
    keys: set[str | int] = set()
    repeated = set()
    for place, key, _ in _keys(dataset, by, id_of_row):
        if key in keys:
            repeated.add(place.line)
        elif key is not None:
            keys.add(key)
    lines = {given.name: Lines({}, []) for given in inputs.data}
    for given in inputs.data:
        places, orphans = lines[given.name]
        for place, key, problem in _keys(given, by, id_of_line):
            if key in keys:
                places.setdefault(key, []).append(place)
            else:
                orphans.append((place, problem))
    return Joined(dataset, by, lines, frozenset(repeated))


def _first_id(given: Input, id_of: IdOf) -> str | int | None:
    return next((key for _, key, _ in _keys(given, "id", id_of)), None)


def _keys(
    given: Input, by: Literal["id", "line"], id_of: IdOf
) -> Iterator[tuple[Place, str | int | None, str]]:
    """Yield the place of every line, what it is joined by, and why it belongs to no row."""
    for place, text in _lines(given):
        if by == "line":
            yield place, place.line, "the dataset has no row at this line"
            continue
        try:
            key = id_of(loads(text))
        except JsonProblem as error:
            yield place, None, f"{error}; a reply that cannot be read cannot be joined by id"
            continue
        problem = f"the dataset has no row with id {key!r}"
        if key is None:
            problem = "the reply has no id to join by (text or a whole number)"
        yield place, key, problem


def _lines(given: Input) -> Iterator[tuple[Place, bytes]]:
    offset = 0
    with reading(given.shown), open_regular(given.path) as file:
        for number, raw in enumerate(iter(partial(whole_line, file), b""), 1):
            text = _without_mark(number, raw)
            if text.strip():
                yield Place(offset, number), text
            offset = file.tell()


def _without_mark(line: int, text: bytes) -> bytes:
    return text.removeprefix(b"\xef\xbb\xbf") if line == 1 else text


def read_place(file: BinaryIO, place: Place) -> Any:
    """Return the value of the line at a place.

    Raises:
        JsonProblem: It is no JSON.
    """
    file.seek(place.offset)
    return loads(_without_mark(place.line, whole_line(file)))
