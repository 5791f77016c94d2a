"""What the beginning of a file tells people: what it looks like, which format it nearly is, what is odd about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from gradestack.api import Reader
from gradestack.jsonio.foreign import foreign
from gradestack.jsonio.records import first_records
from gradestack.jsonio.tolerant import Element
from gradestack.jsonio.values import JsonProblem, loads
from gradestack.records import RecordReader

_HEAD = 64 * 1024
"""Bytes of a beginning that is not the whole file."""
_RECORDS = 100
"""Records looked at."""
_KEYS, _CHARACTERS = 12, 60
"""Keys of a record, and characters of a line, that are shown."""
_SURE = 0.5
"""How sure a reader has to be of a record to be named beside another."""
_KINDS = {dict: "objects", list: "lists", str: "texts", int: "numbers", float: "numbers", bool: "truth values"}


def _records(head: bytes) -> list[tuple[Element, bytes]]:
    return list(first_records(head, _RECORDS))


def looks(head: bytes) -> str:
    """Return what a file looks like: compression, encoding, kind of its first record, and that one's keys."""
    if said := foreign(head):
        return f"it {said}"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":  # the head ends within a character
            line = head.count(b"\n", 0, error.start) + 1
            return f"it is not UTF-8 text (line {line}, byte {error.start} of the file): save it as UTF-8"
    if b"\0" in head:
        return "it is no text: it holds NUL bytes"
    records = _records(head)
    listed = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    if listed and not records:
        return "it is a JSON list that holds nothing" if head.rstrip().endswith(b"]") else "it is a JSON list"
    if not records:
        return "it holds blank lines only"
    first, text = records[0]
    if first.problem is not None:
        return _document(head, text)
    kind = "empty objects" if first.value == {} else _KINDS.get(type(first.value), "nulls")
    return f"it is {'a JSON list' if listed else 'JSON Lines'} of {kind}{_keys(first.value)}"


def holds_records(head: bytes) -> bool:
    """Return whether something at the beginning of a file may be a record: an object or a list that holds something.

    What is no JSON may be, too.
    """
    found = (element for element, _ in _records(head))
    return any(each.problem is not None or (isinstance(each.value, dict | list) and each.value) for each in found)


def _document(head: bytes, line: bytes) -> str:
    """Return what a file looks like whose first line is no JSON."""
    try:
        whole = loads(head)
    except JsonProblem:
        start = line.strip()[: 2 * _CHARACTERS].decode(errors="replace")[:_CHARACTERS]
        if len(head) >= _HEAD and b"\n" not in head:
            return f"its first line is longer than {_HEAD >> 10} KB and begins with {start!r}"
        what = "a document" if start.startswith(("{", "[")) else "it"
        return f"it is no JSON Lines and no JSON list: {what} begins with {start!r}"
    return f"it is one JSON object over several lines{_keys(whole)}"


def _keys(record: Any) -> str:
    if not isinstance(record, dict) or not record:
        return ""
    keys = sorted(record)
    more = f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else ""
    return f" with the keys {', '.join(key[:_CHARACTERS] for key in keys[:_KEYS])}{more}"


def _first_of(head: bytes) -> Any:
    return next((element.value for element, _ in _records(head) if element.problem is None), None)


def complaints(head: bytes, readers: Mapping[str, type[Reader]]) -> list[str]:
    """Return what keeps a file's first record from being of the formats it nearly is of, one text each."""
    first = _first_of(head)
    found: list[str] = []
    for name, reader in readers.items():
        if issubclass(reader, RecordReader) and isinstance(first, dict) and (said := _complaint(reader, first)):
            found.append(f"the nearest is {name}, which says of its first record: {said}")
    return found


def _complaint(reader: type[RecordReader], record: dict[str, Any]) -> str | None:
    try:
        return reader.complaint(record)
    except Exception:  # noqa: BLE001 - one that stumbles over a record of another format has nothing to say about it
        return None


def oddities(head: bytes, name: str, readers: Mapping[str, type[Reader]]) -> Iterator[str]:
    """Yield what is odd about a file, once each: a key that stands twice in an object, records of other formats."""
    records = [(element, text) for element, text in _records(head) if element.problem is None]
    if (reader := readers.get(name)) is not None and issubclass(reader, RecordReader):
        yield from _others([element for element, _ in records], reader, name, readers)
    listed = len({id(text) for _, text in records}) == 1 < len(records)
    for element, text in records[:1] if listed else records:
        if key := _repeated(text):
            place = "" if listed else f":{element.line}"
            yield f"{place}: the key {key[:_CHARACTERS]!r} stands twice in one object; the last one counts"
            return


def _others(
    records: Iterable[Element], reader: type[RecordReader], name: str, readers: Mapping[str, type[Reader]]
) -> Iterator[str]:
    for element in records:
        if _certainty(reader, element.value) != 0.0:
            continue
        for other, kind in readers.items():
            if kind is not reader and issubclass(kind, RecordReader) and _certainty(kind, element.value) >= _SURE:
                yield f":{element.line}: a record of the format {other} among those of {name}, as which all are read"
                return


def _certainty(reader: type[RecordReader], record: Any) -> float:
    """Return how sure a record makes a reader; -1 where it tells it nothing."""
    try:
        found = reader.looks_like(record)
    except Exception:  # noqa: BLE001 - as above
        return 0.0
    return -1.0 if found is None else found


def _repeated(text: bytes) -> str | None:
    """Return a key that stands twice in an object of a JSON text; of one that is cut off, in what can be read."""
    found: list[str] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        counts = Counter(key for key, _ in pairs)
        found.extend(key for key, count in counts.items() if count > 1)
        return dict(pairs)

    with suppress(ValueError, RecursionError):  # what can be read of it counts
        json.loads(text, object_pairs_hook=made)
    return found[0] if found else None
