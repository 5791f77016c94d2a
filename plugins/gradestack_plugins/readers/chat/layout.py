"""Layouts of chat logs: how records, conversations and messages lie in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from gradestack import ABSENT, Input, read_document, read_records
from gradestack.jsonio import (
    Element,
    JsonProblem,
    Range,
    first_records,
    loads,
    open_regular,
    whole_lines,
)
from gradestack_plugins.readers.chat import dialect

Form = Literal["records", "lists", "entries", "document"]
"""Layouts of a file.

JSON Lines or a list of records, JSON Lines of conversations that are lists, the messages of one
conversation, or one object over several lines.
"""
HEAD: Final = 64 * 1024
"""Bytes at the beginning of a file by which it is recognised."""
FAR: Final = 16 * 1024 * 1024
"""Bytes of a document that are read to recognise it."""
BOM: Final = b"\xef\xbb\xbf"
_LOOKED_AT: Final = 10


def first_lines(head: bytes) -> Iterator[tuple[Any, bytes]]:
    """Yield the first lines that are not blank, decoded; ABSENT for one that is no JSON."""
    text = head.removeprefix(BOM)
    if not text.lstrip().startswith(b"["):
        for element, line in first_records(head, _LOOKED_AT):
            yield ABSENT if element.problem is not None else element.value, line
        return
    lines = filter(None, map(bytes.strip, text.split(b"\n")))
    for line in islice(lines, _LOOKED_AT):
        try:
            yield loads(line), line
        except JsonProblem:
            yield ABSENT, line


def _form_of(head: bytes) -> Form | None:
    text = head.removeprefix(BOM).strip()
    if _is_document(text):
        return "document"
    lines = list(first_lines(head))
    if text.startswith(b"["):
        return _form_of_list(head, text, [value for value, _ in lines])
    if not lines:
        return None
    first, line = lines[0]
    if first is not ABSENT:
        if len(lines) == 1 and listed(first):
            return "document"
        return "entries" if dialect.is_entry(first) else "records"
    if any(_is_record(value) for value, _ in lines):
        return "records"  # behind a damaged line
    if text.startswith(b"{") and len(line) < len(text):
        return "document"
    return None


form_of: Final = lru_cache(maxsize=1)(_form_of)
"""Return the layout of a file with this beginning; None where no record of it can be read.

The readers of all dialects ask it, one after the other, of each file.
"""


def _form_of_list(head: bytes, text: bytes, lines: list[Any]) -> Form | None:
    """Return the layout of a file that begins with a list."""
    if len(lines) > 1 and isinstance(lines[0], list) and isinstance(lines[1], list | dict):
        return "lists"
    if len(lines) == 1 and HEAD <= len(head) < FAR:
        return None  # the next line decides
    element = next((element for element, _ in first_records(text, 1)), None)
    if element is None or element.problem is not None:
        return None
    return "entries" if dialect.is_entry(element.value) else "records"


def _is_record(value: Any) -> bool:
    record = dialect.of_record(value)
    return record is not None and not dialect.is_entry(value)


def _is_document(text: bytes) -> bool:
    """Return whether the text of a whole file is one object over several lines."""
    if not text.startswith(b"{") or b"\n" not in text or len(text) >= HEAD:
        return False
    try:
        loads(text)
    except JsonProblem:
        return False
    return True


def form_of_file(path: Path) -> Form:
    """Return the layout of a file, of which more is read where its beginning does not tell."""
    with open_regular(path) as file:
        head = file.read(HEAD)
        form = form_of(head)
        if form is None and len(head) == HEAD:
            text = head + file.read(FAR)
            is_list = text.removeprefix(BOM).lstrip().startswith(b"[")
            if file.read(1) and not is_list:
                # decoding a line that is cut off takes all its memory, and fails
                text, _ = whole_lines(text)
            form = _form_of(text)
    return form or "records"


def elements_of(file: Input, form: Form, part: Range | None = None) -> Iterator[Element]:
    """Yield the records of an input, or of a part of it."""
    if form != "document":
        return read_records(file, part, "lines" if form == "lists" else "either")
    (document,) = read_document(file)
    records = enumerate(listed(document.value))
    elements = [Element(ordinal, document.line, record) for ordinal, record in records]
    return iter(elements or [document])


def objects_of(file: Input, form: Form = "records") -> Iterator[dict[str, Any]]:
    """Yield the records of an input that are objects."""
    elements = elements_of(file, form)
    values = (element.value for element in elements)
    return (value for value in values if isinstance(value, dict))


def listed(value: Any) -> list[Any]:
    """Return the records of a page of a listing of OpenAI's API; none for anything else."""
    data = None
    if isinstance(value, dict) and value.get("object") == "list":
        data = value.get("data")
    return data if isinstance(data, list) else []


def together(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield elements that cannot be read, and the others, which are messages, as a conversation."""
    entries: list[Any] = []
    line = None
    for element in elements:
        if element.problem is not None:
            yield element
            continue
        line = element.line if not entries else line
        entries.append(element.value)
    if entries:
        yield Element(0, line, entries)
