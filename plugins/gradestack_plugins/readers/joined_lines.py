"""Lines of JSONL files joined to the lines of a dataset, by id or by line number.

Only the positions of lines are in memory, not their texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from gradestack import Input, Inputs, reading
from gradestack.jsonio import JsonProblem, line_problem, loads, open_regular, whole_line

Join = Literal["auto", "id", "line"]
IdOf = Callable[[Any], str | None]
"""Returns the id that a decoded line is joined by, None where it has none."""


class Place(msgspec.Struct, frozen=True):
    """The position of one line of a file."""

    offset: int
    line: int


class Lines(NamedTuple):
    """The positions of the lines of one file."""

    places: dict[str | int, list[Place]]
    """By the key that they are joined by, in file order."""
    orphans: list[tuple[Place, str]]
    """Lines that belong to no row of the dataset, each with the reason."""


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
    """Read the dataset's ids and the positions of all lines.

    ``auto`` joins by id when the first row of the dataset and the first line of every file have
    one, else by line.
    """
    by: Literal["id", "line"] = "line" if wanted == "line" else "id"
    if wanted == "auto":
        ids = [_first_id(origin, id_of_line) for origin in inputs.data]
        by = "id"
        first_id = _first_id(dataset, id_of_row)
        if None in [first_id, *ids]:
            by = "line"
    keys: set[str | int] = set()
    repeated = set()
    for position, key, _ in _keyed_lines(dataset, by, id_of_row):
        if key in keys:
            repeated.add(position.line)
        elif key is not None:
            keys.add(key)
    lines = {origin.name: Lines({}, []) for origin in inputs.data}
    for origin in inputs.data:
        places, orphans = lines[origin.name]
        for position, key, problem in _keyed_lines(origin, by, id_of_line):
            if key in keys:
                places.setdefault(key, []).append(position)
            else:
                orphans.append((position, problem))
    return Joined(dataset, by, lines, frozenset(repeated))


def _first_id(origin: Input, id_of: IdOf) -> str | int | None:
    keyed_lines = _keyed_lines(origin, "id", id_of)
    return next((key for _, key, _ in keyed_lines), None)


def _keyed_lines(
    origin: Input, by: Literal["id", "line"], id_of: IdOf
) -> Iterator[tuple[Place, str | int | None, str]]:
    """Yield the position of every line, its key, and the reason where it belongs to no row."""
    for position, text in _lines(origin):
        if by == "line":
            yield position, position.line, "the dataset has no row at this line"
            continue
        try:
            key = id_of(loads(text))
        except JsonProblem as error:
            why = line_problem(text, error)
            yield position, None, f"{why}; a reply that cannot be read cannot be joined by id"
            continue
        problem = f"the dataset has no row with id {key!r}"
        if key is None:
            problem = "the reply has no id to join by (text or a whole number)"
        yield position, key, problem


def _lines(origin: Input) -> Iterator[tuple[Place, bytes]]:
    """Yield the lines of a file that are not blank, with their positions."""
    offset = 0
    with reading(origin.shown), open_regular(origin.path) as file:
        for number, line in enumerate(iter(partial(whole_line, file), b""), 1):
            text = _without_mark(number, line)
            if text.strip():
                yield Place(offset, number), text
            offset = file.tell()


def _without_mark(number: int, line: bytes) -> bytes:
    """Return a line without the mark of UTF-8, which the first line may have."""
    return line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def read_place(file: BinaryIO, position: Place) -> Any:
    """Return the value of the line at a position.

    Raises:
        JsonProblem: It is no JSON.
    """
    file.seek(position.offset)
    return loads(_without_mark(position.line, whole_line(file)))
