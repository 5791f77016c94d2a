"""The runs that a page carries.

The list of all, rows and panels, packed, in the page or in files beside it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from gradestack import NO_REASON, Report
from gradestack_plugins.pages.index import RowIndex, name_of, names_of, verdict
from gradestack_plugins.pages.rows import pieces_of
from gradestack_plugins.pages.tallies import LEVEL, RAW, Numbers, SearchTally
from gradestack_plugins.pages.text import brief

BESIDE = ("report_data/chunk-*.js", "report_data/index.js")
"""Files in it that a page loads."""
_CHUNK = 1 << 20
"""Bytes of a chunk before it is packed: a hundredth of a second to unpack."""
_RATIO = 20
"""Rows are hardly ever packed to less than this part of them."""


class Chunks:
    """Chunks in memory as long as there is room for them in the page, then files."""

    def __init__(self, folder: Path, room: int, *, served: bool = False) -> None:
        self._folder = folder
        self._room = room
        self._most = room
        self.served = served
        self.texts: dict[int | str, Markup] = {}
        self.file_folder = ""
        self.sums: list[str] = []
        self.first: list[int] = []
        self.panelled: list[list[int]] = []
        self.picked: list[list[int]] = []
        self.without: list[str] = []
        self.text = ""
        self.called: dict[str, Any] = {}
        if served:
            self._move()

    def add_rows(self, report: Report, index: RowIndex) -> None:
        """Add all rows of a report, as they stand in results.jsonl."""
        entries = range(len(index.entries))
        if entries and (index.first_byte(entries[-1]) - index.first_byte(0)) // _RATIO > self._room:
            self._move()
        start = 0
        while start < len(entries):
            first_byte = index.first_byte(start)
            stop = bisect_left(entries, first_byte + _CHUNK, start + 1, key=index.first_byte)
            self.first.append(start)
            self._add(pieces_of(report, start, stop))
            start = stop

    def add_texts(self, searched: SearchTally) -> None:
        """Add what the search looks at beside names and reasons, and keep which tools each row
        called.
        """
        self._add(searched.packed, name="text", packed=True)
        self.text = self.sums.pop()
        tools = list(map(name_of, searched.tools))
        sets = list(map(list, searched.sets))
        self.called = {
            "t": searched.rows,
            "e": searched.expected,
            "called": sets,
            "tools": tools,
        }

    def add_panels(self, lines: Iterable[tuple[int, str]]) -> None:
        """Add what panels show of single samples."""
        size = 0

        def chunk(line: tuple[int, str]) -> int:
            nonlocal size
            size += len(line[1])
            return size // _CHUNK

        for _, batch in groupby(lines, chunk):
            places, texts = zip(*batch, strict=True)
            self.panelled.append(list(places))
            pieces = ["\n".join(texts).encode()]
            self._add(pieces)

    def keep(self, rows: Iterable[tuple[int, Iterable[bytes]]]) -> None:
        """Add the first of these rows to the page, though the others are beside it, as far as there
        is room.

        Of a row that is longer than the room no more is read than that.
        """
        positions = list[int]()
        lines = list[bytes]()
        room = self._most
        for position, pieces in rows:
            line = list[bytes]()
            for piece in pieces:
                room -= len(piece)
                if room < 0:
                    break
                line.append(piece)
            if room < 0:
                break
            positions.append(position)
            lines.append(b"".join(line))
        if lines:
            self.picked.append(positions)
            self._add([b"\n".join(lines)], here=True)

    def _add(
        self, pieces: Iterable[bytes], *, here: bool = False, name: str = "", packed: bool = False
    ) -> None:
        """Pack a chunk, of which no more is in memory than the page has room for."""
        number = name or len(self.sums) + 1
        digest = hashlib.sha256()
        parts = list[str]()
        texts = _texts(pieces if packed else _pack(pieces), digest.update)
        if here or not self.file_folder:
            for text in texts:
                parts.append(text)
                self._room -= len(text)
                if self._room < 0 and not here:
                    self._move()
                    break
        if here or not self.file_folder:
            self.texts[number] = Markup("".join(parts))  # noqa: S704 - base64
        else:
            self.write(f"chunk-{number}", chain(parts, texts))
        self.sums.append(digest.hexdigest())

    def write(self, name: str, texts: Iterable[str]) -> None:
        """Write a file that assigns one text of base64 to the one name the page's loader reads."""
        self._folder.mkdir(exist_ok=True)
        with (self._folder / f"{name}.js").open("w", encoding="ascii", newline="\n") as file:
            file.writelines(_assigned(texts))

    def _move(self) -> None:
        """Write what is here, and all that comes, into files."""
        if not self.file_folder:
            self.file_folder = self._folder.name
            for number, text in self.texts.items():
                self.write(f"chunk-{number}", [text])
            self.texts.clear()

    def listed(self) -> dict[str, Any]:
        """Return the part of the list of runs that describes the chunks."""
        sums = self.sums if self.file_folder else []
        chunks: dict[str, Any] = {"first": self.first, "picked": self.picked, "sums": sums}
        chunks |= {"panels": self.panelled, "without": self.without, "text": self.text}
        return chunks | ({"served": True} if self.served else {})


