"""Files that hold one JSON document over several lines, beside JSON Lines and lists."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

from typing_extensions import override

from gradestack import RecordReader
from gradestack.jsonio import Head, far_document, open_regular

_HEAD: Final = 64 * 1024


class WholeDocuments(RecordReader):
    """Base of readers whose files may be one document.

    Attributes:
        marks: Groups of keys of a document; the beginning of a long one has all keys of a group.
        certainty: How sure such a beginning makes it.
    """

    marks: ClassVar[tuple[tuple[str, ...], ...]] = ()
    certainty: ClassVar[float] = 0.9

    @classmethod
    def is_whole(cls, head: Head) -> bool:
        """Return whether a file with this beginning is one document: an object of several lines."""
        return head.is_document

    @classmethod
    def is_whole_file(cls, path: Path) -> bool:
        """Return whether a file is one document; False where it cannot be read."""
        with suppress(OSError), open_regular(path) as file:
            head = Head(file.read(_HEAD))
            return cls.is_whole(head)
        return False

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        groups = ([f'"{key}"'.encode() in text for key in group] for group in cls.marks)
        return cls.certainty if any(map(all, groups)) else None

    @classmethod
    @override
    def recognised(cls, path: Path, head: bytes) -> float | None:
        head = head if isinstance(head, Head) else Head(head)
        if not cls.is_whole(head):
            return super().recognised(path, head)
        element, text = far_document(path, head)
        if element.problem is not None:
            return cls.begins_like(text)
        return cls.looks_like(element.value)
