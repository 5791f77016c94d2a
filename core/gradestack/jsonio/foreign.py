"""Files that are no UTF-8 text, told by their first bytes: compressed ones, and those of another encoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

from gradestack.errors import DataError

_LOOKED_AT = 64
"""Bytes."""
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
}
_BINARY = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"SQLite format 3\x00": "SQLite", b"\x89HDF": "HDF5", b"%PDF": "PDF"}


def foreign(head: bytes) -> str | None:
    """Return what a file is by its beginning if not UTF-8 text, with what to do about it; else None."""
    for first, name in _PACKED.items():
        if head.startswith(first):
            return f"is compressed ({name}), and is read unpacked only: unpack it first"
    for first, name in _BINARY.items():
        if head.startswith(first):
            return f"is a {name} file, no text; write its records as JSON Lines first"
    encoding = json.detect_encoding(head[:_LOOKED_AT])
    stray = encoding in {"utf-16-be", "utf-16-le"} and head[:4].count(0) < 2  # a NUL among text of one byte each
    if not encoding.startswith("utf-8") and head.strip(b"\x00") and not stray:
        name = encoding.upper()
        return f"is {name} text, and only UTF-8 is read: convert it first, `iconv -f {name} -t UTF-8 FILE`"
    return None


def require_text(path: Path, file: BinaryIO) -> None:
    """Refuse a file that is no UTF-8 text, open at its beginning, and leave it there."""
    problem = foreign(file.read(_LOOKED_AT))
    file.seek(0)
    if problem is not None:
        raise DataError(f"{path}: {problem}")