def _assigned(texts: Iterable[str]) -> Iterator[str]:
    return chain(('globalThis.gradestackChunk = "',), texts, ('";\n',))


def served_sample(row: Mapping[str, Any], panels: Iterable[str]) -> str:
    """Return the file that a served page loads for one sample.

    Its row and what panels show of it, a line each.
    """
    text = f"{json.dumps(row)}\n{json.dumps(list(panels))}".encode()
    texts = [_packed_text(text)]
    return "".join(_assigned(texts))


def _pack(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(LEVEL, wbits=RAW)
    return chain(map(packer.compress, pieces), map(packer.flush, (zlib.Z_FINISH,)))


def _texts(packed: Iterable[bytes], hashed: Callable[[bytes], object]) -> Iterator[str]:
    """Yield packed data as base64."""
    rest = b""
    for data in packed:
        hashed(data)
        rest += data
        cut = len(rest) // 3 * 3  # so that base64 goes on without a sign of its end
        encoded = base64.b64encode(rest[:cut])
        yield encoded.decode()
        rest = rest[cut:]
    yield base64.b64encode(rest).decode()


VERDICTS = ("error", "lost", "graded", "missing", "skipped", "passed")
"""Worst first; a row says which by its place here."""
PLACES = {name: number for number, name in enumerate(VERDICTS)}
"""Outcome of a sample -> its number on the page."""
_LONGEST = 80


def listing(
    index: RowIndex,
    words: Mapping[str, str],
    main: Mapping[tuple[int, ...], int],
    more: Mapping[str, Any],
) -> str:
    """Return all samples of an index as base64 of packed JSON; the same bytes for the same index.

    Ids, models, runs, kinds of reasons and sets of these are dictionaries, with a column for each
    over rows.
    """
    models = Numbers()
    runs = Numbers()
    sets = dict[tuple[int, ...], int]()
    ids, numbers = (
        list[str](),
        array("q", [-1]) * len(index.names),
    )  # no mapping: there are as many ids as samples
    names = names_of(index.names)
    for task in index.tasks:
        if numbers[task] < 0:
            numbers[task] = len(ids)
            ids.append(names[task])
    code_of = {name: str(number) for number, name in enumerate(VERDICTS)}
    entries = index.entries
    fields = (
        {"cost": "cost_usd", "seconds": "seconds", "tokens": "tokens"} if any(index.usage) else {}
    )
    took = {}
    for name, field in fields.items():
        took[name] = [getattr(usage, field, None) for usage in index.usage]
    columns = {
        "i": [numbers[task] for task in index.tasks],
        "m": [models[entry.model] for entry in entries],
        "r": [runs[entry.run] for entry in entries],
        "v": "".join([code_of[verdict(entry)] for entry in entries]),
        "s": [None if entry.score is None else round(entry.score, 3) for entry in entries],
        "k": [sets.setdefault(kinds, len(sets)) for kinds in index.reasons.by_run],
        "ids": ids,
        "models": [name_of(name) for name in models],
        "runs": [name_of(name) for name in runs],
        "sets": list(map(list, sets)),
        "main": [main.get(kinds, -1) for kinds in sets],
        "no_reason": NO_REASON,
        "took": {
            name: usage for name, usage in took.items() if any(value is not None for value in usage)
        },
        "kinds": [[brief(part, _LONGEST) for part in kind] for kind in index.reasons.kinds],
        "words": [words[name] for name in VERDICTS],
    }
    return _packed_text(msgspec.json.encode({**columns, **more}))


def island(data: Mapping[str, Any]) -> str:
    """Return data as a page carries it: base64 of packed JSON."""
    text = json.dumps(data, separators=(",", ":"))
    return _packed_text(text.encode())


def _packed_text(text: bytes) -> str:
    compressed = zlib.compress(text, LEVEL, wbits=RAW)
    return base64.b64encode(compressed).decode()
